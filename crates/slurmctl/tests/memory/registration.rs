//! Machines that come, go, and come again.

use super::{
    NEW, OLD, job, job_state, list, name, reason, resumed, run, running, secs, settings, slurm,
    state, up,
};
use slurmconf::SlurmVersion;
use slurmctl::memory::{
    Call, JobSpec, MemorySlurm, MemorySlurmSettings, NodeSpec, Registration, ReturnToService,
};
use slurmctl::{Controller as _, ErrorKind, JobState, NodeAction, Reason};
use std::time::Duration;
use tokio::time::{Instant, advance};

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

fn with_rule(rule: ReturnToService) -> MemorySlurmSettings {
    let mut settings = settings(NEW);
    settings.return_to_service = rule;
    settings
}

#[tokio::test(start_paused = true)]
async fn a_lost_machine_sets_its_node_down() {
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
async fn a_reboot_with_an_unknown_name_is_not_forgotten_for_the_others() {
    let slurm = slurm();
    running(&slurm, 2).await;
    run(&slurm, 22).await;
    assert!(slurm.next_event().is_some_and(|due| due > Instant::now() + secs(5)), "all is quiet");
    let why = Reason::new("rebuild image:x");
    let error = slurm.reboot(&list("n1,zz,n2"), &why).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(slurm.next_event().is_some_and(|due| due <= Instant::now() + secs(1)));
    assert_eq!(run(&slurm, 1).await, [(1, Call::Reboot { nodes: list("n[1-2]") })]);
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
async fn a_restart_keeps_state_and_a_crash_resumes_again() {
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
async fn an_unreachable_controller_does_nothing() {
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
async fn a_call_whose_answer_is_lost_is_carried_out() {
    let slurm = slurm();
    let id = slurm.submit_job(job(1));
    slurm.lose_answers(2);
    let began = Instant::now();
    let error = slurm.comment(id, "x").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert_eq!(began.elapsed(), secs(10), "the caller waited for it");
    assert_eq!(slurm.job(id).unwrap().admin_comment.as_deref(), Some("x"));
    assert!(!slurm.ping().await.unwrap());
    assert!(slurm.ping().await.unwrap(), "no more than were asked for");
}

#[tokio::test(start_paused = true)]
async fn a_job_does_not_live_on_when_its_machine_was_replaced() {
    let slurm = slurm();
    let id = running(&slurm, 1).await;
    advance(secs(5)).await;
    slurm.lost(&name("n1"));
    assert_eq!(up(&slurm, "n1"), Registration::Accepted);
    assert_eq!(job_state(&slurm, id), JobState::Pending, "it ran on the one before");
    assert_eq!(state(&slurm, "n1"), "IDLE+CLOUD");
}

#[tokio::test(start_paused = true)]
async fn a_changed_set_of_nodes_is_read_or_kills_before_23_11() {
    for (version, survives) in [(OLD, false), (NEW, true)] {
        let slurm = MemorySlurm::new(settings(version));
        let id = running(&slurm, 2).await;
        slurm.reconfigure().await.unwrap();
        assert_eq!(job_state(&slurm, id), JobState::Running, "nothing has changed");
        let nodes = ["n1", "n3", "n4", "n5"];
        slurm.set_conf_nodes(nodes.map(|node| NodeSpec::cloud(name(node))).to_vec());
        let result = slurm.reconfigure().await;
        assert_eq!(result.is_ok(), survives);
        if let Err(error) = result {
            assert_eq!(error.kind(), ErrorKind::Unavailable);
            assert!(!slurm.ping().await.unwrap());
            assert_eq!((slurm.tick(), slurm.next_event()), (vec![], None));
            assert_eq!(job_state(&slurm, id), JobState::Running, "it has not seen it yet");
            slurm.restart().await.unwrap();
        }
        let there: Vec<String> =
            slurm.nodes(None).await.unwrap().iter().map(|node| node.name.to_string()).collect();
        assert_eq!(there, nodes);
        assert_eq!(job_state(&slurm, id), JobState::NodeFail, "n2 is gone");
        assert_eq!(state(&slurm, "n1"), "IDLE+CLOUD", "as it was, without the job");
        assert_eq!(state(&slurm, "n5"), "IDLE+CLOUD+POWERED_DOWN");
    }
}
