//! A resize and the jobs that it waits for.

use crate::common::run;
use crate::common::{Bed, names, node};
use cloud_core::memory::InjectedFault;
use cloud_core::{ApiOperation, ErrorKind, InstanceState};
use history::cost::{Budget, Price, Prices};
use provision::Cancel;
use provision::budget::Allowance;
use provision::plan::{Gaps, GroupSize, Resize};
use provision::state::NodeLock;
use provision::{Cause, Outcome, Report};
use slurmconf::{Config, Document, SlurmVersion};
use slurmctl::memory::{JobSpec, MemorySlurm, MemorySlurmSettings, NodeSpec};
use slurmctl::{Controller as _, JobState, NodeAction, Reason};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// Persistent nodes with their machines, and slurm.conf for them.
async fn deployed(nodes: &str) -> (Bed, Document) {
    let lines = format!("NodeName={nodes} CPUs=2 Features=shape=small,ad=1 State=UNKNOWN\n");
    let text = format!("# STARTNODES\n{lines}# ENDNODES\nPartitionName=main Nodes=ALL\n");
    let mut bed = Bed::new(nodes);
    bed.config = Config::parse(&text).unwrap();
    let mut settings = MemorySlurmSettings::cloud(&nodes.parse().unwrap());
    settings.nodes = names(nodes).into_iter().map(NodeSpec::fixed).collect();
    bed.slurm = MemorySlurm::new(settings);
    bed.run(async |run| run::deploy(run, None).await).await;
    (bed, Document::parse(text))
}

/// Two persistent nodes with a job on both, and slurm.conf for them.
async fn persistent(runs: Duration) -> (Bed, Document) {
    let (bed, document) = deployed("n[1-2]").await;
    let _ = bed.slurm.submit_job(JobSpec::new(2, runs));
    sleep(Duration::from_secs(1)).await;
    let _ = bed.slurm.tick();
    assert!(bed.slurm.node("n2").unwrap().state.has_job());
    (bed, document)
}

async fn shrink(bed: &Bed, document: &Document) -> Report {
    resize(bed, document, 1).await
}

async fn resize(bed: &Bed, document: &Document, size: usize) -> Report {
    let groups = [GroupSize { partition: None, stem: "n".to_owned(), first: 1, width: 1, size }];
    let request = Resize {
        groups: &groups,
        gaps: Gaps::Keep,
        document,
        version: SlurmVersion::new(24, 11),
        patience: Duration::from_hours(2),
    };
    let resize = bed.run(async |run| run::resize(run, &request).await);
    let slurm = async {
        loop {
            sleep(Duration::from_secs(1)).await;
            let _ = bed.slurm.tick();
        }
    };
    tokio::select! {
        report = resize => report,
        () = slurm => panic!("never"),
    }
}

/// What Slurm is told of the second node.
async fn set(bed: &Bed, action: NodeAction, reason: Option<&str>) {
    let reason = reason.map(Reason::new);
    bed.slurm.set_state(&"n2".parse().unwrap(), action, reason.as_ref()).await.unwrap();
}

/// Has a resize let go of the second node while it waits, and takes it in hand.
async fn let_go_of(bed: &Bed) -> Box<dyn NodeLock> {
    sleep(Duration::from_secs(30)).await;
    bed.state.ask_to_yield(&names("n2"), bed.now() + Duration::from_secs(10)).unwrap();
    sleep(Duration::from_secs(9)).await;
    bed.state.try_lock(&node("n2")).unwrap().unwrap()
}

/// Nothing was deleted, and the second node takes jobs again.
fn assert_undone(bed: &Bed, report: &Report, outcome: Outcome, cause: Option<Cause>) {
    let told = report.nodes.get(&node("n2")).unwrap();
    assert_eq!((told.outcome, told.cause), (outcome, cause), "{report:?}");
    assert!(!bed.slurm.node("n2").unwrap().state.has_drain(), "takes jobs again");
    assert_eq!(bed.live().len(), 2, "nothing deleted");
}

