//! A private slurmctld, started from the cache that `tests/slurm/fetch` fills.

use slurmconf::SlurmVersion;
use std::{
    env,
    fs::{self, File},
    io::Read as _,
    net::TcpListener,
    os::unix::{fs::PermissionsExt as _, process::CommandExt as _},
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    time::{Duration, Instant},
};
use tempfile::TempDir;

/// Generous: a machine busy with other tests is no reason to fail.
const PATIENCE: Duration = Duration::from_mins(1);

/// A Slurm release in the cache.
pub(crate) struct Release {
    dir: PathBuf,
    version: SlurmVersion,
}

impl Release {
    /// The release of a series such as `24.11`.
    pub(crate) fn find(series: &str) -> Self {
        let path =
            |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let home = || path("HOME").expect("HOME is set").join(".cache");
        let cache = || path("XDG_CACHE_HOME").unwrap_or_else(home).join("slurm-elastic");
        let root = path("SLURM_ELASTIC_CACHE").unwrap_or_else(cache);
        let dir = root.join("slurm").join(series);
        let version = fs::read_to_string(dir.join("version")).unwrap_or_else(|error| {
            panic!(
                "no Slurm {series} in {}: {error}\nrun tests/slurm/fetch {series}",
                dir.display()
            )
        });
        Self { dir, version: version.parse().unwrap() }
    }

    /// A client command that reads `conf`; without a controller it would try for minutes.
    pub(crate) fn client(&self, program: &str, conf: &Path) -> Command {
        let mut command = Command::new("timeout");
        command.arg("30").arg(self.dir.join("bin").join(program)).env("SLURM_CONF", conf);
        command
    }

    /// What slurm.conf must name, as the release does not lie where it was built to lie.
    pub(crate) fn plugin_dir(&self) -> PathBuf {
        self.dir.join("lib/slurm")
    }
}

/// A directory with munged running, and slurmctld once it is started. Both end with it.
pub(crate) struct Testbed {
    release: Release,
    port: u16,
    // Dropped in this order: slurmctld needs munged, and both their directory.
    slurmctld: Option<Guard>,
    _munged: Guard,
    dir: TempDir,
}

impl Testbed {
    pub(crate) fn new(release: Release) -> Self {
        // Short, because a socket's path is at most 107 bytes, and open to munged's strict eyes.
        let dir = TempDir::with_prefix_in("sc", "/tmp").unwrap();
        let mode = |path: &Path, mode| {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        };
        mode(dir.path(), 0o755);
        for name in ["munge", "run", "state", "etc", "bin"] {
            fs::create_dir(dir.path().join(name)).unwrap();
            mode(&dir.path().join(name), if name == "munge" { 0o700 } else { 0o755 });
        }
        let path = |name: &str| dir.path().join(name).display().to_string();
        // Its own, so that no other test's slurmctld on a port once ours would answer.
        let mut key = [0; 128];
        File::open("/dev/urandom").unwrap().read_exact(&mut key).unwrap();
        fs::write(path("munge/key"), key).unwrap();
        mode(Path::new(&path("munge/key")), 0o600);
        let mut munged = Command::new(release.dir.join("sbin/munged"));
        munged
            .args(["--foreground", "--num-threads=2"])
            .arg(format!("--key-file={}", path("munge/key")))
            .arg(format!("--socket={}", path("run/munge")))
            .arg(format!("--pid-file={}", path("munge/pid")))
            .arg(format!("--log-file={}", path("munge/log")))
            .arg(format!("--seed-file={}", path("munge/seed")));
        let munged = Guard::spawn(&munged);
        wait("munged's socket", || fs::exists(path("run/munge")).unwrap().then_some(()));
        let bed = Self { release, port: 0, slurmctld: None, _munged: munged, dir };
        // 22.05 knows no "disabled", and the later ones need no cgroups for a controller.
        let old = bed.version() < SlurmVersion::new(23, 11);
        bed.write(
            "cgroup.conf",
            &format!("CgroupPlugin={}\n", if old { "cgroup/v1" } else { "disabled" }),
        );
        bed
    }

    pub(crate) fn version(&self) -> SlurmVersion {
        self.release.version
    }

