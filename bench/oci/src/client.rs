//! The client, in a process of its own, so that nothing else counts.

use crate::cloud::DEADLINE;
use crate::{CONCURRENCY, LATENCY};
use cloud_core::pace::{Pace, Pacer};
use cloud_core::{
    ImageId, InstanceFilter, InstanceId, InstanceName, InstanceSpec, InstanceState, LaunchToken,
    Provider as _, ShapeName, SubnetId, Tags, Zone, http,
};
use cloud_oci::{Clock, Config, LaunchOptions, Oci, Overrides, PrivateKey};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant, SystemTime};
use tokio::task::JoinSet;

/// How many signatures are made to know what one takes.
const SIGNATURES: u32 = 200;

/// What a run took.
pub struct Spent {
    /// Seconds until the last launch was accepted.
    pub launching: f64,
    /// Seconds until all ran and had their addresses.
    pub all: f64,
    /// Seconds of CPU until the last launch was accepted, without those before the first.
    pub cpu_launching: f64,
    /// Seconds of CPU from the first request to the last address: all but the start of the process.
    pub cpu_whole: f64,
    /// Seconds of CPU from the start of the process to the last address.
    pub cpu: f64,
    /// Seconds of CPU for one signature by itself.
    pub signature: f64,
    /// The most memory that was held.
    pub megabytes: f64,
}

impl Spent {
    /// What so many requests need for their signatures alone, in seconds of CPU.
    pub fn signatures(&self, requests: f64) -> f64 {
        requests * self.signature
    }

    /// What has no bar.
    pub fn tell(&self, requests: f64) {
        let (launching, all) = (self.launching, self.all);
        println!("{:>30} {launching:.2} s launching, {all:.2} s in all", "wall");
        let (whole, process) = (self.cpu_whole * 1e3, self.cpu * 1e3);
        println!("{:>30} {whole:.1} ms whole, {process:.1} with the start of the process", "CPU");
        let (one, all) = (self.signature * 1e3, self.signatures(requests) * 1e3);
        println!("{:>30} {all:.1} ms of the whole for signatures, {one:.2} for each", "CPU");
    }
}

/// At which pace requests are sent.
#[derive(Clone, Copy, PartialEq)]
pub enum Speed {
    /// As fast as so many at a time can be.
    Full,
    /// As the programs send them where nothing else is configured: slowly at first.
    Usual,
}

impl Speed {
    pub fn word(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Usual => "usual",
        }
    }

    /// What of it is worth telling.
    pub fn told(self) -> &'static str {
        match self {
            Self::Full => "",
            Self::Usual => ", as the programs do",
        }
    }

    /// Requests that are sent in a second at the most.
    pub fn most(self) -> f64 {
        self.pace().most
    }

    fn pace(self) -> Pace {
        // A little more than so many launches at a time can use; a cloud that takes less will say so.
        let rate = f64::from(CONCURRENCY) / LATENCY * 1.25;
        let usual = Pace::default();
        match self {
            Self::Usual => usual,
            Self::Full => {
                Pace { most: rate, burst: CONCURRENCY, concurrency: CONCURRENCY, ..usual }
            }
        }
    }
}

/// Runs a client as a child.
pub fn spawn((count, speed): (u32, Speed), endpoint: &str, config: &Path) -> Spent {
    let output = Command::new(std::env::current_exe().expect("this program has a path"))
        .args(["client", &count.to_string(), speed.word(), endpoint])
        .arg(config)
        .output()
        .expect("this program runs");
    let text = String::from_utf8_lossy(&output.stdout);
    let said: Value = serde_json::from_str(&text)
        .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)));
    let number = |key: &str| said[key].as_f64().expect("a number");
    Spent {
        launching: number("launching"),
        all: number("all"),
        cpu_launching: number("cpu_launching"),
        cpu_whole: number("cpu_whole"),
        cpu: number("cpu"),
        signature: number("signature"),
        megabytes: number("megabytes"),
    }
}

/// Launches, waits until all run, asks for their addresses, and tells what that took.
pub fn run(count: u32, speed: Speed, endpoint: &str, config: &str) -> Value {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a run time").block_on(work(count, speed, endpoint, config))
}

