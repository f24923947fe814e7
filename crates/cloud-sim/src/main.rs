//! The loopback cloud as a program.

use clap::Parser;
use cloud_sim::{Cloud, CloudSettings, Error};
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// A loopback cloud that speaks OCI, with faults on demand.
///
/// Prints its address as one line when it takes requests, and runs until it gets SIGTERM, SIGINT
/// or SIGHUP; a second one ends also its machines at once.
#[derive(Debug, Parser)]
#[command(version, after_long_help = EXAMPLES)]
struct Arguments {
    /// Where to listen; port 0 takes a free one [default: the script's, or 127.0.0.1:0]
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: Option<String>,
    /// Where `endpoint`, `oci/config` and `machines.log` are written
    #[arg(long, value_name = "DIRECTORY")]
    state: PathBuf,
    /// Settings, faults, capacity and limits at the start, as YAML or JSON
    #[arg(long, value_name = "FILE")]
    script: Option<PathBuf>,
    /// How many times as fast as ours the cloud's clock runs
    #[arg(long, value_name = "FACTOR")]
    speed: Option<f64>,
    /// Run when an instance starts: a program and its arguments, divided at spaces; no shell
    #[arg(long, value_name = "COMMAND")]
    machine_up: Option<String>,
    /// Run when an instance stops, after which whatever the other started is ended
    #[arg(long, value_name = "COMMAND")]
    machine_down: Option<String>,
}

const EXAMPLES: &str = "\
Examples:
  Start, and list instances with Oracle's CLI:
    cloud-sim --state /tmp/cloud &
    oci --config-file /tmp/cloud/oci/config --endpoint $(cat /tmp/cloud/endpoint) \\
      compute instance list --compartment-id ocid1.compartment.oc1..aaaacomp

  Instances that are processes, which find out about themselves in NAME, ADDRESS, INSTANCE_ID,
  AVAILABILITY_DOMAIN, SHAPE, IMAGE_ID, METADATA_<KEY>, METADATA_FILE and METADATA_SERVICE:
    cloud-sim --state /tmp/cloud --speed 10 --machine-up ./boot --machine-down ./halt

  The next two launches find no capacity, and everything takes 50 ms:
    curl -X POST $(cat /tmp/cloud/endpoint)/admin/faults -d '{\"operation\": \"LaunchInstance\",
      \"count\": 2, \"fault\": {\"kind\": \"answer\", \"status\": 500, \"code\": \"InternalError\",
      \"message\": \"Out of host capacity.\"}}'
    curl -X PUT $(cat /tmp/cloud/endpoint)/admin/latency -d 50

  The same from the start, as a script:
    latency_millis: 50
    speed: 10
    faults:
      - operation: LaunchInstance
        count: 2
        fault: {kind: answer, status: 500, code: InternalError, message: Out of host capacity.}
    capacity:
      - {availability_domain: 'Uocm:PHX-AD-1', shape: VM.Standard2.1, instances: 4}
    throttle:
      - {operation: '*', per_second: 20, burst: 20}
";

impl Arguments {
    fn settings(self) -> Result<CloudSettings, Error> {
        let mut settings = match &self.script {
            Some(script) => CloudSettings::from_script(script)?,
            None => CloudSettings::default(),
        };
        let words = |command: String| command.split_whitespace().map(str::to_owned).collect();
        settings.listen = self.listen.unwrap_or(settings.listen);
        settings.speed = self.speed.unwrap_or(settings.speed);
        settings.machine_up = self.machine_up.map_or(settings.machine_up, words);
        settings.machine_down = self.machine_down.map_or(settings.machine_down, words);
        std::fs::create_dir_all(&self.state)
            .map_err(|source| Error::File { path: self.state.clone(), source })?;
        let state = std::path::absolute(&self.state);
        settings.state = Some(state.unwrap_or(self.state));
        Ok(settings)
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match run(arguments).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            complain(&error);
            ExitCode::from(2)
        }
    }
}

#[expect(clippy::print_stderr, reason = "the one place that says why the program ends")]
fn complain(error: &Error) {
    eprintln!("cloud-sim: {}", cloud_sim::chain(error));
}

async fn run(arguments: Arguments) -> Result<(), Error> {
    let mut ends =
        Ends::watch().map_err(|source| Error::System { what: "wait for signals", source })?;
    let settings = arguments.settings()?;
    let state = settings.state.clone().unwrap_or_default();
    let cloud = Cloud::start(settings).await?;
    cloud.credentials().write_config(&state.join("oci"))?;
    announce(&state, &cloud.endpoint())?;
    ends.wait().await;
    // While the directory is still ours: the next cloud there announces itself by the same file.
    let forgotten = forget_endpoint(&state);
    let admin = cloud.admin();
    // It waits for the machines, on a thread of its own so that there is one to be told to hurry.
    let mut ending = tokio::task::spawn_blocking(move || drop(cloud));
    tokio::select! {
        _ = &mut ending => {}
        () = ends.wait() => {
            admin.hurry();
            let _ = ending.await;
        }
    }
    forgotten
}

/// The signals that end the program.
struct Ends {
    terminated: Signal,
    interrupted: Signal,
    /// Not where it was ignored from the start, as under `nohup`.
    hung_up: Option<Signal>,
}

impl Ends {
    fn watch() -> io::Result<Self> {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let ignored = ignores_hangup(&status);
        let hung_up = (!ignored).then(|| signal(SignalKind::hangup())).transpose()?;
        Ok(Self {
            terminated: signal(SignalKind::terminate())?,
            interrupted: signal(SignalKind::interrupt())?,
            hung_up,
        })
    }

    async fn wait(&mut self) {
        let hung_up = async {
            match &mut self.hung_up {
                Some(signal) => signal.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = self.terminated.recv() => {}
            _ = self.interrupted.recv() => {}
            _ = hung_up => {}
        }
    }
}

/// True if SIGHUP, the first of the signals, is in the set `SigIgn` of `/proc/self/status`.
fn ignores_hangup(status: &str) -> bool {
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|set| u64::from_str_radix(set.trim(), 16).ok());
    ignored.is_some_and(|set| set & 1 == 1)
}

fn forget_endpoint(state: &Path) -> Result<(), Error> {
    let path = state.join("endpoint");
    match std::fs::remove_file(&path) {
        Err(source) if source.kind() != ErrorKind::NotFound => Err(Error::File { path, source }),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Writes the address to its file, then to standard output, which may be closed.
fn announce(state: &Path, endpoint: &str) -> Result<(), Error> {
    let path = state.join("endpoint");
    let new = state.join("endpoint.new");
    let write = || {
        std::fs::write(&new, endpoint)?;
        std::fs::rename(&new, &path)
    };
    write().map_err(|source| Error::File { path: path.clone(), source })?;
    let mut out = io::stdout();
    let _ = writeln!(out, "{endpoint}").and_then(|()| out.flush());
    Ok(())
}
