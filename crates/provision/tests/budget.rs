//! What may be spent, and how many machines may run.

use crate::common::run;
use crate::common::{Bed, groups, names, node};
use cloud_core::{ApiOperation, InstanceState};
use history::cost::{Budget, Price, Prices};
use provision::budget::Allowance;
use provision::plan::JobGroup;
use provision::{Cause, Outcome, Report};
use slurmctl::memory::{Call, JobSpec};
use slurmctl::{JobId, JobState};
use std::collections::BTreeSet;
use std::time::Duration;
use tokio::time::{Instant, advance};

/// Machines that cost 1.00 an hour, and so much that may be spent in a day.
fn bed(nodes: &str, per_day: u64) -> Bed {
    let mut bed = Bed::new(nodes);
    let budget =
        Budget { per_day: Some(Price::from_micros(per_day * 1_000_000)), ..Budget::default() };
    let prices = Prices::read("prices.yaml", "currency: USD\nshapes: {small: 1}\n").unwrap();
    bed.site.allowance = Some(Allowance { budget, prices });
    bed
}

fn refused(report: &Report, cause: Cause) -> usize {
    let of_cause = report.nodes.values().filter(|node| node.cause == Some(cause));
    of_cause.filter(|node| !node.outcome.is_success()).count()
}

/// Machines that have registered.
type Registered = BTreeSet<String>;

/// Calls our programs as slurmctld does, for so long; machines register when they run.
async fn live(bed: &Bed, registered: &mut Registered, time: Duration) -> Vec<Report> {
    let (begun, mut reports) = (Instant::now(), Vec::new());
    while begun.elapsed() < time {
        for call in bed.slurm.tick() {
            match call {
                Call::Resume { nodes, request } => {
                    let (nodes, jobs) = (nodes.node_names().unwrap(), groups(&request));
                    reports.push(bed.run(async |run| run::start(run, &nodes, &jobs).await).await);
                }
                Call::Suspend { nodes } => {
                    let nodes = nodes.node_names().unwrap();
                    bed.run(async |run| run::stop(run, &nodes).await).await;
                }
                other => panic!("{other:?}"),
            }
        }
        for machine in bed.live() {
            if machine.state == InstanceState::Running && registered.insert(machine.id.to_string())
            {
                let name = bed.site.identity.node_of(&machine).unwrap();
                let _ = bed.slurm.register(&name, "10.0.0.1", Instant::now());
            }
        }
        advance(Duration::from_secs(1)).await;
    }
    reports
}

#[tokio::test(start_paused = true)]
async fn nothing_above_the_budget_is_launched_and_all_jobs_run_the_next_day() {
    let bed = bed("n[1-32]", 20);
    let submit = |name| {
        let spec = JobSpec::new(1, Duration::from_mins(58));
        bed.slurm.submit_job(JobSpec { wanted: vec![name], ..spec })
    };
    let jobs: Vec<JobId> = names("n[1-32]").into_iter().map(submit).collect();
    let mut registered = Registered::new();
    let today = live(&bed, &mut registered, Duration::from_mins(3)).await;
    assert_eq!(bed.done(ApiOperation::Launch), 20, "an hour of each is what may be spent");
    let refusals = |reports: &[Report]| reports.iter().map(|it| refused(it, Cause::Budget)).max();
    assert_eq!(refusals(&today), Some(12), "{today:?}");
    let mut nodes = today.iter().flat_map(|report| report.nodes.values());
    let why = nodes.rfind(|node| node.cause == Some(Cause::Budget)).unwrap();
    let expected = "budget: 20.00 of 20.00 USD spent this day, next start 2023-11-15T00:00:00Z";
    assert_eq!(why.reason.as_deref(), Some(expected));
    let state = |job: &JobId| bed.slurm.job(*job).map(|job| job.state);
    let running = jobs.iter().filter(|job| state(job) == Some(JobState::Running)).count();
    assert_eq!(running, 20, "what runs goes on");
    // From 22:16 until 23:56 in UTC: the jobs of today end, and their machines with them.
    live(&bed, &mut registered, Duration::from_mins(100)).await;
    assert_eq!(bed.done(ApiOperation::Launch), 20, "nothing is started for the rest of the day");
    assert_eq!(bed.live().len(), 0);
    live(&bed, &mut registered, Duration::from_mins(150)).await;
    let done = |job: &JobId| state(job).is_none_or(|state| state == JobState::Completed);
    assert!(jobs.iter().all(done), "{:?}", jobs.iter().map(state).collect::<Vec<_>>());
    assert_eq!(bed.done(ApiOperation::Launch), 32, "each job has run once");
}

