//! The controller in memory against Slurm's rules, one test a rule.

mod jobs;
mod power;
mod registration;

use hostlist::{Hostlist, NodeName};
use slurmconf::SlurmVersion;
use slurmctl::{
    JobId, JobState,
    memory::{Call, JobSpec, MemorySlurm, MemorySlurmSettings, Registration},
};
use std::time::Duration;
use tokio::time::{Instant, advance};

const OLD: SlurmVersion = SlurmVersion::new(22, 5).patch(8);
const NEW: SlurmVersion = SlurmVersion::new(26, 5).patch(5);

fn list(text: &str) -> Hostlist {
    text.parse().unwrap()
}

fn name(text: &str) -> NodeName {
    text.parse().unwrap()
}

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// `ResumeTimeout` 60, `SuspendTime` 30, `SuspendTimeout` 10, requeue after 6.
fn settings(version: SlurmVersion) -> MemorySlurmSettings {
    let mut settings = MemorySlurmSettings::cloud(&list("n[1-4]"));
    settings.version = version;
    settings.resume_timeout = secs(60);
    settings.suspend_time = Some(secs(30));
    settings.suspend_timeout = secs(10);
    settings.requeue_delay = secs(6);
    settings.latency = Duration::ZERO;
    settings
}

fn slurm() -> MemorySlurm {
    MemorySlurm::new(settings(NEW))
}

fn job(nodes: usize) -> JobSpec {
    JobSpec::new(nodes, secs(20))
}

/// Lets so many seconds pass, one at a time; the calls with the second they came at.
async fn run(slurm: &MemorySlurm, seconds: u64) -> Vec<(u64, Call)> {
    let mut calls = Vec::new();
    for second in 1..=seconds {
        advance(secs(1)).await;
        calls.extend(slurm.tick().into_iter().map(|call| (second, call)));
    }
    calls
}

fn resumed(calls: &[Call]) -> String {
    match calls {
        [Call::Resume { nodes, request }] => {
            assert_eq!(*nodes, request.all);
            nodes.to_string()
        }
        other => format!("{other:?}"),
    }
}

fn up(slurm: &MemorySlurm, node: &str) -> Registration {
    slurm.register(&name(node), "10.0.0.9", Instant::now())
}

fn state(slurm: &MemorySlurm, node: &str) -> String {
    slurm.node(node).unwrap().state.to_string()
}

fn reason(slurm: &MemorySlurm, node: &str) -> String {
    slurm.node(node).unwrap().reason_text().to_owned()
}

fn job_state(slurm: &MemorySlurm, id: JobId) -> JobState {
    slurm.job(id).unwrap().state
}

/// A job on nodes that have come up.
async fn running(slurm: &MemorySlurm, nodes: usize) -> JobId {
    let id = slurm.submit_job(job(nodes));
    let calls = slurm.tick();
    let [Call::Resume { nodes, .. }] = &calls[..] else { panic!("{calls:?}") };
    for node in nodes.node_names().unwrap() {
        assert_eq!(up(slurm, node.as_str()), Registration::Accepted);
    }
    assert_eq!(run(slurm, 1).await, []);
    assert_eq!(job_state(slurm, id), JobState::Running);
    id
}
