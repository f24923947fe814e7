//! Machines that get another image, or a reboot.

use crate::common::run;
use crate::common::{Bed, conf, groups, names, node};
use cloud_core::memory::{InjectedFault, MemoryCloudSettings, Span};
use cloud_core::{
    ApiOperation, ErrorKind, Image, ImageId, ImageName, Instance, InstanceId, InstanceName,
    InstanceSpec, Provider as _, ShapeName, Tags,
};
use provision::plan::{RebuildOptions, Rollout, Target, Vars};
use provision::{Cause, Outcome, RebuildHow, Report};
use slurmctl::memory::{Call, JobSpec};
use slurmctl::{Controller as _, Reason};
use std::time::Duration;
use tokio::time::Instant;

/// Persistent nodes, as StackHPC's appliance has them.
fn persistent(nodes: &str) -> Bed {
    let mut bed = Bed::new(nodes);
    bed.config = conf(&format!("NodeName={nodes} CPUs=2 State=UNKNOWN"));
    bed
}

/// A machine that others made, with these tags.
async fn server(bed: &Bed, name: &str, tags: Tags) -> InstanceId {
    let (shape, image) = (ShapeName::new("small"), ImageId::new("image-1"));
    let mut spec = InstanceSpec::new(InstanceName::new(name), shape, image);
    spec.tags = tags;
    let id = bed.cloud.launch(&spec).await.unwrap().id;
    tokio::time::sleep(Duration::from_mins(2)).await;
    id
}

fn target(name: &str, id: &InstanceId, image: &str) -> Target {
    let vars = Vars { image: ImageId::new(image), instance: Some(id.clone()) };
    Target { reboot_vars: Some(vars), ..Target::new(node(name)) }
}

/// As slurmctld asks: it calls its reboot program.
const ASKED: RebuildOptions =
    RebuildOptions { slurm_asks: true, leave_same: false, launch_absent: false, force: false };

async fn rebuild(bed: &Bed, targets: &[Target], options: RebuildOptions) -> Report {
    bed.run(async |run| run::rebuild(run, targets, options).await).await
}

