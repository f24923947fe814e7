//! The loopback cloud, in a process of its own.

use crate::{BURST, LATENCY, RATE};
use cloud_sim::{Cloud, CloudSettings, Throttle};
use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{ChildStdout, Command, Stdio};
use std::time::Duration;

/// Serves until its standard input ends, then tells what it was asked.
pub fn serve(directory: &str, throttled: bool) {
    let mut settings = CloudSettings { latency_millis: 50, threads: 1, ..CloudSettings::default() };
    assert!((LATENCY - 0.05).abs() < f64::EPSILON);
    settings.timing.provision = 4.0;
    settings.timing.vnic = 1.0;
    settings.keep_requests = 10_000;
    if throttled {
        let operation = "LaunchInstance".to_owned();
        settings.throttle = vec![Throttle { operation, per_second: RATE, burst: BURST }];
    }
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a run time");
    let cloud = runtime.block_on(Cloud::start(settings)).expect("a cloud");
    cloud.credentials().write_config(Path::new(directory)).expect("written");
    println!("{}", cloud.endpoint());
    let _ = std::io::stdin().lock().read_line(&mut String::new());
    let admin = cloud.admin();
    let rejected = admin.requests().iter().filter(|request| request.status == Some(429)).count();
    let counts = serde_json::to_string(&admin.counts()).expect("JSON");
    println!("{rejected} {counts}");
}

/// The process.
pub struct Child {
    process: std::process::Child,
    output: BufReader<ChildStdout>,
    pub endpoint: String,
}

/// What a cloud was asked.
pub struct Asked {
    pub rejected: f64,
    counts: BTreeMap<String, u32>,
}

impl Child {
    pub fn start(directory: &Path, throttled: bool) -> Self {
        let mut process = Command::new(std::env::current_exe().expect("this program has a path"))
            .arg("serve")
            .arg(directory)
            .arg(if throttled { "throttled" } else { "free" })
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("this program runs");
        let mut output = BufReader::new(process.stdout.take().expect("a pipe"));
        let mut endpoint = String::new();
        output.read_line(&mut endpoint).expect("it says where it listens");
        Self { process, output, endpoint: endpoint.trim().to_owned() }
    }

    pub fn stop(mut self) -> Asked {
        drop(self.process.stdin.take());
        let mut line = String::new();
        self.output.read_line(&mut line).expect("it says what it was asked");
        self.process.wait().expect("it ends");
        let (rejected, counts) = line.trim().split_once(' ').expect("two words");
        let counts = serde_json::from_str(counts).expect("JSON");
        Asked { rejected: rejected.parse().expect("a number"), counts }
    }
}

impl Asked {
    pub fn launches(&self) -> f64 {
        self.counts.get("LaunchInstance").copied().map_or(0.0, f64::from)
    }

    pub fn others(&self) -> f64 {
        f64::from(self.counts.values().sum::<u32>()) - self.launches()
    }

    pub fn kinds(&self) -> String {
        let kinds: Vec<String> =
            self.counts.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
        kinds.join(", ")
    }
}

/// How long the client waits at most.
pub const DEADLINE: Duration = Duration::from_mins(5);
