//! What went wrong with others: a test for each, named after it.

use crate::common::run;
use crate::common::{Bed, conf, groups, names, node};
use cloud_core::memory::InjectedFault;
use cloud_core::{ApiOperation, ErrorKind, ImageId, InstanceState, ShapeName, Zone};
use hostlist::Hostlist;
use provision::plan::{
    FindingKind, Finish, Gaps, RebuildOptions, Resize, Rollout, Target, reconcile,
};
use provision::state::StateDir;
use provision::{Cause, Cooldowns, Fleet, Outcome, Roster, World};
use slurmctl::{Controller as _, Node, NodeAction, NodeState, Reason, ResumeRequest};
use std::collections::BTreeMap;
use std::time::Duration;

async fn start(bed: &Bed, request: &ResumeRequest) -> provision::Report {
    let nodes = request.all.node_names().unwrap();
    bed.run(async |run| run::start(run, &nodes, &groups(request)).await).await
}

/// 1: an empty resume file, and nothing was launched, and nothing failed. (One that cannot be read fails.)
#[tokio::test(start_paused = true)]
async fn an_empty_resume_file_starts_every_node_on_its_own() {
    for file in ["", "\n"] {
        let bed = Bed::new("n[1-3]");
        let request = ResumeRequest::parse(&"n[1-3]".parse().unwrap(), file.as_bytes()).unwrap();
        assert!(!request.warnings.is_empty(), "{file:?}");
        let report = start(&bed, &request).await;
        assert_eq!(report.with(Outcome::Up).count(), 3, "{file:?}");
    }
}

/// 2: a node powered up by hand is in no job, and was refused and set down.
#[tokio::test(start_paused = true)]
async fn a_node_powered_up_by_hand_is_started() {
    let bed = Bed::new("n[1-2]");
    let file = r#"{"jobs":[],"all_nodes_resume":"n2"}"#;
    let list: Hostlist = "n2".parse().unwrap();
    bed.slurm.set_state(&list, NodeAction::PowerUp, None).await.unwrap();
    let report = start(&bed, &ResumeRequest::parse(&list, file.as_bytes()).unwrap()).await;
    assert_eq!(report.nodes[&node("n2")].outcome, Outcome::Up);
    assert!(!bed.slurm.node("n2").unwrap().state.is_down());
}

/// 3: fields that a newer Slurm adds to the file failed every node.
#[tokio::test(start_paused = true)]
async fn fields_of_a_newer_slurm_fail_no_node() {
    let bed = Bed::new("n1");
    let file = r#"{"jobs":[{"exclusive":"NO","priority":1,"hereafter":{"x":[1]},"job_id":1,
        "nodes_alloc":"n1","nodes_resume":"n1"}],"all_nodes_resume":"n1","more":true}"#;
    let report =
        start(&bed, &ResumeRequest::parse(&"n1".parse().unwrap(), file.as_bytes()).unwrap()).await;
    assert!(report.is_success(), "{report:?}");
}

/// 4: names that a pattern did not match were dropped without a word.
#[tokio::test(start_paused = true)]
async fn no_name_is_dropped_without_a_word() {
    let mut bed = Bed::new("q1-dy-c1-[1-3]");
    bed.config = conf("NodeName=q1-dy-c1-[1-3] State=CLOUD Features=shape=small,ad=1");
    let nodes = names("q1-dy-c1-[1-3],GPU_bad-1");
    assert_eq!(nodes.len(), 4);
    let report = bed.run(async |run| run::start(run, &nodes, &[]).await).await;
    assert_eq!(report.nodes.len(), 4, "every name has its line");
    assert_eq!(report.nodes[&node("GPU_bad-1")].outcome, Outcome::Refused);
    assert_eq!(report.with(Outcome::Up).count(), 3);
    assert_eq!(report.exit_code(), 1);
}