async fn work(count: u32, speed: Speed, endpoint: &str, config: &str) -> Value {
    let cloud = Arc::new(connect(speed, endpoint, config).await);
    let filter = InstanceFilter::tagged(Tags::from([("cluster", "bench")]));
    let (begin, started) = (Instant::now(), cpu_seconds());
    cloud.list(&filter).await.expect("a listing");
    let (launch, cpu) = (Instant::now(), cpu_seconds());
    let ids = launch_all(&cloud, count).await;
    let (launching, cpu_launching) = (launch.elapsed().as_secs_f64(), cpu_seconds() - cpu);
    until_all_run(&cloud, &filter, ids.len()).await;
    if count > 0 {
        assert_eq!(cloud.addresses(&ids).await.expect("addresses").len(), ids.len());
    }
    let (all, cpu) = (begin.elapsed().as_secs_f64(), cpu_seconds());
    json!({
        "launching": launching,
        "all": all,
        "cpu_launching": cpu_launching,
        "cpu_whole": cpu - started,
        "cpu": cpu,
        "megabytes": peak_megabytes(),
        "signature": signature(Path::new(config)),
    })
}

/// Lists at a growing interval until so many instances run.
async fn until_all_run(cloud: &Oci, filter: &InstanceFilter, count: usize) {
    let (deadline, mut pause) = (Instant::now() + DEADLINE, Duration::from_secs(1));
    loop {
        tokio::time::sleep(pause).await;
        let listed = cloud.list(filter).await.expect("a listing");
        let running = listed.iter().filter(|it| it.state == InstanceState::Running).count();
        if running >= count {
            return;
        }
        assert!(Instant::now() < deadline, "{running} of {count} run");
        pause = (pause * 3 / 2).min(Duration::from_secs(10));
    }
}

/// Seconds of CPU that a signature takes by itself, with the key that the requests are signed with.
fn signature(config: &Path) -> f64 {
    let pem = std::fs::read_to_string(config.with_file_name("key.pem")).expect("a key");
    let key = PrivateKey::from_pem(&pem, None).expect("an RSA key");
    let begin = cpu_seconds();
    for _ in 0..SIGNATURES {
        key.sign(b"date: Thu, 05 Jan 2014 21:31:40 GMT").expect("a signature");
    }
    (cpu_seconds() - begin) / f64::from(SIGNATURES)
}

/// As a program does it: from the configuration file.
async fn connect(speed: Speed, endpoint: &str, config: &str) -> Oci {
    let sources = cloud_core::Sources::of_system(None, BTreeMap::new());
    let overrides = Overrides {
        file: Some(config.into()),
        endpoint: Some(endpoint.to_owned()),
        ..Overrides::default()
    };
    let config = Config::load(&sources, &overrides, SystemTime::now()).expect("a configuration");
    let mut site = LaunchOptions::new("ocid1.compartment.oc1..aaaacomp");
    site.subnet = Some(SubnetId::new("ocid1.subnet.oc1.phx.aaaasub"));
    site.zone = Some(Zone::new("Uocm:PHX-AD-1"));
    let clock = Clock::new(SystemTime::now);
    let http = http::ClientConfig::default();
    Oci::connect(config, site, http, Pacer::new(speed.pace()), clock).await.expect("a provider")
}

/// Launches with so many workers as there may be launches at a time.
async fn launch_all(cloud: &Arc<Oci>, count: u32) -> Vec<InstanceId> {
    let next = Arc::new(AtomicU32::new(0));
    let mut workers = JoinSet::new();
    for _ in 0..CONCURRENCY {
        let (cloud, next) = (Arc::clone(cloud), Arc::clone(&next));
        workers.spawn(async move {
            let mut ids = Vec::new();
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= count {
                    return ids;
                }
                ids.push(cloud.launch(&spec(number)).await.expect("accepted").id);
            }
        });
    }
    workers.join_all().await.concat()
}

fn spec(number: u32) -> InstanceSpec {
    let name = format!("vm-standard-e5-ad1-{number:04}");
    let mut spec = InstanceSpec::new(
        InstanceName::new(name.clone()),
        ShapeName::new("VM.Standard.E5.Flex.1.8"),
        ImageId::new("ocid1.image.oc1.phx.img001"),
    );
    spec.tags = Tags::from([("cluster", "bench"), ("type", "compute"), ("node", name.as_str())]);
    spec.ssh_keys = vec!["ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIExample slurm@mgmt".to_owned()];
    spec.user_data = Some(cloud_core::Secret::new("#!/bin/sh\nsystemctl start slurmd\n".repeat(8)));
    spec.token = LaunchToken::new(format!("bench:{name}:1")).ok();
    spec
}

fn cpu_seconds() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a timespec to write to.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut time) };
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn peak_megabytes() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or_default();
    line.trim().trim_end_matches(" kB").parse::<f64>().unwrap_or_default() / 1024.0
}