    /// Writes a file beside slurm.conf.
    pub(crate) fn write(&self, name: &str, text: &str) {
        let path = self.dir.path().join("etc").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// The path of a program that does nothing.
    pub(crate) fn program(&self, name: &str) -> String {
        let path = self.dir.path().join("bin").join(name);
        fs::write(&path, "#!/bin/sh\n").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path.display().to_string()
    }

    /// Starts slurmctld on `text` and what it needs besides, waits until it answers, and says how long that took.
    pub(crate) fn start(&mut self, text: &str) -> Duration {
        for _ in 0..5 {
            if let Some(time) = self.try_start(text) {
                return time;
            }
        }
        panic!("five free ports were taken by others:\n{}", self.log());
    }

    /// `None` if another process took the port in the meantime.
    fn try_start(&mut self, text: &str) -> Option<Duration> {
        self.port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        self.write("slurm.conf", &format!("{}{text}", self.base()));
        // Nothing is carried over from the one before.
        self.slurmctld = None;
        let state = self.dir.path().join("state");
        fs::remove_dir_all(&state).unwrap();
        fs::create_dir(&state).unwrap();
        let _ = fs::remove_file(self.dir.path().join("slurmctld.log"));
        let mut slurmctld = Command::new(self.release.dir.join("sbin/slurmctld"));
        slurmctld.args(["-D", "-c"]).env("SLURM_CONF", self.conf());
        let started = Instant::now();
        self.slurmctld = Some(Guard::spawn(&slurmctld));
        let answers = || self.command("scontrol", &["ping"]).status.success();
        let up = wait("slurmctld", || {
            let ended = self.slurmctld.as_ref().is_some_and(Guard::has_ended);
            if ended { Some(false) } else { answers().then_some(true) }
        });
        if !up && self.log().contains("Address already in use") {
            return None;
        }
        assert!(up, "slurmctld {} ended:\n{}\n{text}", self.version(), self.log());
        Some(started.elapsed())
    }

    /// Gives the running slurmctld another configuration.
    pub(crate) fn reconfigure(&self, text: &str) {
        self.write("slurm.conf", &format!("{}{text}", self.base()));
        self.ask("scontrol", &["reconfigure"]);
    }

    fn conf(&self) -> PathBuf {
        self.dir.path().join("etc/slurm.conf")
    }

    /// What any slurmctld needs to run here: its own directories, port and plugins.
    fn base(&self) -> String {
        let port = self.port;
        let dir = self.dir.path().display();
        let plugins = self.release.plugin_dir();
        let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
        let user = Command::new("id").arg("-un").output().unwrap().stdout;
        let user = String::from_utf8(user).unwrap();
        format!(
            "SlurmctldHost={}(127.0.0.1)\nSlurmUser={user}SlurmdUser={user}SlurmctldPort={port}\n\
             PluginDir={}\nAuthType=auth/munge\nCredType=cred/munge\nAuthInfo=socket={dir}/run/munge\n\
             StateSaveLocation={dir}/state\nSlurmdSpoolDir={dir}/run/%n\nSlurmctldPidFile={dir}/run/pid\n\
             SlurmctldLogFile={dir}/slurmctld.log\nProctrackType=proctrack/linuxproc\nTaskPlugin=task/none\n\
             SelectType=select/cons_tres\nSelectTypeParameters=CR_CPU_Memory\nMailProg=/bin/true\n",
            host.trim(),
            plugins.display(),
        )
    }

    /// What a client command prints.
    pub(crate) fn ask(&self, program: &str, arguments: &[&str]) -> String {
        let output = self.command(program, arguments);
        assert!(output.status.success(), "{program} {arguments:?}: {output:?}\n{}", self.log());
        String::from_utf8(output.stdout).unwrap()
    }

    fn command(&self, program: &str, arguments: &[&str]) -> Output {
        self.release.client(program, &self.conf()).args(arguments).output().unwrap()
    }

    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.dir.path().join("slurmctld.log")).unwrap_or_default()
    }

    /// The log's lines that an operator would have to worry about.
    pub(crate) fn complaints(&self) -> Vec<String> {
        let harmless = [
            // A first start finds no state to recover.
            "state file",
            "Trying backup state save file",
            // The machine is busy with other tests.
            "High latency for 1000 calls to gettimeofday",
            "very large processing time",
        ];
        let worries = ["error", "fatal", "defunct", "warning"];
        let log = self.log();
        log.lines()
            .filter(|line| worries.iter().any(|word| line.to_lowercase().contains(word)))
            .filter(|line| !harmless.iter().any(|phrase| line.contains(phrase)))
            .map(str::to_owned)
            .collect()
    }
}

/// A process group that ends with this value, and with the thread that started it.
struct Guard(std::cell::RefCell<Child>);

impl Guard {
    fn spawn(command: &Command) -> Self {
        let mut guarded = Command::new("setpriv");
        guarded
            .args(["--pdeathsig", "KILL", "--"])
            .arg(command.get_program())
            .args(command.get_args());
        guarded.envs(command.get_envs().filter_map(|(key, value)| Some((key, value?))));
        let quiet = guarded.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Self(quiet.process_group(0).spawn().unwrap().into())
    }

    fn has_ended(&self) -> bool {
        self.0.borrow_mut().try_wait().unwrap().is_some()
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let group = format!("kill -s KILL -- -{}", self.0.borrow().id());
        let _ = Command::new("sh").args(["-c", &group]).stderr(Stdio::null()).status();
        let _ = self.0.borrow_mut().wait();
    }
}

/// Asks again and again, up to a deadline.
#[expect(clippy::disallowed_methods, reason = "the one place that sleeps, between two looks")]
pub(crate) fn wait<T>(what: &str, look: impl Fn() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "no {what} after {PATIENCE:?}");
        std::thread::sleep(Duration::from_millis(10));
    }
}