/// 5: while one partition was busy, the other's failures were not acted upon.
#[tokio::test(start_paused = true)]
async fn one_pool_in_use_does_not_shield_another_that_fails() {
    let mut bed = Bed::new("a[1-2],b[1-2],c1");
    bed.config = conf(
        "NodeName=a[1-2] State=CLOUD Features=shape=small,ad=1\n\
         NodeName=b[1-2] State=CLOUD Features=shape=small,ad=2\n\
         NodeName=c1 State=CLOUD Features=shape=small,ad=3",
    );
    let report = bed.run(async |run| run::start(run, &names("a1"), &[]).await).await;
    assert!(report.is_success());
    for zone in ["zone-1", "zone-2"] {
        bed.cloud.set_capacity(ShapeName::new("small"), Some(Zone::new(zone)), Some(0));
    }
    let both = names("a2,b1");
    bed.run(async |run| run::start(run, &both, &[]).await).await;
    let launches = bed.requests(ApiOperation::Launch);
    let again = names("a2,b2");
    let report = bed.run(async |run| run::start(run, &again, &[]).await).await;
    assert_eq!(bed.requests(ApiOperation::Launch), launches, "both pools cool down");
    assert_eq!(report.exit_code(), 1);
    for (name, zone) in [("a2", "zone-1"), ("b2", "zone-2")] {
        let failed = &report.nodes[&node(name)];
        assert_eq!(failed.cause, Some(Cause::Cooling), "{failed:?}");
        assert!(failed.reason.as_ref().unwrap().contains(zone), "{failed:?}");
    }
    let report = bed.run(async |run| run::start(run, &names("c1"), &[]).await).await;
    assert!(report.is_success(), "the third has room: {report:?}");
}

/// 6: a failure in scaling down ended all scaling up; a lock stayed behind after a kill.
#[tokio::test(start_paused = true)]
async fn a_stop_that_fails_or_dies_hinders_no_start() {
    let directory = tempfile::tempdir().unwrap();
    let mut bed = Bed::new("n[1-4]");
    bed.state = Box::new(StateDir::open(directory.path()).unwrap());
    let nodes = names("n[1-3]");
    bed.run(async |run| run::start(run, &nodes, &[]).await).await;
    bed.cloud.inject(ApiOperation::Terminate, InjectedFault::Refuse(ErrorKind::Forbidden));
    let report = bed.run(async |run| run::stop(run, &nodes).await).await;
    assert_eq!(report.with(Outcome::Down).count(), 2, "the others are stopped: {report:?}");
    assert_eq!(report.with(Outcome::Failed).count(), 1);
    // Killed in the middle, with the lock in hand.
    let killed = bed.run(async |run| {
        let stop = run::stop(run, &nodes);
        tokio::time::timeout(Duration::from_millis(10), stop).await.is_err()
    });
    assert!(killed.await);
    let report = bed.run(async |run| run::start(run, &names("n[1-4]"), &[]).await).await;
    assert_eq!(report.with(Outcome::Busy).count(), 0);
    assert!(report.is_success(), "{report:?}");
}

/// 7: text of a message was run as a program.
#[tokio::test(start_paused = true)]
async fn words_of_others_are_only_words() {
    let bed = Bed::new("n1");
    let hostile = "__import__('os').system('x'); $(reboot) `id` \"\n' ; rm";
    let file = serde_json::json!({"jobs": [{"job_id": 1, "nodes_resume": "n1", "nodes_alloc": "n1",
        "extra": hostile, "features": hostile, "partition": hostile}]});
    let list = "n1".parse().unwrap();
    let request = ResumeRequest::parse(&list, file.to_string().as_bytes()).unwrap();
    assert!(start(&bed, &request).await.is_success());
    let reason = Reason::new(hostile);
    assert!(reason.as_str().chars().all(|c| !c.is_control()), "{reason:?}");
    assert!("n1;reboot,$(id)".parse::<Hostlist>().unwrap().node_names().is_err());
}

/// 8: an address as text was looked for among addresses as values.
#[test]
fn addresses_are_compared_as_addresses() {
    let config = conf("NodeName=n1 State=CLOUD Features=shape=small");
    let roster = Roster::new(&config);
    let site = provision::Site::new(provision::Identity::cluster("blue"));
    let mut instance = cloud_core::Instance::new(
        cloud_core::InstanceId::new("i-1"),
        cloud_core::InstanceName::new("n1"),
        InstanceState::Running,
    );
    instance.tags = site.identity.tags_of(&node("n1"));
    instance.address = Some("fd00::1".parse().unwrap());
    let fleet = Fleet::new(&site.identity, &roster, [instance], true);
    for (address, wrong) in [("fd00:0:0:0:0:0:0:1", false), ("fd00::2", true)] {
        let state = NodeState::from("IDLE+CLOUD+NOT_RESPONDING+POWERING_UP");
        let mut known = Node::new(node("n1"), state);
        known.address = address.to_owned();
        let slurm = BTreeMap::from([(node("n1"), known)]);
        let cooldowns = Cooldowns::new();
        let world = World {
            site: &site,
            conf: &roster,
            fleet: &fleet,
            slurm: Some(&slurm),
            jobs: Some(&[]),
            cooldowns: &cooldowns,
            spending: None,
            now: std::time::SystemTime::UNIX_EPOCH,
        };
        let (plan, _) = reconcile(&provision::plan::Sightings::default(), world);
        let found = plan.findings.iter().any(|finding| finding.kind == FindingKind::WrongAddress);
        assert_eq!(found, wrong, "{address}: {plan}");
    }
}