#[tokio::test(start_paused = true)]
async fn a_job_that_does_not_fit_leaves_room_for_one_that_does() {
    let bed = bed("n[1-8]", 5);
    let jobs = [
        JobGroup::new(JobId::new(1), names("n[1-6]")),
        JobGroup::new(JobId::new(2), names("n[7-8]")),
    ];
    let report = bed.run(async |run| run::start(run, &names("n[1-8]"), &jobs).await).await;
    assert_eq!(refused(&report, Cause::Budget), 6, "{report:?}");
    assert_eq!(report.nodes[&node("n7")].outcome, Outcome::Up);
    assert_eq!(bed.live().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_shape_without_a_price_is_not_started_under_a_budget() {
    let mut bed = bed("n1", 5);
    bed.site.allowance.as_mut().unwrap().prices = Prices::default();
    let report = bed.run(async |run| run::start(run, &names("n1"), &[]).await).await;
    let reason = report.nodes[&node("n1")].reason.clone().unwrap_or_default();
    assert!(reason.contains("small has no price"), "{reason}");
    assert_eq!(bed.live().len(), 0);
}

#[tokio::test(start_paused = true)]
async fn no_more_machines_run_than_may() {
    let mut bed = Bed::new("n[1-8]");
    bed.site.policies.max_nodes = Some(3);
    let first = bed.run(async |run| run::start(run, &names("n[1-2]"), &[]).await).await;
    assert!(first.is_success(), "{first:?}");
    let more = bed.run(async |run| run::start(run, &names("n[3-5]"), &[]).await).await;
    assert_eq!((refused(&more, Cause::MaxNodes), bed.live().len()), (2, 3), "{more:?}");
}

#[tokio::test(start_paused = true)]
async fn a_machine_that_is_replaced_leaves_room_for_its_successor() {
    let mut bed = Bed::new("n[1-3]");
    bed.site.policies.max_nodes = Some(3);
    bed.run(async |run| run::start(run, &names("n[1-3]"), &[]).await).await;
    assert!(bed.cloud.force(&bed.live()[0].id, InstanceState::Failed));
    advance(Duration::from_mins(1)).await;
    let report = bed.run(async |run| run::start(run, &names("n[1-3]"), &[]).await).await;
    assert!(report.is_success(), "{report:?}");
    assert_eq!((bed.done(ApiOperation::Launch), bed.live().len()), (4, 3));
}

#[tokio::test(start_paused = true)]
async fn machines_whose_events_are_lost_are_counted_as_the_cloud_lists_them() {
    let mut bed = bed("n[1-8]", 3);
    bed.run(async |run| run::start(run, &names("n[1-2]"), &[]).await).await;
    bed.state = Box::new(provision::state::MemoryState::new());
    let report = bed.run(async |run| run::start(run, &names("n[3-5]"), &[]).await).await;
    assert_eq!((refused(&report, Cause::Budget), bed.live().len()), (2, 3), "{report:?}");
}

#[tokio::test(start_paused = true)]
async fn a_machine_for_one_job_carries_its_labels() {
    let bed = Bed::new("n[1-3]");
    let labels = |job: &str| cloud_core::Tags::from([("job", job), ("user", "ada")]);
    let jobs = [
        JobGroup::new(JobId::new(1), names("n[1-2]")).labelled(labels("1")),
        JobGroup::new(JobId::new(2), names("n[2-3]")).labelled(labels("2")),
    ];
    bed.run(async |run| run::start(run, &names("n[1-3]"), &jobs).await).await;
    let mut jobs: Vec<_> = bed
        .live()
        .iter()
        .map(|machine| (machine.name.to_string(), machine.tags.get("job").map(str::to_owned)))
        .collect();
    jobs.sort();
    let of = |name: &str, job: Option<&str>| (name.to_owned(), job.map(str::to_owned));
    assert_eq!(jobs, [of("n1", Some("1")), of("n2", None), of("n3", Some("2"))]);
}