#[tokio::test(start_paused = true)]
async fn an_hour_of_patience_is_not_cut_to_the_time_that_a_start_has() {
    let (bed, document) = persistent(Duration::from_hours(1)).await;
    let begun = Instant::now();
    let report = shrink(&bed, &document).await;
    assert!(report.is_success(), "{report:?}");
    assert!(Instant::now() - begun > Duration::from_mins(50), "it waited for the job");
    assert_eq!(bed.live().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_resize_undrains_its_nodes() {
    let (mut bed, document) = persistent(Duration::from_hours(1)).await;
    let (signal, cancel) = Cancel::new();
    bed.cancel = cancel;
    let told = async {
        sleep(Duration::from_secs(30)).await;
        assert!(bed.slurm.node("n2").unwrap().state.has_drain());
        signal.cancel();
    };
    let (report, ()) = tokio::join!(shrink(&bed, &document), told);
    assert_undone(&bed, &report, Outcome::Failed, Some(Cause::Cancelled));
}

#[tokio::test(start_paused = true)]
async fn a_node_that_an_administrator_holds_is_not_undrained() {
    let (mut bed, document) = persistent(Duration::from_hours(1)).await;
    let (signal, cancel) = Cancel::new();
    bed.cancel = cancel;
    let told = async {
        sleep(Duration::from_secs(30)).await;
        set(&bed, NodeAction::Drain, Some("bad disk")).await;
        signal.cancel();
    };
    let (report, ()) = tokio::join!(shrink(&bed, &document), told);
    assert_eq!(report.nodes[&node("n2")].cause, Some(Cause::Cancelled), "{report:?}");
    let held = bed.slurm.node("n2").unwrap();
    assert!(held.state.has_drain() && held.reason_text() == "bad disk", "{held:?}");
}

/// As Slurm does with `idle_on_node_suspend` when it suspends a node, whose machine `stopnode` is then to end.
#[tokio::test(start_paused = true)]
async fn a_resize_that_waits_lends_suspended_nodes_and_drains_them_again() {
    let (bed, document) = persistent(Duration::from_hours(1)).await;
    let lifted = async {
        sleep(Duration::from_secs(30)).await;
        set(&bed, NodeAction::Undrain, None).await;
        assert!(bed.state.try_lock(&node("n2")).unwrap().is_none(), "resize has it in hand");
        bed.state.ask_to_yield(&names("n2"), bed.now() + Duration::from_mins(1)).unwrap();
        sleep(Duration::from_secs(11)).await;
        assert!(bed.slurm.node("n2").unwrap().state.has_drain(), "drained again");
        assert!(bed.state.try_lock(&node("n2")).unwrap().is_some(), "let go of");
    };
    let (report, ()) = tokio::join!(shrink(&bed, &document), lifted);
    assert!(report.is_success(), "{report:?}");
    assert_eq!(bed.live().len(), 1);
}

/// By an administrator, or by Slurm, when it suspends the node.
#[tokio::test(start_paused = true)]
async fn a_job_that_gets_a_node_while_its_machine_is_ended_completes() {
    let (bed, document) = deployed("n[1-2]").await;
    bed.slurm.set_conf_nodes(vec![NodeSpec::fixed(node("n1"))]);
    let lifted = async {
        while bed.done(ApiOperation::Terminate) == 0 {
            sleep(Duration::from_millis(1)).await;
        }
        set(&bed, NodeAction::Undrain, None).await;
        bed.slurm.submit_job(JobSpec::new(2, Duration::from_mins(10)))
    };
    let (report, job) = tokio::join!(shrink(&bed, &document), lifted);
    assert!(report.is_success() && bed.slurm.node("n2").is_none(), "{report:?}");
    assert_eq!(bed.slurm.job(job).unwrap().state, JobState::Completed);
}

#[tokio::test(start_paused = true)]
async fn a_resize_out_of_patience_says_what_is_left() {
    let (bed, document) = persistent(Duration::from_hours(3)).await;
    let report = shrink(&bed, &document).await;
    let said = report.nodes[&node("n2")].reason.clone().unwrap_or_default();
    let nothing = "within 2 h (job 1); nothing is removed, and the drain is lifted";
    assert!(said.ends_with(nothing), "{report:?}");
    assert_undone(&bed, &report, Outcome::Failed, Some(Cause::Timeout));

    let (bed, document) = deployed("n[1-3]").await;
    bed.slurm.set_conf_nodes(vec![NodeSpec::fixed(node("n1"))]);
    let lifted = async {
        while bed.done(ApiOperation::Terminate) == 0 {
            sleep(Duration::from_millis(1)).await;
        }
        set(&bed, NodeAction::Undrain, None).await;
        bed.slurm.submit_job(JobSpec::new(2, Duration::from_hours(3)))
    };
    let (report, _) = tokio::join!(shrink(&bed, &document), lifted);
    let said = report.nodes[&node("n2")].reason.clone().unwrap_or_default();
    let half = "machines are terminated already, and slurm.conf still has all nodes: run it again";
    assert!(said.ends_with(half), "{report:?}");
    assert_eq!(bed.live().len(), 1);
    assert!(bed.slurm.node("n2").is_some() && bed.slurm.node("n3").is_some(), "{report:?}");
}

/// What a stop and a start do to a node that a resize has let go of.
#[tokio::test(start_paused = true)]
async fn a_machine_launched_while_a_resize_waits_is_ended() {
    let (bed, document) = persistent(Duration::from_hours(1)).await;
    let others = async {
        let lock = let_go_of(&bed).await;
        let old = bed.live().into_iter().find(|machine| machine.name.as_str() == "n2").unwrap();
        assert!(bed.cloud.force(&old.id, InstanceState::Terminated));
        // Listings lag behind.
        sleep(Duration::from_mins(1)).await;
        let nodes = names("n2");
        drop(lock);
        let report = bed.run(async |run| run::deploy(run, Some(&nodes)).await).await;
        assert_eq!(bed.live().len(), 2, "{report:?}");
    };
    let (report, ()) = tokio::join!(shrink(&bed, &document), others);
    assert!(report.is_success(), "{report:?}");
    let left: Vec<String> = bed.live().iter().map(|machine| machine.name.to_string()).collect();
    assert_eq!(left, ["n1"]);
}

#[tokio::test(start_paused = true)]
async fn a_resize_that_is_cancelled_after_its_wait_ends_no_machine() {
    let (mut bed, document) = persistent(Duration::from_mins(10)).await;
    let (signal, cancel) = Cancel::new();
    bed.cancel = cancel;
    let told = async {
        // The first look behind the wait.
        while bed.slurm.node("n2").unwrap().state.has_job() {
            sleep(Duration::from_secs(1)).await;
        }
        let before = bed.requests(ApiOperation::List);
        while bed.requests(ApiOperation::List) == before {
            sleep(Duration::from_millis(1)).await;
        }
        signal.cancel();
    };
    let (report, ()) = tokio::join!(shrink(&bed, &document), told);
    assert_undone(&bed, &report, Outcome::Failed, Some(Cause::Cancelled));
}

/// What an administrator drained is not undrained, so that there was nothing to undo.
#[tokio::test(start_paused = true)]
async fn patience_that_is_over_does_not_begin_anew() {
    let (bed, document) = persistent(Duration::from_mins(130)).await;
    set(&bed, NodeAction::Drain, Some("bad disk")).await;
    let report = shrink(&bed, &document).await;
    assert_eq!(report.nodes[&node("n2")].cause, Some(Cause::Timeout), "{report:?}");
    assert!(bed.slurm.node("n2").unwrap().state.has_drain(), "as it was");
    assert_eq!(bed.live().len(), 2, "nothing deleted");
}

#[tokio::test(start_paused = true)]
async fn a_node_that_was_drained_again_is_undrained_when_jobs_do_not_end() {
    let (bed, document) = persistent(Duration::from_hours(3)).await;
    set(&bed, NodeAction::Drain, Some("bad disk")).await;
    let lifted = async {
        sleep(Duration::from_secs(30)).await;
        set(&bed, NodeAction::Undrain, None).await;
        sleep(Duration::from_secs(11)).await;
        assert!(bed.slurm.node("n2").unwrap().state.has_drain(), "drained again");
    };
    let (report, ()) = tokio::join!(shrink(&bed, &document), lifted);
    assert_undone(&bed, &report, Outcome::Failed, Some(Cause::Timeout));
}

#[tokio::test(start_paused = true)]
async fn a_resize_that_cannot_go_on_after_its_wait_takes_its_drain_back() {
    let (bed, document) = persistent(Duration::from_mins(10)).await;
    let lock = async {
        let lock = let_go_of(&bed).await;
        sleep(Duration::from_hours(1)).await;
        drop(lock);
    };
    let (report, ()) = tokio::join!(shrink(&bed, &document), lock);
    assert_undone(&bed, &report, Outcome::Busy, Some(Cause::Conflict));
}

/// The node was free once a stop had asked for it, and its drain looked like one that was forgotten.
#[tokio::test(start_paused = true)]
async fn a_reconcile_keeps_the_drain_of_a_resize_that_waits() {
    let (bed, document) = persistent(Duration::from_hours(1)).await;
    let others = async {
        drop(let_go_of(&bed).await);
        for _ in 0..3 {
            sleep(bed.site.policies.grace).await;
            bed.run(async |run| run::reconcile(run).await).await;
            assert!(bed.slurm.node("n2").unwrap().state.has_drain(), "lifted");
        }
    };
    let (report, ()) = tokio::join!(shrink(&bed, &document), others);
    assert!(report.is_success(), "{report:?}");
}

/// Somebody wrote slurm.conf, and died before slurmctld was told.
#[tokio::test(start_paused = true)]
async fn slurmctld_gets_the_addresses_of_nodes_of_an_earlier_run() {
    let (mut bed, document) = persistent(Duration::from_secs(1)).await;
    let mut settings = MemorySlurmSettings::cloud(&"n1".parse().unwrap());
    settings.nodes = vec![NodeSpec::fixed(node("n1"))];
    bed.slurm = MemorySlurm::new(settings);
    bed.slurm.set_conf_nodes(names("n[1-2]").into_iter().map(NodeSpec::fixed).collect());
    let report = resize(&bed, &document, 2).await;
    assert!(report.is_success(), "{report:?}");
    let machine = bed.live().into_iter().find(|machine| machine.name.as_str() == "n2").unwrap();
    let address = machine.address.unwrap().to_string();
    assert_eq!(bed.slurm.node("n2").unwrap().address, address, "{report:?}");
}

#[tokio::test(start_paused = true)]
async fn files_are_written_where_a_launch_failed() {
    let (mut bed, document) = persistent(Duration::from_secs(1)).await;
    let directory = tempfile::tempdir().unwrap();
    let hosts = directory.path().join("hosts");
    bed.files.hosts = Some(hosts.clone());
    bed.cloud.inject(ApiOperation::Launch, InjectedFault::Refuse(ErrorKind::Capacity));
    let report = resize(&bed, &document, 3).await;
    assert_eq!(report.nodes[&node("n3")].outcome, Outcome::Failed, "{report:?}");
    let text = std::fs::read_to_string(&hosts).unwrap();
    assert!(text.contains(" n1\n") && text.contains(" n2\n"), "{text}");
}

/// Without DNS, slurmctld runs without nodes that are not in the hosts file when it reads its own.
#[tokio::test(start_paused = true)]
async fn slurmctld_can_look_up_the_names_of_new_nodes() {
    let (mut bed, document) = persistent(Duration::from_secs(1)).await;
    let directory = tempfile::tempdir().unwrap();
    let hosts = directory.path().join("hosts");
    bed.files.hosts = Some(hosts.clone());
    bed.slurm.set_conf_nodes(names("n[1-3]").into_iter().map(NodeSpec::fixed).collect());
    let taken_up = async {
        while bed.slurm.all_nodes().len() < 3 {
            sleep(Duration::from_millis(1)).await;
        }
        std::fs::read_to_string(&hosts).unwrap_or_default()
    };
    let (report, text) = tokio::join!(resize(&bed, &document, 3), taken_up);
    assert!(report.is_success(), "{report:?}");
    assert!(text.contains(" n3\n"), "{text}");
}

/// One that stays has lost its machine and cannot have another; that is no reason to take back what was begun for the other.
#[tokio::test(start_paused = true)]
async fn a_node_that_goes_stays_drained_when_one_that_stays_fails() {
    let (mut bed, document) = deployed("n[1-3]").await;
    for (nodes, runs) in [(2, Duration::from_secs(2)), (1, Duration::from_mins(20))] {
        let _ = bed.slurm.submit_job(JobSpec::new(nodes, runs));
        sleep(Duration::from_secs(1)).await;
        let _ = bed.slurm.tick();
    }
    let lost = bed.live().into_iter().find(|machine| machine.name.as_str() == "n1").unwrap();
    assert!(bed.cloud.force(&lost.id, InstanceState::Terminated));
    sleep(Duration::from_secs(5)).await;
    let _ = bed.slurm.tick();
    bed.slurm.lost(&node("n1"));
    for _ in 0..600 {
        sleep(Duration::from_secs(1)).await;
        let _ = bed.slurm.tick();
    }
    assert!(bed.slurm.node("n1").unwrap().state.is_down(), "{:?}", bed.slurm.node("n1"));
    assert!(bed.slurm.node("n3").unwrap().state.has_job());
    // It could run on the second and the third.
    let waits = bed.slurm.submit_job(JobSpec::new(2, Duration::from_hours(9)));
    bed.site.image = None;
    let report = resize(&bed, &document, 2).await;
    let of = |name: &str| report.nodes.get(&node(name)).map(|told| told.outcome);
    assert_eq!((of("n1"), of("n3")), (Some(Outcome::Refused), Some(Outcome::Down)), "{report:?}");
    assert_eq!(bed.live().len(), 1, "{report:?}");
    let job = bed.slurm.job(waits).unwrap();
    assert!(job.nodes.is_empty(), "{job:?}");
}

/// `max_nodes` and the budget hold for persistent nodes, too.
#[tokio::test(start_paused = true)]
async fn a_resize_above_the_budget_or_max_nodes_launches_nothing() {
    let (mut bed, document) = deployed("n[1-2]").await;
    let prices = Prices::read("prices.yaml", "currency: USD\nshapes: {small: 1}\n").unwrap();
    let budget = Budget { per_day: Some(Price::from_micros(3_000_000)), ..Budget::default() };
    bed.site.allowance = Some(Allowance { budget, prices });
    let report = resize(&bed, &document, 4).await;
    let reason = report.nodes[&node("n4")].reason.clone().unwrap_or_default();
    assert!(reason.starts_with("budget: 3.00 of 3.00 USD spent this day"), "{report:?}");
    assert_eq!(bed.live().len(), 2, "all or none: {report:?}");
    bed.site.allowance = None;
    bed.site.policies.max_nodes = Some(2);
    let report = resize(&bed, &document, 3).await;
    let reason = report.nodes[&node("n3")].reason.clone().unwrap_or_default();
    assert_eq!(reason, "max_nodes: 2 of 2 machines run or start", "{report:?}");
}
