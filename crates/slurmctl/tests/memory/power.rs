//! Power states.

use super::{
    NEW, OLD, job, job_state, list, name, reason, resumed, run, running, secs, settings, slurm,
    state,
};
use slurmconf::SlurmVersion;
use slurmctl::memory::{Call, JobSpec, MemorySlurm};
use slurmctl::{Controller as _, ErrorKind, JobState, NodeAction, NodeAddress, Reason};
use tokio::time::Instant;

#[tokio::test(start_paused = true)]
async fn power_down_force_returns_a_node_with_its_reason() {
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
    let middle = SlurmVersion::new(24, 11).patch(5);
    for (version, after, then) in [
        (OLD, "DOWN+CLOUD+NOT_RESPONDING+POWERED_DOWN", ""),
        (middle, "DOWN+CLOUD+POWERED_DOWN", "ResumeTimeout reached"),
        (NEW, "DOWN+CLOUD+POWERED_DOWN", ""),
    ] {
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
        assert_eq!(reason(&slurm, "n1"), then);
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
async fn down_and_then_power_down_returns_a_node() {
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
    assert_eq!(
        (request.jobs.len(), request.nodes_without_job().to_string()),
        (0, "n[2-3]".to_owned())
    );
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
async fn a_job_is_split_over_calls_when_there_is_a_rate() {
    let mut settings = settings(NEW);
    settings.resume_rate = Some(2);
    let slurm = MemorySlurm::new(settings);
    let id = slurm.submit_job(job(3));
    assert_eq!(resumed(&slurm.tick()), "n[1-2]");
    assert!(slurm.next_event().is_some_and(|due| due <= Instant::now() + secs(1)));
    let calls = run(&slurm, 3).await;
    let [(1, Call::Resume { nodes, request })] = &calls[..] else { panic!("{calls:?}") };
    assert_eq!(nodes.to_string(), "n3");
    let [group] = &request.jobs[..] else { panic!("{request:?}") };
    let lists = (group.nodes.to_string(), group.allocated.to_string());
    assert_eq!((group.id, lists), (id, ("n3".into(), "n[1-3]".into())));
}

#[tokio::test(start_paused = true)]
async fn a_node_called_all_is_not_every_node() {
    let slurm = slurm();
    let why = Reason::new("x");
    let error = slurm.set_state(&list("ALL"), NodeAction::Drain, Some(&why)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert_eq!(slurm.reboot(&list("all"), &why).await.unwrap_err().kind(), ErrorKind::Invalid);
    let item = NodeAddress::new(name("all"), "10.0.0.1".parse().unwrap());
    assert_eq!(slurm.set_addresses(&[item]).await.unwrap_err().kind(), ErrorKind::Invalid);
}

#[tokio::test(start_paused = true)]
async fn a_bad_instance_id_costs_the_id_and_no_address_in_memory_too() {
    for (version, refused) in [(OLD, false), (NEW, true)] {
        let slurm = MemorySlurm::new(settings(version));
        let mut items = ["n1", "zz", "n2"]
            .map(|node| NodeAddress::new(name(node), "10.0.0.1".parse().unwrap()));
        items[0].instance_id = Some("two words".into());
        items[2].instance_id = Some("i-2".into());
        let error = slurm.set_addresses(&items).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
        assert_eq!(error.also().iter().any(|error| error.kind() == ErrorKind::Invalid), refused);
        let [first, second] = ["n1", "n2"].map(|node| slurm.node(node).unwrap());
        assert_eq!((first.address.as_str(), first.instance_id), ("10.0.0.1", None));
        assert_eq!(second.address, "10.0.0.1");
        assert_eq!(second.instance_id.is_some(), refused);
    }
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