fn shown(bed: &Bed, id: &InstanceId) -> Instance {
    bed.cloud.instances().into_iter().find(|one| one.id == *id).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_server_without_our_tags_is_rebuilt_where_its_file_names_it() {
    let bed = persistent("n[1-2]");
    let (one, two) =
        (server(&bed, "a", Tags::new()).await, server(&bed, "b", Tags::from([("x", "y")])).await);
    let other = server(&bed, "n2", Tags::new()).await;
    let targets = [target("n1", &one, "image-2"), target("n2", &two, "image-1")];
    let report = rebuild(&bed, &targets, ASKED).await;
    assert_eq!(report.with(Outcome::Done).count(), 2, "{report:?}");
    assert_eq!(shown(&bed, &one).image, Some(ImageId::new("image-2")));
    assert_eq!(bed.cloud.boots(&one), Some(2), "rebuilt");
    assert_eq!(bed.cloud.boots(&two), Some(2), "had its image, and was rebooted");
    assert_eq!(bed.cloud.boots(&other), Some(1), "has the name, and is not named");
    assert_eq!(bed.requests(ApiOperation::Launch), 3, "launched by us: none");
    assert_eq!(bed.requests(ApiOperation::Terminate), 0);
}

#[tokio::test(start_paused = true)]
async fn a_server_of_another_cluster_is_not_rebuilt_though_a_file_names_it() {
    let bed = persistent("n1");
    let theirs = server(&bed, "n1", Tags::from([("cluster", "red"), ("type", "compute")])).await;
    let report = rebuild(&bed, &[target("n1", &theirs, "image-2")], ASKED).await;
    assert_eq!(report.nodes[&node("n1")].outcome, Outcome::Refused, "{report:?}");
    assert_eq!(bed.requests(ApiOperation::Rebuild) + bed.requests(ApiOperation::Reboot), 0);
}

#[tokio::test(start_paused = true)]
async fn a_named_server_that_cannot_be_looked_at_fails_alone() {
    let bed = persistent("n[1-2]");
    let (one, two) = (server(&bed, "a", Tags::new()).await, server(&bed, "b", Tags::new()).await);
    bed.cloud.inject(ApiOperation::Get, InjectedFault::Refuse(ErrorKind::Forbidden));
    let targets = [target("n1", &one, "image-2"), target("n2", &two, "image-2")];
    let absent = RebuildOptions { launch_absent: true, ..ASKED };
    let report = rebuild(&bed, &targets, absent).await;
    let failed: Vec<_> = report.with(Outcome::Failed).collect();
    assert_eq!(failed.len(), 1, "{report:?}");
    assert_eq!(report.nodes[failed[0]].cause, Some(Cause::Forbidden));
    assert_eq!(report.with(Outcome::Done).count(), 1, "{report:?}");
    assert_eq!(bed.requests(ApiOperation::Launch), 2, "nothing launched in its place");
}

#[tokio::test(start_paused = true)]
async fn a_busy_get_is_asked_again() {
    let bed = persistent("n1");
    let one = server(&bed, "a", Tags::new()).await;
    bed.cloud.inject(ApiOperation::Get, InjectedFault::Refuse(ErrorKind::Throttled));
    let report = rebuild(&bed, &[target("n1", &one, "image-2")], ASKED).await;
    assert_eq!(report.with(Outcome::Done).count(), 1, "{report:?}");
}

/// An elastic node that is up and idle.
async fn up() -> (Bed, Instance) {
    let bed = Bed::new("n1");
    let (_, request) = bed.job(1).await;
    let (nodes, jobs) = (names("n1"), groups(&request));
    let report = bed.run(async |run| run::start(run, &nodes, &jobs).await).await;
    assert!(report.is_success(), "{report:?}");
    let instance = bed.live().remove(0);
    let address = instance.address.unwrap().to_string();
    let _ = bed.slurm.register(&node("n1"), &address, Instant::now());
    while bed.slurm.node("n1").unwrap().state.has_job() {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let _ = bed.slurm.tick();
    }
    (bed, instance)
}

/// What slurmctld calls its reboot program for.
async fn reboot_call(bed: &Bed) -> Vec<Target> {
    let reason = Reason::new("rebuild image:image-2");
    bed.slurm.reboot(&"n1".parse().unwrap(), &reason).await.unwrap();
    for _ in 0..10 {
        for call in bed.slurm.tick() {
            if let Call::Reboot { nodes } = call {
                return nodes.node_names().unwrap().into_iter().map(Target::new).collect();
            }
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    Vec::new()
}

#[tokio::test(start_paused = true)]
async fn slurm_asks_for_a_rebuild_and_gets_its_node_back() {
    let (mut bed, before) = up().await;
    let targets = reboot_call(&bed).await;
    assert_eq!(targets.len(), 1, "the reboot program is called");
    bed.site.image = Some(ImageId::new("image-2"));
    let report = rebuild(&bed, &targets, ASKED).await;
    assert_eq!(report.with(Outcome::Done).count(), 1, "{report:?}");
    let after = shown(&bed, &before.id);
    assert_eq!(after.image, Some(ImageId::new("image-2")));
    assert_eq!(bed.cloud.boots(&before.id), Some(2));
    let address = after.address.unwrap().to_string();
    let _ = bed.slurm.register(&node("n1"), &address, Instant::now());
    let state = bed.slurm.node("n1").unwrap().state;
    assert!(state.is_up() && !state.has_drain(), "{state}");
}

/// A roll waited for ResumeTimeout though we knew within seconds.
#[tokio::test(start_paused = true)]
async fn slurm_is_told_that_a_rebuild_failed() {
    let (mut bed, _) = up().await;
    let targets = reboot_call(&bed).await;
    bed.site.image = Some(ImageId::new("image-2"));
    bed.cloud.inject(ApiOperation::Rebuild, InjectedFault::Refuse(ErrorKind::Forbidden));
    let report = rebuild(&bed, &targets, ASKED).await;
    assert_eq!(report.nodes[&node("n1")].outcome, Outcome::Failed, "{report:?}");
    let told = bed.slurm.node("n1").unwrap();
    let reason = told.reason_text();
    assert!(reason.starts_with("rebuild image:image-2 : reboot issued"), "{reason}");
    assert!(reason.contains(": not rebuilt: "), "{reason}");
    assert!(told.state.is_reboot_issued(), "slurm takes it back if it comes after all: {told:?}");
}

/// A rollout halted for a node that was back a moment later.
#[tokio::test(start_paused = true)]
async fn a_rebuild_that_is_merely_late_is_not_reported_to_slurm_as_failed() {
    let (mut bed, before) = up().await;
    let targets = reboot_call(&bed).await;
    bed.site.image = Some(ImageId::new("image-2"));
    bed.site.policies.deadline = Duration::from_secs(5);
    let report = rebuild(&bed, &targets, ASKED).await;
    assert_eq!(report.nodes[&node("n1")].cause, Some(Cause::Timeout), "{report:?}");
    let known = bed.slurm.node("n1").unwrap();
    assert!(!known.reason_text().contains("not rebuilt"), "{known:?}");
    tokio::time::sleep(Duration::from_mins(1)).await;
    let after = shown(&bed, &before.id);
    assert_eq!(after.image, Some(ImageId::new("image-2")));
    let _ = bed.slurm.register(&node("n1"), &after.address.unwrap().to_string(), Instant::now());
    let state = bed.slurm.node("n1").unwrap().state;
    assert!(state.is_up() && !state.has_drain(), "{state}");
}

/// Slurm waited, and whoever rolled the image out with it.
#[tokio::test(start_paused = true)]
async fn slurm_is_told_that_a_node_in_another_s_hands_is_not_rebuilt() {
    let (bed, before) = up().await;
    let targets = reboot_call(&bed).await;
    let _theirs = bed.state.try_lock(&node("n1")).unwrap().unwrap();
    let report = rebuild(&bed, &targets, ASKED).await;
    assert_eq!(report.nodes[&node("n1")].outcome, Outcome::Busy, "{report:?}");
    let told = bed.slurm.node("n1").unwrap();
    assert!(told.reason_text().contains(": not rebuilt: another process"), "{told:?}");
    assert_eq!(bed.cloud.boots(&before.id), Some(1));
}

#[tokio::test(start_paused = true)]
async fn slurm_asks_for_a_rebuild_and_goes_away() {
    for asks in [true, false] {
        let (mut bed, before) = up().await;
        let targets = reboot_call(&bed).await;
        bed.site.image = Some(ImageId::new("image-2"));
        bed.slurm.set_unreachable(true);
        let options = RebuildOptions { slurm_asks: asks, ..ASKED };
        let report = rebuild(&bed, &targets, options).await;
        let wanted = if asks { Outcome::Done } else { Outcome::Refused };
        assert_eq!(report.nodes[&node("n1")].outcome, wanted, "{report:?}");
        assert_eq!(bed.cloud.boots(&before.id), Some(if asks { 2 } else { 1 }));
    }
}

#[tokio::test(start_paused = true)]
async fn nobody_s_word_rebuilds_a_node_with_another_job() {
    let (mut bed, before) = up().await;
    let _ = bed.slurm.submit_job(JobSpec::new(1, Duration::from_hours(1)));
    tokio::time::sleep(Duration::from_secs(1)).await;
    let _ = bed.slurm.tick();
    assert!(bed.slurm.node("n1").unwrap().state.has_job());
    bed.site.image = Some(ImageId::new("image-2"));
    let report = rebuild(&bed, &[Target::new(node("n1"))], ASKED).await;
    assert_eq!(report.nodes[&node("n1")].outcome, Outcome::Refused, "{report:?}");
    assert_eq!(bed.cloud.boots(&before.id), Some(1));
}

#[tokio::test(start_paused = true)]
async fn an_image_that_the_cloud_refuses_to_replace_gets_another_instance() {
    let (mut bed, before) = up().await;
    let targets = reboot_call(&bed).await;
    bed.site.image = Some(ImageId::new("image-2"));
    bed.cloud.inject(ApiOperation::Rebuild, InjectedFault::Refuse(ErrorKind::Unsupported));
    let report = rebuild(&bed, &targets, ASKED).await;
    assert_eq!(report.nodes[&node("n1")].outcome, Outcome::Up, "{report:?}");
    let after = bed.live();
    let [after] = &after[..] else { panic!("{after:?}") };
    assert_ne!(after.id, before.id);
    assert_eq!(after.image, Some(ImageId::new("image-2")));
    assert_eq!(bed.requests(ApiOperation::Rebuild), 1);
    let address = after.address.unwrap().to_string();
    assert_eq!(bed.slurm.node("n1").unwrap().address, address, "slurm knows where it is");
    let _ = bed.slurm.register(&node("n1"), &address, Instant::now());
    let state = bed.slurm.node("n1").unwrap().state;
    assert!(state.is_up() && !state.has_drain(), "{state}");
}

#[tokio::test(start_paused = true)]
async fn one_image_that_cannot_be_replaced_does_not_recreate_the_others() {
    let mut bed = persistent("n[1-3]");
    bed.config = conf("NodeName=n[1-3] CPUs=2 State=UNKNOWN Features=shape=small,ad=1");
    bed.site.policies.concurrency = 1;
    let ours = |name| Tags::from([("cluster", "blue"), ("type", "compute"), ("node", name)]);
    let one = server(&bed, "n1", ours("n1")).await;
    let strange = server(&bed, "n2", Tags::new()).await;
    let three = server(&bed, "n3", ours("n3")).await;
    for _ in 0..2 {
        bed.cloud.inject(ApiOperation::Rebuild, InjectedFault::Refuse(ErrorKind::Unsupported));
    }
    let targets = [("n1", &one), ("n2", &strange), ("n3", &three)];
    let targets = targets.map(|(name, id)| target(name, id, "image-2"));
    let report = rebuild(&bed, &targets, ASKED).await;
    let outcome = |name| report.nodes[&node(name)].outcome;
    assert_eq!([outcome("n1"), outcome("n3")], [Outcome::Up, Outcome::Done], "{report:?}");
    assert_eq!(outcome("n2"), Outcome::Failed, "{report:?}");
    let reason = report.nodes[&node("n2")].reason.as_ref().unwrap();
    let both = ["not supported", "not ours to replace"];
    assert!(both.into_iter().all(|words| reason.contains(words)), "{reason}");
    assert_eq!(bed.requests(ApiOperation::Terminate), 1);
    assert_eq!(bed.cloud.boots(&three), Some(2), "rebuilt in place");
}

/// One file that named a server we may not see kept the roll of all others from its end.
#[tokio::test(start_paused = true)]
async fn one_server_that_may_not_be_seen_leaves_the_listing_complete() {
    for (kind, complete) in [(ErrorKind::Forbidden, true), (ErrorKind::Protocol, false)] {
        let bed = persistent("n[1-2]");
        let theirs = server(&bed, "a", Tags::new()).await;
        for _ in 0..20 {
            bed.cloud.inject(ApiOperation::Get, InjectedFault::Refuse(kind));
        }
        let mut request = Rollout::new(ImageId::new("image-1"));
        request.named.insert(node("n1"), theirs);
        let look = bed.run(async |run| run.observe_rollout(&request).await).await;
        assert_eq!(look.fleet.is_complete(), complete, "{kind:?}: {:?}", look.warnings);
        assert_eq!(look.warnings.len(), 1, "{:?}", look.warnings);
    }
}

/// The first request for an image is lost, and its repeat refused as if it were under way: nothing comes of
/// it, and that node alone is late.
#[tokio::test(start_paused = true)]
async fn a_rebuild_that_never_ends_does_not_use_up_the_time_of_the_others() {
    let mut settings = MemoryCloudSettings::default();
    // So that requests come in the order in which they are made.
    settings.latency = Span::millis(50, 50);
    settings.images.push(Image::new(ImageId::new("image-3"), ImageName::new("compute-v3")));
    let mut bed = Bed::with("n[1-2]", settings);
    bed.config = conf("NodeName=n[1-2] CPUs=2 State=UNKNOWN");
    let (one, two) = (server(&bed, "a", Tags::new()).await, server(&bed, "b", Tags::new()).await);
    for trouble in [
        InjectedFault::LoseRequest,
        InjectedFault::Delay(Duration::ZERO),
        InjectedFault::Refuse(ErrorKind::Conflict),
    ] {
        bed.cloud.inject(ApiOperation::Rebuild, trouble);
    }
    let targets = [target("n1", &one, "image-2"), target("n2", &two, "image-3")];
    let run = async {
        let report = rebuild(&bed, &targets, ASKED).await;
        assert_eq!(report.nodes[&node("n1")].cause, Some(Cause::Timeout), "{report:?}");
        assert_eq!(report.nodes[&node("n2")].outcome, Outcome::Done, "{report:?}");
    };
    // Somebody breaks the second when it has long been back.
    let later = async {
        tokio::time::sleep(Duration::from_mins(2)).await;
        bed.cloud.terminate(&two).await.unwrap();
    };
    tokio::join!(run, later);
}

/// A machine that runs does not show whether it was rebooted: Slurm waited for one that nobody had asked for.
#[tokio::test(start_paused = true)]
async fn a_reboot_that_is_lost_on_the_way_is_repeated() {
    for trouble in [InjectedFault::LoseRequest, InjectedFault::LoseResponse] {
        let bed = persistent("n1");
        let one = server(&bed, "a", Tags::new()).await;
        bed.cloud.inject(ApiOperation::Reboot, trouble);
        let report = rebuild(&bed, &[target("n1", &one, "image-1")], ASKED).await;
        assert_eq!(report.nodes[&node("n1")].outcome, Outcome::Done, "{report:?}");
        assert_eq!(bed.cloud.boots(&one), Some(2), "{trouble:?}");
    }
    let bed = persistent("n1");
    let one = server(&bed, "a", Tags::new()).await;
    bed.cloud.inject_randomly(Some(ApiOperation::Reboot), InjectedFault::LoseRequest, 1.0);
    let report = rebuild(&bed, &[target("n1", &one, "image-1")], ASKED).await;
    assert_eq!(report.nodes[&node("n1")].cause, Some(Cause::Ambiguous), "{report:?}");
}

/// By then the machine may be back, and a job run on it.
#[tokio::test(start_paused = true)]
async fn a_reboot_is_not_asked_for_again_when_its_answer_is_long_in_coming() {
    let mut settings = MemoryCloudSettings::default();
    settings.latency = Span::millis(20_000, 20_000);
    let mut bed = Bed::with("n1", settings);
    bed.config = conf("NodeName=n1 CPUs=2 State=UNKNOWN");
    let one = server(&bed, "a", Tags::new()).await;
    bed.cloud.inject(ApiOperation::Reboot, InjectedFault::LoseResponse);
    let report = rebuild(&bed, &[target("n1", &one, "image-1")], ASKED).await;
    assert_eq!(report.nodes[&node("n1")].cause, Some(Cause::Ambiguous), "{report:?}");
    assert_eq!(bed.requests(ApiOperation::Reboot), 1);
}

/// A cloud that does not show what is gone has to be asked for each.
#[tokio::test(start_paused = true)]
async fn many_machines_that_vanish_are_not_taken_for_ones_that_stay() {
    let mut settings = MemoryCloudSettings::default();
    settings.linger = Duration::ZERO;
    let mut bed = Bed::with("n[1-400]", settings);
    let nodes = names("n[1-400]");
    bed.site.policies.deadline = Duration::from_mins(30);
    bed.site.policies.rebuild = RebuildHow::Recreate;
    let report = bed.run(async |run| run::start(run, &nodes, &[]).await).await;
    assert_eq!(report.with(Outcome::Up).count(), 400, "{report:?}");
    bed.site.image = Some(ImageId::new("image-2"));
    let targets: Vec<Target> = nodes.into_iter().map(Target::new).collect();
    let report = rebuild(&bed, &targets, ASKED).await;
    let late = report.nodes.values().find(|node| node.outcome != Outcome::Up);
    assert_eq!(report.with(Outcome::Up).count(), 400, "{late:?}");
}