/// 9: a command called a function that was no longer there.
#[tokio::test(start_paused = true)]
async fn every_way_in_leads_somewhere() {
    let bed = Bed::new("n[1-2]");
    let nodes = names("n[1-2]");
    assert!(bed.run(async |run| run::start(run, &nodes, &[]).await).await.is_success());
    assert!(bed.run(async |run| run::reconcile(run).await).await.is_success());
    let targets: Vec<Target> = nodes.iter().cloned().map(Target::new).collect();
    let options = RebuildOptions { force: true, ..RebuildOptions::default() };
    let report = bed.run(async |run| run::rebuild(run, &targets, options).await).await;
    assert!(report.is_success(), "{report:?}");
    let mut rollout = Rollout::new(ImageId::new("image-2"));
    assert!(bed.run(async |run| run::rollout(run, &mut rollout).await).await.is_ok());
    let report = bed.run(async |run| run::failed(run, &names("n2")).await).await;
    assert!(report.is_success(), "{report:?}");
    assert!(bed.run(async |run| run::deploy(run, None).await).await.is_success());
    let (plan, _) = bed.run(async |run| run::preview_reconcile(run).await).await;
    assert!(plan.findings.iter().all(|found| found.kind != FindingKind::Blind), "{plan}");
    let text = "# STARTNODES\nNodeName=n[1-2] State=CLOUD Features=shape=small,ad=1\n# ENDNODES\n";
    let document = slurmconf::Document::parse(text.to_owned());
    let version = slurmconf::SlurmVersion::new(24, 11);
    let patience = Duration::from_mins(1);
    let limits = slurmconf::Limits::read("limits.yaml", "VM.Standard2.1: 1").unwrap();
    let site = slurmconf::GenerateOptions::default();
    let cluster = slurmconf::generate(&limits, &slurm_testbed::shapes(), &site).unwrap();
    let finish = Finish {
        document: &document,
        cluster: &cluster,
        version,
        force: true,
        reload: false,
        unapplied: false,
        patience,
    };
    let report = bed.run(async |run| run::finish(run, &finish).await).await.unwrap();
    assert!(report.is_success(), "{report:?}");
    let resize = Resize { groups: &[], gaps: Gaps::Keep, document: &document, version, patience };
    let report = bed.run(async |run| run::resize(run, &resize).await).await;
    assert!(report.is_success(), "{report:?}");
    assert!(bed.run(async |run| run::start(run, &nodes, &[]).await).await.is_success());
    assert!(bed.run(async |run| run::stop(run, &nodes).await).await.is_success());
    assert!(bed.run(async |run| run::start(run, &nodes, &[]).await).await.is_success());
    assert!(bed.run(async |run| run::stop_now(run, &nodes).await).await.is_success());
    assert!(bed.run(async |run| run::stop_all(run).await).await.is_success());
    assert!(bed.live().is_empty());
}

/// 10: a reason was cut at its first blank, and a value at its `=`.
#[tokio::test(start_paused = true)]
async fn a_reason_comes_through_whole() {
    let bed = Bed::new("n1");
    bed.cloud.inject(ApiOperation::Launch, InjectedFault::Refuse(ErrorKind::Forbidden));
    let (_, request) = bed.job(1).await;
    let report = start(&bed, &request).await;
    let words = report.nodes[&node("n1")].reason.clone().unwrap();
    assert!(words.contains(' ') && words.contains("not allowed"), "{words}");
    let told = bed.slurm.node("n1").unwrap();
    assert!(told.reason_text().ends_with(&words), "{} / {words}", told.reason_text());
    let odd = Reason::new("limit=5 of a=b, c = d");
    assert_eq!(odd.as_str(), "limit=5 of a=b, c = d");
}
