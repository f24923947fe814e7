//! The loopback cloud, in a process of its own.

use crate::{BOOT, BURST, LATENCY, RATE};
use cloud_sim::{CloudSettings, Throttle};
use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{ChildStdout, Command, Stdio};
use std::time::Duration;

/// What a cloud is like.
#[derive(Clone, Copy, PartialEq)]
pub enum Cloud {
    /// It takes everything, and machines boot in four seconds.
    Free,
    /// It takes so many launches a second.
    Throttled,
    /// It takes everything, and machines boot in a second.
    Start,
    /// It takes so many launches a second, and machines boot in a second.
    ThrottledStart,
}

impl Cloud {
    const ALL: [Self; 4] = [Self::Free, Self::Throttled, Self::Start, Self::ThrottledStart];

    fn word(self) -> &'static str {
        match self {
            Self::Free => "free",
            Self::Throttled => "throttled",
            Self::Start => "start",
            Self::ThrottledStart => "throttled-start",
        }
    }
}

/// Serves until its standard input ends; then tells what it was asked.
pub fn serve(directory: &str, kind: &str, address: &str) {
    let kind = Cloud::ALL.into_iter().find(|cloud| cloud.word() == kind).expect("a kind of cloud");
    let mut settings = CloudSettings { latency_millis: 50, threads: 1, ..CloudSettings::default() };
    address.clone_into(&mut settings.listen);
    assert!((LATENCY - 0.05).abs() < f64::EPSILON);
    let boots_fast = matches!(kind, Cloud::Start | Cloud::ThrottledStart);
    settings.timing.provision = if boots_fast { BOOT } else { 4.0 };
    settings.timing.vnic = settings.timing.provision / 4.0;
    settings.keep_requests = 10_000;
    if matches!(kind, Cloud::Throttled | Cloud::ThrottledStart) {
        let operation = "LaunchInstance".to_owned();
        settings.throttle = vec![Throttle { operation, per_second: RATE, burst: BURST }];
    }
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a run time");
    let cloud = runtime.block_on(cloud_sim::Cloud::start(settings)).expect("a cloud");
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
    pub fn start(directory: &Path, kind: Cloud, address: &str) -> Self {
        let mut process = Command::new(std::env::current_exe().expect("this program has a path"))
            .arg("serve")
            .arg(directory)
            .arg(kind.word())
            .arg(address)
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
