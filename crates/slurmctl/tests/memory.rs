//! The controller in memory against Slurm's rules, one test a rule.

#![expect(clippy::panic, clippy::unwrap_used, reason = "helpers of tests")]

use hostlist::{Hostlist, NodeName};
use slurmconf::SlurmVersion;
use slurmctl::{
    Controller as _, ErrorKind, JobId, JobState, Jobs, NodeAction, NodeAddress, Reason,
    memory::{Call, JobSpec, MemorySlurm, NodeSpec, Registration, ReturnToService, Settings},
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
fn settings(version: SlurmVersion) -> Settings {
    let mut settings = Settings::cloud(&list("n[1-4]"));
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

#[tokio::test(start_paused = true)]
async fn a_job_runs_and_its_nodes_go_when_they_were_idle() {
    let slurm = slurm();
    let id = slurm.submit_job(job(2));
    let calls = slurm.tick();
    assert_eq!(resumed(&calls), "n[1-2]");
    let Call::Resume { request, .. } = &calls[0] else { unreachable!() };
    assert_eq!(request.jobs[0].id, id);
    assert_eq!(request.jobs[0].nodes.to_string(), "n[1-2]");
    assert_eq!(state(&slurm, "n1"), "ALLOCATED+CLOUD+NOT_RESPONDING+POWERING_UP");
    assert_eq!(job_state(&slurm, id), JobState::Configuring);
    assert_eq!(up(&slurm, "n1"), Registration::Accepted);
    assert_eq!(run(&slurm, 5).await, []);
    assert_eq!(job_state(&slurm, id), JobState::Configuring, "one node is missing");
    assert_eq!(up(&slurm, "n2"), Registration::Accepted);
    assert_eq!(run(&slurm, 1).await, []);
    assert_eq!(job_state(&slurm, id), JobState::Running);
    let calls = run(&slurm, 60).await;
    assert_eq!(job_state(&slurm, id), JobState::Completed);
    // Runs for 20, idle for more than 30.
    assert_eq!(calls, [(51, Call::Suspend { nodes: list("n[1-2]") })]);
    assert_eq!(state(&slurm, "n1"), "IDLE+CLOUD+POWERING_DOWN");
    assert_eq!(run(&slurm, 3).await, []);
    assert_eq!(state(&slurm, "n1"), "IDLE+CLOUD+POWERED_DOWN");
    assert_eq!(slurm.next_event(), None);
}

#[tokio::test(start_paused = true)]
async fn power_down_force_gives_a_node_back_with_its_reason() {
    for version in [OLD, NEW] {
        let slurm = MemorySlurm::new(settings(version));
        let id = slurm.submit_job(job(2));
        assert_eq!(resumed(&slurm.tick()), "n[1-2]");
        let why = Reason::new("cloud: quota exceeded");
        slurm.set_state(&list("n1"), NodeAction::PowerDownForce, Some(&why)).await.unwrap();
        let queued = slurm.job(id).unwrap();
        assert_eq!((queued.state, queued.restarts), (JobState::Pending, 1), "requeued at once");
        assert_eq!(queued.reason.as_deref(), Some("BeginTime"));
        assert_eq!(run(&slurm, 1).await, [(1, Call::Suspend { nodes: list("n1") })]);
        // n2 still comes up, and serves the job when its turn comes; n1 is not off yet.
        let calls = run(&slurm, 10).await;
        assert_eq!(state(&slurm, "n1"), "IDLE+CLOUD+POWERING_DOWN");
        assert_eq!(calls.len(), 1, "{calls:?}");
        assert_eq!((calls[0].0, resumed(&[calls[0].1.clone()])), (5, "n3".to_owned()));
        assert_eq!(run(&slurm, 1).await, []);
        assert_eq!(state(&slurm, "n1"), "IDLE+CLOUD+POWERED_DOWN");
        assert_eq!(reason(&slurm, "n1"), "cloud: quota exceeded");
    }
}

#[tokio::test(start_paused = true)]
async fn resume_timeout_calls_the_fail_program_and_never_the_suspend_program() {
    for (version, after) in
        [(OLD, "DOWN+CLOUD+NOT_RESPONDING+POWERED_DOWN"), (NEW, "DOWN+CLOUD+POWERED_DOWN")]
    {
        let slurm = MemorySlurm::new(settings(version));
        let id = slurm.submit_job(job(1));
        assert_eq!(resumed(&slurm.tick()), "n1");
        assert_eq!(run(&slurm, 60).await, []);
        let calls = run(&slurm, 5).await;
        assert_eq!(calls, [(1, Call::ResumeFail { nodes: list("n1") })]);
        assert_eq!(state(&slurm, "n1"), after);
        assert_eq!(reason(&slurm, "n1"), "ResumeTimeout reached");
        assert_eq!(slurm.job(id).unwrap().restarts, 1);
        let calls = run(&slurm, 300).await;
        let suspended =
            |call: &(u64, Call)| matches!(&call.1, Call::Suspend { nodes } if nodes.contains("n1"));
        assert!(!calls.iter().any(suspended), "{calls:?}");
        assert_eq!(slurm.node("n1").unwrap().state.base.as_str(), "DOWN", "nobody returns it");
        slurm.set_state(&list("n1"), NodeAction::Resume, None).await.unwrap();
        assert!(state(&slurm, "n1").starts_with("IDLE+CLOUD"), "{}", state(&slurm, "n1"));
        assert_eq!(reason(&slurm, "n1").is_empty(), version == OLD);
    }
}

#[tokio::test(start_paused = true)]
async fn down_keeps_powering_up_until_the_timeout_and_then_changes_the_reason() {
    for (version, text) in
        [(OLD, "ResumeTimeout reached"), (NEW, "cloud: no : ResumeTimeout reached")]
    {
        let slurm = MemorySlurm::new(settings(version));
        let id = slurm.submit_job(job(1));
        assert_eq!(resumed(&slurm.tick()), "n1");
        let why = Reason::new("cloud: no");
        slurm.set_state(&list("n1"), NodeAction::Down, Some(&why)).await.unwrap();
        assert_eq!(job_state(&slurm, id), JobState::Pending);
        assert_eq!(state(&slurm, "n1"), "DOWN+CLOUD+NOT_RESPONDING+POWERING_UP");
        let calls = run(&slurm, 61).await;
        assert!(calls.contains(&(61, Call::ResumeFail { nodes: list("n1") })), "{calls:?}");
        assert_eq!(reason(&slurm, "n1"), text);
    }
}

#[tokio::test(start_paused = true)]
async fn down_and_then_power_down_gives_a_node_back_too() {
    let slurm = slurm();
    let _ = slurm.submit_job(job(1));
    assert_eq!(resumed(&slurm.tick()), "n1");
    let why = Reason::new("cloud: no");
    slurm.set_state(&list("n1"), NodeAction::Down, Some(&why)).await.unwrap();
    slurm.set_state(&list("n1"), NodeAction::PowerDown, None).await.unwrap();
    assert_eq!(run(&slurm, 1).await, [(1, Call::Suspend { nodes: list("n1") })]);
    run(&slurm, 11).await;
    assert_eq!(state(&slurm, "n1"), "IDLE+CLOUD+POWERED_DOWN");
    assert_eq!(reason(&slurm, "n1"), "cloud: no");
}

#[tokio::test(start_paused = true)]
async fn power_down_waits_for_the_job_and_for_a_node_that_comes_up() {
    let slurm = slurm();
    let id = running(&slurm, 1).await;
    slurm.set_state(&list("n1"), NodeAction::PowerDown, None).await.unwrap();
    assert_eq!(state(&slurm, "n1"), "ALLOCATED+CLOUD+POWER_DOWN");
    let calls = run(&slurm, 20).await;
    assert_eq!(job_state(&slurm, id), JobState::Completed);
    assert_eq!(calls, [(20, Call::Suspend { nodes: list("n1") })]);
    let other = slurm.submit_job(JobSpec { wanted: vec![name("n2")], ..job(1) });
    assert_eq!(run(&slurm, 1).await.len(), 1);
    slurm.set_state(&list("n2"), NodeAction::PowerDown, None).await.unwrap();
    let calls = run(&slurm, 61).await;
    assert_eq!(calls, [(61, Call::ResumeFail { nodes: list("n2") })], "no effect until then");
    assert_eq!(job_state(&slurm, other), JobState::Pending);
}

#[tokio::test(start_paused = true)]
async fn power_down_force_takes_a_node_from_its_running_job() {
    let slurm = slurm();
    let id = running(&slurm, 2).await;
    slurm.set_state(&list("n1"), NodeAction::PowerDownForce, None).await.unwrap();
    assert_eq!(job_state(&slurm, id), JobState::Pending);
    assert_eq!(run(&slurm, 1).await, [(1, Call::Suspend { nodes: list("n1") })]);
    assert_eq!(state(&slurm, "n2"), "IDLE+CLOUD", "the other one is free again");
}

#[tokio::test(start_paused = true)]
async fn a_power_down_of_what_is_off_calls_the_program_again() {
    let slurm = slurm();
    let _ = slurm.tick();
    slurm.set_state(&list("n1"), NodeAction::PowerDown, None).await.unwrap();
    assert_eq!(run(&slurm, 1).await, [(1, Call::Suspend { nodes: list("n1") })]);
    slurm.set_state(&list("n1"), NodeAction::PowerDownForce, None).await.unwrap();
    assert_eq!(run(&slurm, 5).await, [], "it is on its way down already");
}

#[tokio::test(start_paused = true)]
async fn a_node_powered_up_by_hand_is_in_no_job() {
    let slurm = slurm();
    slurm.set_state(&list("n[2-3]"), NodeAction::PowerUp, None).await.unwrap();
    let calls = slurm.tick();
    assert_eq!(resumed(&calls), "n[2-3]");
    let Call::Resume { request, .. } = &calls[0] else { unreachable!() };
    assert_eq!((request.jobs.len(), request.alone().to_string()), (0, "n[2-3]".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn resume_ends_the_wait_for_suspend_timeout() {
    let slurm = slurm();
    let _ = slurm.tick();
    slurm.set_state(&list("n1"), NodeAction::PowerDown, None).await.unwrap();
    assert_eq!(run(&slurm, 1).await.len(), 1);
    assert_eq!(state(&slurm, "n1"), "IDLE+CLOUD+POWERING_DOWN");
    slurm.set_state(&list("n1"), NodeAction::Resume, None).await.unwrap();
    assert_eq!(state(&slurm, "n1"), "IDLE+CLOUD+POWERED_DOWN");
    let error = slurm.set_state(&list("n1"), NodeAction::Resume, None).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused, "neither down nor drained: {error}");
}

#[tokio::test(start_paused = true)]
async fn an_address_goes_with_the_machine_since_23_11() {
    for (version, after) in [(OLD, "10.0.0.1"), (NEW, "n1")] {
        let slurm = MemorySlurm::new(settings(version));
        slurm.set_state(&list("n1"), NodeAction::PowerUp, None).await.unwrap();
        assert_eq!(resumed(&slurm.tick()), "n1");
        let mut address = NodeAddress::new(name("n1"), "10.0.0.1".parse().unwrap());
        address.instance_id = Some("i-1".into());
        slurm.set_addresses(&[address]).await.unwrap();
        let node = slurm.node("n1").unwrap();
        assert_eq!(node.address, "10.0.0.1");
        assert_eq!(node.instance_id.is_some(), version == NEW);
        slurm.set_state(&list("n1"), NodeAction::PowerDownForce, None).await.unwrap();
        run(&slurm, 13).await;
        assert!(slurm.node("n1").unwrap().state.is_powered_down());
        assert_eq!(slurm.node("n1").unwrap().address, after);
        assert_eq!(slurm.node("n1").unwrap().instance_id, None);
    }
}

#[tokio::test(start_paused = true)]
async fn a_machine_that_booted_before_it_was_asked_for_is_not_taken() {
    let slurm = slurm();
    let booted = Instant::now();
    advance(secs(10)).await;
    let _ = slurm.submit_job(job(1));
    assert_eq!(resumed(&slurm.tick()), "n1");
    assert_eq!(slurm.register(&name("n1"), "10.0.0.9", booted), Registration::OldBoot);
    assert!(slurm.node("n1").unwrap().state.is_powering_up());
    assert_eq!(up(&slurm, "n1"), Registration::Accepted);
    // The same for one that is on its way down.
    slurm.set_state(&list("n1"), NodeAction::PowerDownForce, None).await.unwrap();
    assert_eq!(run(&slurm, 1).await.len(), 1);
    assert_eq!(slurm.register(&name("n1"), "10.0.0.9", booted), Registration::OldBoot);
    assert!(slurm.node("n1").unwrap().state.is_powering_down());
}

#[tokio::test(start_paused = true)]
async fn a_late_registration_brings_a_node_back_as_return_to_service_says() {
    for (rule, outcome) in [
        (ReturnToService::Always, Registration::Accepted),
        (ReturnToService::NotResponding, Registration::StaysDown),
        (ReturnToService::Never, Registration::StaysDown),
    ] {
        let slurm = MemorySlurm::new(with_rule(rule));
        let _ = slurm.submit_job(job(1));
        assert_eq!(resumed(&slurm.tick()), "n1");
        run(&slurm, 61).await;
        assert!(slurm.node("n1").unwrap().state.is_down());
        assert_eq!(up(&slurm, "n1"), outcome, "{rule:?}");
    }
}

fn with_rule(rule: ReturnToService) -> Settings {
    let mut settings = settings(NEW);
    settings.return_to_service = rule;
    settings
}

#[tokio::test(start_paused = true)]
async fn a_machine_that_vanishes_is_noticed_by_and_by() {
    let slurm = slurm();
    let id = slurm.submit_job(JobSpec { run_time: Duration::from_hours(9), ..job(1) });
    assert_eq!(resumed(&slurm.tick()), "n1");
    assert_eq!(up(&slurm, "n1"), Registration::Accepted);
    run(&slurm, 1).await;
    slurm.lost(&name("n1"));
    assert_eq!(run(&slurm, 150).await, []);
    assert_eq!(state(&slurm, "n1"), "ALLOCATED+CLOUD");
    assert_eq!(run(&slurm, 1).await, []);
    assert_eq!(state(&slurm, "n1"), "ALLOCATED+CLOUD+NOT_RESPONDING");
    assert_eq!(run(&slurm, 150).await, []);
    assert_eq!(state(&slurm, "n1"), "DOWN+CLOUD+NOT_RESPONDING");
    assert_eq!(reason(&slurm, "n1"), "Not responding");
    assert_eq!(job_state(&slurm, id), JobState::Pending);
    // Idle nodes and those that are down are switched off alike.
    let calls = run(&slurm, 31).await;
    assert!(calls.contains(&(31, Call::Suspend { nodes: list("n1") })), "{calls:?}");
    assert_eq!(state(&slurm, "n1"), "IDLE+CLOUD+POWERING_DOWN");
}

#[tokio::test(start_paused = true)]
async fn drained_nodes_get_no_jobs_and_a_job_that_waits_for_one_is_requeued() {
    let slurm = slurm();
    let why = Reason::new("maintenance");
    slurm.set_state(&list("n[1-3]"), NodeAction::Drain, Some(&why)).await.unwrap();
    let first = slurm.submit_job(job(2));
    assert_eq!(slurm.tick(), []);
    assert_eq!(slurm.job(first).unwrap().reason.as_deref(), Some("Resources"));
    slurm.set_state(&list("n1"), NodeAction::Undrain, None).await.unwrap();
    let calls = run(&slurm, 1).await;
    assert_eq!(calls.len(), 1);
    assert_eq!(resumed(&[calls[0].1.clone()]), "n[1,4]");
    slurm.set_state(&list("n4"), NodeAction::Drain, Some(&why)).await.unwrap();
    assert_eq!(job_state(&slurm, first), JobState::Pending);
    let error = slurm.set_state(&list("n1"), NodeAction::Drain, None).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused, "no reason given: {error}");
}

#[tokio::test(start_paused = true)]
async fn a_reboot_waits_for_the_job_and_brings_the_node_back() {
    let slurm = slurm();
    let id = running(&slurm, 1).await;
    let why = Reason::new("rebuild image:x");
    slurm.reboot(&list("n[1-2]"), &why).await.unwrap();
    assert_eq!(state(&slurm, "n1"), "ALLOCATED+CLOUD+DRAIN+REBOOT_REQUESTED");
    assert_eq!(state(&slurm, "n2"), "IDLE+CLOUD+POWERED_DOWN", "off: left out without a word");
    let calls = run(&slurm, 20).await;
    assert_eq!(job_state(&slurm, id), JobState::Completed);
    assert_eq!(calls, [(20, Call::Reboot { nodes: list("n1") })]);
    assert_eq!(state(&slurm, "n1"), "DOWN+CLOUD+DRAIN+REBOOT_ISSUED");
    assert_eq!(reason(&slurm, "n1"), "rebuild image:x : reboot issued");
    let old = Instant::now().checked_sub(secs(5)).unwrap();
    assert_eq!(slurm.register(&name("n1"), "10.0.0.9", old), Registration::OldBoot);
    run(&slurm, 10).await;
    assert_eq!(up(&slurm, "n1"), Registration::Accepted);
    assert_eq!((state(&slurm, "n1"), reason(&slurm, "n1")), ("IDLE+CLOUD".into(), String::new()));
}

#[tokio::test(start_paused = true)]
async fn a_reboot_that_takes_too_long_leaves_the_node_down() {
    let mut settings = settings(NEW);
    settings.suspend_time = None;
    let slurm = MemorySlurm::new(settings);
    running(&slurm, 1).await;
    run(&slurm, 20).await;
    slurm.reboot(&list("n1"), &Reason::new("rebuild image:x")).await.unwrap();
    assert_eq!(run(&slurm, 1).await, [(1, Call::Reboot { nodes: list("n1") })]);
    run(&slurm, 61).await;
    assert_eq!(state(&slurm, "n1"), "DOWN+CLOUD");
    assert_eq!(reason(&slurm, "n1"), "rebuild image:x : reboot issued : reboot timed out");
}

#[tokio::test(start_paused = true)]
async fn what_a_reboot_job_brings_about_depends_on_version_and_kind() {
    let table = [
        ((22, 5), true, "RebootJob"),
        ((24, 11), true, "Resume"),
        ((26, 5), true, "Resume"),
        ((22, 5), false, "RebootJob"),
        ((24, 11), false, "RebootJob"),
        ((26, 5), false, "Reboot"),
    ];
    for ((year, month), cloud, expected) in table {
        let mut settings = settings(SlurmVersion::new(year, month));
        if !cloud {
            settings.nodes = vec![NodeSpec::fixed(name("n1"))];
        }
        let slurm = MemorySlurm::new(settings);
        advance(secs(5)).await;
        let id = slurm.submit_job(JobSpec { reboot: true, ..job(1) });
        let calls = slurm.tick();
        let called = format!("{calls:?}");
        assert!(called.starts_with(&format!("[{expected} {{")), "{year} {cloud}: {called}");
        assert_eq!(job_state(&slurm, id), JobState::Configuring);
        assert_eq!(up(&slurm, "n1"), Registration::Accepted);
        run(&slurm, 1).await;
        assert_eq!(job_state(&slurm, id), JobState::Running);
    }
}

#[tokio::test(start_paused = true)]
async fn a_restart_keeps_all_and_a_crash_asks_again() {
    let slurm = slurm();
    let id = slurm.submit_job(job(1));
    assert_eq!(resumed(&slurm.tick()), "n1");
    slurm.restart().await.unwrap();
    assert_eq!(run(&slurm, 3).await, [], "not called again");
    assert_eq!(job_state(&slurm, id), JobState::Configuring);
    slurm.crash();
    let calls = run(&slurm, 1).await;
    assert_eq!(resumed(&[calls[0].1.clone()]), "n1");
}

#[tokio::test(start_paused = true)]
async fn while_it_is_away_nothing_is_answered_and_nothing_happens() {
    let slurm = slurm();
    let id = slurm.submit_job(job(1));
    slurm.set_unreachable(true);
    assert_eq!(slurm.tick(), []);
    assert_eq!(slurm.next_event(), None);
    assert!(!slurm.ping().await.unwrap());
    let error = slurm.comment(id, "x").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert_eq!(up(&slurm, "n1"), Registration::Unheard);
    slurm.set_unreachable(false);
    assert!(slurm.ping().await.unwrap());
    assert_eq!(resumed(&slurm.tick()), "n1");
    // A restart whose caller has gone ends all the same.
    let asked = tokio::time::timeout(Duration::from_millis(1), slurm.restart()).await;
    assert!(asked.is_err());
    assert_eq!(slurm.tick(), []);
    run(&slurm, 3).await;
    assert!(slurm.ping().await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn what_is_said_about_a_job_stays_with_it() {
    let slurm = slurm();
    let id = slurm.submit_job(job(9));
    slurm.comment(id, "cloud: quota exceeded").await.unwrap();
    let jobs = slurm.jobs(Jobs::Ids(vec![id])).await.unwrap();
    assert_eq!(jobs[0].admin_comment.as_deref(), Some("cloud: quota exceeded"));
    let error = slurm.comment(JobId::new(99), "x").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
}

#[tokio::test(start_paused = true)]
async fn jobs_share_nodes_that_are_up_before_new_ones_are_asked_for() {
    let slurm = slurm();
    let small = JobSpec { cpus: Some(1), ..job(1) };
    let first = slurm.submit_job(small.clone());
    let second = slurm.submit_job(small.clone());
    let calls = slurm.tick();
    assert_eq!(resumed(&calls), "n1");
    let Call::Resume { request, .. } = &calls[0] else { unreachable!() };
    let ids: Vec<JobId> = request.jobs.iter().map(|job| job.id).collect();
    assert_eq!(ids, [first, second]);
    assert_eq!(slurm.node("n1").unwrap().state.base.as_str(), "ALLOCATED");
    let third = slurm.submit_job(small);
    let calls = run(&slurm, 1).await;
    assert_eq!(resumed(&[calls[0].1.clone()]), "n2");
    assert!(slurm.node("n2").unwrap().state.has_job());
    assert_eq!(slurm.job(third).unwrap().nodes.to_string(), "n2");
}

#[tokio::test(start_paused = true)]
async fn the_next_event_is_when_something_happens_and_not_before() {
    let slurm = slurm();
    let id = slurm.submit_job(job(1));
    let mut calls = Vec::new();
    let mut ticks = 0;
    while let Some(due) = slurm.next_event() {
        tokio::time::sleep_until(due).await;
        for call in slurm.tick() {
            if let Call::Resume { nodes, .. } = &call {
                assert_eq!(
                    slurm.register(&nodes.node_names().unwrap()[0], "a", due),
                    Registration::Accepted
                );
            }
            calls.push(call);
        }
        ticks += 1;
        assert!(ticks < 20, "too many for one job: {calls:?}");
    }
    assert_eq!(job_state(&slurm, id), JobState::Completed);
    assert_eq!(calls.len(), 2, "{calls:?}");
    assert!(slurm.node("n1").unwrap().state.is_powered_down());
}
