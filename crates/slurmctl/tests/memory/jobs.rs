//! Jobs, and the comments on them.

use super::{
    NEW, OLD, job, job_state, list, name, resumed, run, running, secs, settings, slurm, state, up,
};
use slurmctl::memory::{Call, JobSpec, MemorySlurm, Registration};
use slurmctl::{
    Controller as _, ErrorKind, JobFilter, JobId, JobState, NodeAction, NodeAddress, Reason,
};
use tokio::time::Instant;

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
async fn a_comment_stays_with_its_job() {
    let slurm = slurm();
    let id = slurm.submit_job(job(9));
    slurm.comment(id, "cloud: quota exceeded").await.unwrap();
    let jobs = slurm.jobs(JobFilter::Ids(vec![id])).await.unwrap();
    assert_eq!(jobs[0].admin_comment.as_deref(), Some("cloud: quota exceeded"));
    slurm.comment(id, "\"two\"\n lines").await.unwrap();
    let said = slurm.job(id).unwrap().admin_comment;
    assert_eq!(said.as_deref(), Some("'two' lines"), "cleaned, as for a real one");
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

#[tokio::test(start_paused = true)]
async fn on_22_05_a_job_does_not_start_without_an_address() {
    for (version, needs, waits) in [(OLD, true, true), (OLD, false, false), (NEW, true, false)] {
        let mut settings = settings(version);
        settings.needs_addresses = needs;
        let slurm = MemorySlurm::new(settings);
        let id = slurm.submit_job(job(1));
        assert_eq!(resumed(&slurm.tick()), "n1");
        assert_eq!(up(&slurm, "n1"), Registration::Accepted);
        run(&slurm, 5).await;
        assert_eq!(job_state(&slurm, id) == JobState::Configuring, waits, "{version}");
        if !waits {
            continue;
        }
        for (address, state) in
            [("10.0.0.8", JobState::Configuring), ("10.0.0.9", JobState::Running)]
        {
            let item = NodeAddress::new(name("n1"), address.parse().unwrap());
            slurm.set_addresses(&[item]).await.unwrap();
            assert!(slurm.next_event().is_some_and(|due| due <= Instant::now() + secs(1)));
            run(&slurm, 1).await;
            assert_eq!(job_state(&slurm, id), state, "{address}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn on_22_05_a_node_at_another_address_falls_silent_and_is_found_again() {
    let mut settings = settings(OLD);
    settings.needs_addresses = true;
    settings.slurmd_timeout = secs(20);
    let slurm = MemorySlurm::new(settings);
    let id = slurm.submit_job(job(1));
    assert_eq!(resumed(&slurm.tick()), "n1");
    assert_eq!(up(&slurm, "n1"), Registration::Accepted);
    run(&slurm, 12).await;
    assert!(slurm.node("n1").unwrap().state.has(&slurmctl::StateFlag::NotResponding));
    assert_eq!(job_state(&slurm, id), JobState::Configuring);
    let item = NodeAddress::new(name("n1"), "10.0.0.9".parse().unwrap());
    slurm.set_addresses(&[item]).await.unwrap();
    run(&slurm, 2).await;
    assert!(slurm.node("n1").unwrap().state.is_up());
    assert_eq!(job_state(&slurm, id), JobState::Running);
}

#[tokio::test(start_paused = true)]
async fn a_watcher_sees_which_jobs_a_change_of_state_would_hit() {
    let slurm = slurm();
    let id = running(&slurm, 2).await;
    let seen = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let told = std::sync::Arc::clone(&seen);
    slurm.watch(move |moment| {
        let jobs: Vec<_> = moment.running.iter().map(|job| job.id).collect();
        told.lock().unwrap().push((moment.node.name.to_string(), moment.action, jobs));
    });
    let why = Reason::new("off");
    slurm.set_state(&list("n[2-3]"), NodeAction::PowerDownForce, Some(&why)).await.unwrap();
    let force = NodeAction::PowerDownForce;
    let wanted = [("n2".to_owned(), force, vec![id]), ("n3".to_owned(), force, vec![])];
    assert_eq!(*seen.lock().unwrap(), wanted);
}
