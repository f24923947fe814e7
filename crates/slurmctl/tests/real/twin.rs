//! The controller in memory and a real one do the same, step by step.

use crate::real::testbed::{Guard, PATIENCE, Testbed};
use hostlist::Hostlist;
use slurmconf::SlurmVersion;
use slurmctl::{
    BatchJob, Controller, JobFilter, NodeAction, Reason,
    memory::{Call, MemorySlurm, MemorySlurmSettings},
};
use std::{
    collections::BTreeMap,
    fmt::Write as _,
    time::{Duration, Instant},
};

/// What is done to both.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// A job for one node.
    Job(&'static str),
    /// A state, with a reason or without.
    Set(&'static str, NodeAction, &'static str),
    Reboot(&'static str),
    /// A machine comes up, and its slurmd registers.
    Up(&'static str),
    /// A machine vanishes.
    Gone(&'static str),
}

async fn take(controller: &dyn Controller, step: Step) -> Result<(), String> {
    let kind = |error: slurmctl::Error| format!("{:?}", error.kind());
    match step {
        Step::Job(node) => {
            let mut job = BatchJob::reboot("twin", "main", node.parse().unwrap());
            job.reboot = false;
            controller.submit(&job).await.map(drop).map_err(kind)
        }
        Step::Set(nodes, to, why) => {
            let reason = Some(Reason::new(why)).filter(|_| !why.is_empty());
            let nodes: Hostlist = nodes.parse().unwrap();
            controller.set_state(&nodes, to, reason.as_ref()).await.map_err(kind)
        }
        Step::Reboot(nodes) => {
            let why = Reason::new("rebuild image:x");
            controller.reboot(&nodes.parse().unwrap(), &why).await.map_err(kind)
        }
        Step::Up(_) | Step::Gone(_) => Ok(()),
    }
}

/// All nodes that are not as they were in the beginning, and all jobs.
async fn look(controller: &dyn Controller) -> String {
    let mut text = String::new();
    for node in controller.nodes(None).await.unwrap() {
        let state = node.state.to_string();
        if state != "IDLE+CLOUD+POWERED_DOWN" || node.reason.is_some() {
            writeln!(text, "{} {state} {:?}", node.name, node.reason_text()).unwrap();
        }
    }
    let mut jobs = controller.jobs(JobFilter::All).await.unwrap();
    jobs.sort_by_key(|job| job.id);
    for job in jobs {
        writeln!(text, "job {} {} on {} restarts {}", job.id, job.state, job.nodes, job.restarts)
            .unwrap();
    }
    text
}

/// The nodes that each program was called for so far; how they were grouped is a matter of moments.
fn tell(calls: &[(&str, String)]) -> String {
    let mut text = String::new();
    for program in ["resume", "suspend", "resumefail", "reboot"] {
        let lists = calls.iter().filter(|call| call.0 == program).map(|call| &call.1);
        let mut nodes: Vec<String> =
            lists.flat_map(|list| list.parse::<Hostlist>().unwrap().to_vec()).collect();
        nodes.sort_unstable();
        writeln!(text, "{program}: {}", nodes.join(" ")).unwrap();
    }
    text
}

/// What the one in memory looks like after each step and some time; nothing where no time is given,
/// as the real one may already be further on.
fn in_memory(settings: MemorySlurmSettings, steps: &'static [(Step, u64)]) -> Vec<Option<String>> {
    let run = async move {
        let slurm = MemorySlurm::new(settings);
        let mut calls = Vec::new();
        let mut looks = Vec::new();
        for (step, seconds) in steps {
            let result = take(&slurm, *step).await;
            match step {
                Step::Up(node) => {
                    let now = tokio::time::Instant::now();
                    let _ = slurm.register(&node.parse().unwrap(), "127.0.0.1", now);
                }
                Step::Gone(node) => slurm.lost(&node.parse().unwrap()),
                Step::Job(_) | Step::Set(..) | Step::Reboot(_) => {}
            }
            for _ in 0..*seconds {
                tokio::time::advance(Duration::from_secs(1)).await;
                calls.extend(slurm.tick().into_iter().map(named));
            }
            let seen = format!("{result:?}\n{}{}", look(&slurm).await, tell(&calls));
            looks.push(Some(seen).filter(|_| *seconds > 0));
        }
        looks
    };
    // A clock of its own, which the real one's must not be.
    let thread = std::thread::spawn(move || {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        runtime.enable_time().start_paused(true).build().unwrap().block_on(run)
    });
    thread.join().unwrap()
}

fn named(call: Call) -> (&'static str, String) {
    match call {
        Call::Resume { nodes, .. } | Call::RebootJob { nodes, .. } => ("resume", nodes.to_string()),
        Call::Suspend { nodes } => ("suspend", nodes.to_string()),
        Call::ResumeFail { nodes } => ("resumefail", nodes.to_string()),
        Call::Reboot { nodes } => ("reboot", nodes.to_string()),
    }
}

async fn compare(series: &str, resume_timeout: u64, steps: &'static [(Step, u64)]) {
    let local = Testbed::local(9);
    let conf = format!(
        "SuspendTime=600\nSuspendTimeout=2\nResumeTimeout={resume_timeout}\nSlurmdTimeout=6\n\
         SlurmdParameters=config_overrides\nNodeName=n[1-9] {local} CPUs=2 RealMemory=1000 State=CLOUD\n\
         PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP\n"
    );
    let bed = Testbed::start(series, &conf).await;
    let slurm = bed.scontrol().await;
    let looks = in_memory(settings(bed.version(), resume_timeout), steps);
    let mut machines: BTreeMap<&str, Guard> = BTreeMap::new();
    for ((step, _), expected) in steps.iter().zip(looks) {
        let result = take(&slurm, *step).await;
        match step {
            Step::Up(node) => {
                // The one before has to go first: it holds the port.
                machines.remove(node);
                machines.insert(*node, bed.slurmd(node));
            }
            Step::Gone(node) => drop(machines.remove(node)),
            Step::Job(_) | Step::Set(..) | Step::Reboot(_) => {}
        }
        let Some(expected) = expected else { continue };
        let deadline = Instant::now() + PATIENCE;
        loop {
            let found = format!("{result:?}\n{}{}", look(&slurm).await, tell(&calls(&bed)));
            if found == expected {
                break;
            }
            assert!(
                Instant::now() < deadline,
                "after {step:?}\nin memory: {expected}\n{series}: {found}\n{}",
                bed.log()
            );
            // A port that was free when it was chosen may be in use for a moment. Only a slurmd that is
            // to come up is started again: one that ends with its node must stay away.
            if let Step::Up(node) = step
                && machines.get(node).and_then(Guard::ended).is_some()
            {
                machines.insert(*node, bed.slurmd(node));
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

/// The calls that the real one has made so far.
fn calls(bed: &Testbed) -> Vec<(&'static str, String)> {
    let of = |name: &'static str| bed.calls(name).into_iter().map(move |nodes| (name, nodes));
    ["resume", "suspend", "resumefail", "reboot"].into_iter().flat_map(of).collect()
}

fn settings(version: SlurmVersion, resume_timeout: u64) -> MemorySlurmSettings {
    let mut settings = MemorySlurmSettings::cloud(&"n[1-9]".parse().unwrap());
    settings.version = version;
    settings.resume_timeout = Duration::from_secs(resume_timeout);
    settings.suspend_time = Some(Duration::from_mins(10));
    settings.suspend_timeout = Duration::from_secs(2);
    settings.slurmd_timeout = Duration::from_secs(6);
    settings
}

/// One rule after another, each on a node of its own.
const RULES: &[(Step, u64)] = &[
    (Step::Set("n3", NodeAction::Drain, "hands off"), 1),
    (Step::Set("n3", NodeAction::Undrain, ""), 1),
    (Step::Set("n3", NodeAction::Down, "broken"), 1),
    (Step::Set("n3", NodeAction::Undrain, ""), 1),
    (Step::Set("n3", NodeAction::Resume, ""), 1),
    (Step::Set("n3", NodeAction::Resume, ""), 1),
    (Step::Job("n1"), 0),
    (Step::Job("n2"), 2),
    (Step::Set("n2", NodeAction::Down, "cloud: quota"), 2),
    (Step::Job("n5"), 2),
    (Step::Set("n5", NodeAction::Drain, "hands off"), 2),
    (Step::Set("n4,n6", NodeAction::PowerUp, ""), 2),
    (Step::Set("n4", NodeAction::Drain, "hands off"), 2),
    (Step::Set("n6", NodeAction::PowerDown, ""), 2),
    (Step::Set("n6", NodeAction::PowerUp, ""), 3),
    (Step::Set("n1", NodeAction::PowerDownForce, "cloud: no"), 0),
    (Step::Set("n2", NodeAction::PowerDown, ""), 0),
    (Step::Set("n4", NodeAction::PowerDownForce, ""), 0),
    (Step::Set("n7", NodeAction::PowerDown, ""), 5),
    (Step::Reboot("n8"), 2),
    (Step::Reboot("n6"), 2),
    // Sorted, the first of these comes before the nodes, and the other after them.
    (Step::Set("n8,a0,n9", NodeAction::Drain, "partly"), 1),
    (Step::Set("n8,unknown,n9", NodeAction::Undrain, ""), 1),
];

/// `ResumeTimeout`, and the ways back from it.
const TIMEOUT: &[(Step, u64)] = &[
    (Step::Job("n1"), 8),
    (Step::Set("n1", NodeAction::Resume, ""), 1),
    (Step::Set("n2", NodeAction::PowerUp, ""), 8),
    (Step::Set("n2", NodeAction::PowerDown, ""), 5),
    (Step::Set("n3", NodeAction::PowerUp, ""), 8),
    (Step::Up("n3"), 2),
];

/// Machines that come up, vanish, come again, and are rebooted.
const MACHINES: &[(Step, u64)] = &[
    (Step::Set("n1", NodeAction::PowerUp, ""), 2),
    (Step::Up("n1"), 2),
    (Step::Gone("n1"), 10),
    (Step::Up("n1"), 2),
    (Step::Reboot("n1"), 2),
    (Step::Up("n1"), 2),
    (Step::Up("n2"), 2),
    (Step::Set("n1", NodeAction::PowerDown, "enough"), 5),
];

#[tokio::test]
async fn rules_on_22_05() {
    compare("22.05", 600, RULES).await;
}

#[tokio::test]
async fn rules_on_24_11() {
    compare("24.11", 600, RULES).await;
}

#[tokio::test]
async fn rules_on_26_05() {
    compare("26.05", 600, RULES).await;
}

#[tokio::test]
async fn machines_on_22_05() {
    compare("22.05", 600, MACHINES).await;
}

#[tokio::test]
async fn machines_on_24_11() {
    compare("24.11", 600, MACHINES).await;
}

#[tokio::test]
async fn machines_on_26_05() {
    compare("26.05", 600, MACHINES).await;
}

#[tokio::test]
async fn timeout_on_22_05() {
    compare("22.05", 4, TIMEOUT).await;
}

#[tokio::test]
async fn timeout_on_24_11() {
    compare("24.11", 4, TIMEOUT).await;
}

#[tokio::test]
async fn timeout_on_26_05() {
    compare("26.05", 4, TIMEOUT).await;
}
