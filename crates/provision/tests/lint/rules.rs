//! Every rule of the linter catches the bug it is there for.

use super::{Violation, lint};
use cloud_core::{ImageId, Instance, InstanceId, InstanceName, InstanceState, Reboot, Tags};
use hostlist::NodeName;
use provision::plan::{
    self, Clear, FileStep, MachineStep, Notification, Operation, Plan, Stage, Step, Still,
    WrittenFile,
};
use provision::{Cause, Cooldowns, Fleet, Identity, Roster, Site, Wanted, World};
use slurmconf::Config;
use std::time::UNIX_EPOCH;

fn node(name: &str) -> NodeName {
    NodeName::new(name).unwrap()
}

fn id(id: &str) -> InstanceId {
    InstanceId::new(id)
}

fn instance(id: &str, name: &str, cluster: &str) -> Instance {
    let mut instance =
        Instance::new(InstanceId::new(id), InstanceName::new(name), InstanceState::Running);
    instance.tags = Tags::from([("cluster", cluster), ("type", "compute"), ("node", name)]);
    instance
}

/// What the plan does wrong, in a world with n1 and n2 up, n3 down, another cluster's n3, and one
/// without tags that the file of n3 names.
fn found(complete: bool, stages: impl FnOnce(World<'_>) -> Vec<Stage>) -> Vec<Violation> {
    let config = Config::parse("NodeName=n[1-3] State=CLOUD Features=shape=VM.S\n").unwrap();
    let conf = Roster::new(&config);
    let mut site = Site::new(Identity::cluster("blue"));
    site.image = Some(ImageId::new("img-1"));
    let listing = [
        instance("i-1", "n1", "blue"),
        instance("i-2", "n2", "blue"),
        instance("i-3", "n3", "green"),
    ];
    let mut theirs = instance("i-4", "n3", "blue");
    theirs.tags = Tags::new();
    let fleet = Fleet::new(&site.identity, &conf, listing, complete)
        .with_named(&site.identity, [(node("n3"), theirs)]);
    let cooldowns = Cooldowns::new();
    let world = World {
        site: &site,
        conf: &conf,
        fleet: &fleet,
        slurm: None,
        jobs: Some(&[]),
        cooldowns: &cooldowns,
        spending: None,
        now: UNIX_EPOCH,
    };
    let mut plan = Plan::new(Operation::Start);
    plan.stages = stages(world);
    lint(&plan, world)
}

fn launch(name: &str, first: Vec<Clear>, world: World<'_>) -> Step {
    let wanted = world.site.wanted(&node(name), world.conf.get(&node(name)).unwrap()).unwrap();
    Step::Machine(MachineStep::Launch { wanted, first, reports_address: true })
}

fn terminate(name: &str, ids: &[&str]) -> Step {
    Step::Machine(MachineStep::Terminate {
        node: node(name),
        ids: ids.iter().map(|text| id(text)).collect(),
    })
}

#[test]
fn a_sound_plan_has_nothing_against_it() {
    let clear = || vec![Clear::Terminate(id("i-1"))];
    let steps = |world: World<'_>| {
        vec![launch("n1", clear(), world), terminate("n2", &["i-2"]), launch("n3", vec![], world)]
    };
    assert_eq!(found(true, |world| vec![Stage::new("start", steps(world))]), []);
}

#[test]
fn a_node_twice_in_one_stage() {
    let steps = |world: World<'_>| vec![launch("n3", vec![], world), launch("n3", vec![], world)];
    let violations = found(true, |world| vec![Stage::new("start", steps(world))]);
    let twice = [Violation::NodeTwice(node("n3")), Violation::UpTwice(node("n3"))];
    assert_eq!(violations, twice);
}

#[test]
fn a_node_in_two_stages_is_no_bug() {
    let drain = Step::notify(
        [node("n1")],
        Notification::Drain { reason: plan::our_reason("x"), only_asleep: false },
    );
    let stages =
        vec![Stage::new("drain", vec![drain]), Stage::new("end", vec![terminate("n1", &["i-1"])])];
    assert_eq!(found(true, |_| stages), []);
}

#[test]
fn an_instance_twice_in_one_stage() {
    let step = terminate("n1", &["i-1", "i-1"]);
    let violations = found(true, |_| vec![Stage::new("stop", vec![step])]);
    assert_eq!(violations, [Violation::InstanceTwice(id("i-1"))]);
}

#[test]
fn a_launch_for_a_node_with_a_live_instance() {
    let violations =
        found(true, |world| vec![Stage::new("start", vec![launch("n1", vec![], world)])]);
    assert_eq!(violations, [Violation::LaunchWhileLive(node("n1"), id("i-1"))]);
}

#[test]
fn an_end_that_nobody_waits_for_does_not_clear_the_way() {
    let stages = |world: World<'_>| {
        vec![
            Stage::new("stop", vec![terminate("n1", &["i-1"])]),
            Stage::new("start", vec![launch("n1", vec![], world)]),
        ]
    };
    assert_eq!(found(true, stages), [Violation::LaunchWhileLive(node("n1"), id("i-1"))]);
    let waited = |world: World<'_>| {
        let gone = Step::Machine(MachineStep::WaitGone { node: node("n1"), ids: vec![id("i-1")] });
        vec![
            Stage::new("stop", vec![terminate("n1", &["i-1"])]),
            Stage::new("confirm", vec![gone]),
            Stage::new("start", vec![launch("n1", vec![], world)]),
        ]
    };
    assert_eq!(found(true, waited), []);
}

#[test]
fn a_launch_with_nowhere_to_go() {
    let step = |world: World<'_>| {
        let wanted = world.wanted(&node("n3")).unwrap();
        Step::Machine(MachineStep::Launch {
            wanted: Wanted { places: vec![], ..wanted },
            first: vec![],
            reports_address: true,
        })
    };
    let violations = found(true, |world| vec![Stage::new("start", vec![step(world)])]);
    assert_eq!(violations, [Violation::NoPlace(node("n3"))]);
}

#[test]
fn a_launch_on_an_incomplete_listing() {
    let violations =
        found(false, |world| vec![Stage::new("start", vec![launch("n3", vec![], world)])]);
    assert_eq!(violations, [Violation::Blind(node("n3"))]);
}

#[test]
fn an_instance_of_another_cluster_or_of_nobody() {
    let step = terminate("n3", &["i-3", "i-99"]);
    let violations = found(true, |_| vec![Stage::new("stop", vec![step])]);
    assert_eq!(violations, [Violation::Foreign(id("i-3")), Violation::Foreign(id("i-99"))]);
}

#[test]
fn an_instance_of_another_node() {
    let step = terminate("n1", &["i-2"]);
    let violations = found(true, |_| vec![Stage::new("stop", vec![step])]);
    assert_eq!(violations, [Violation::OtherNode(node("n1"), id("i-2"))]);
}

#[test]
fn what_undoes_a_stage_is_looked_at_as_well() {
    let undo = vec![terminate("n3", &["i-3"])];
    let stage = Stage::new("x", vec![terminate("n1", &["i-1"])]).or_undo(undo);
    assert_eq!(found(true, |_| vec![stage]), [Violation::Foreign(id("i-3"))]);
}

#[test]
fn what_a_file_names_may_be_rebuilt_and_rebooted_and_nothing_else() {
    let stage = |step: Step| found(true, |_| vec![Stage::new("x", vec![step])]);
    let rebuild = |name: &str| {
        Step::Machine(MachineStep::Rebuild {
            node: node(name),
            id: id("i-4"),
            image: ImageId::new("img-2"),
        })
    };
    let reboot =
        Step::Machine(MachineStep::Reboot { node: node("n3"), id: id("i-4"), how: Reboot::Soft });
    assert_eq!(stage(rebuild("n3")), []);
    assert_eq!(stage(reboot), []);
    let foreign = [Violation::Foreign(id("i-4"))];
    assert_eq!(stage(rebuild("n1")), foreign);
    assert_eq!(stage(terminate("n3", &["i-4"])), foreign);
    let recreate = |world: World<'_>| {
        let step = Step::Machine(MachineStep::Recreate {
            id: id("i-4"),
            wanted: world.wanted(&node("n3")).unwrap(),
        });
        vec![Stage::new("x", vec![step])]
    };
    assert_eq!(found(true, recreate), foreign);
}

#[test]
fn a_node_brought_up_in_two_stages() {
    let again = |world: World<'_>| {
        let step = |world| launch("n3", vec![], world);
        vec![
            Stage::new("start", vec![step(world)]),
            Stage::new("behind the probe", vec![step(world)]),
        ]
    };
    assert_eq!(found(true, again), [Violation::UpTwice(node("n3"))]);
    let adopt =
        Step::Machine(MachineStep::Adopt { node: node("n1"), id: id("i-1"), address: None });
    let replaced = |world: World<'_>| {
        let clear = vec![Clear::Terminate(id("i-1"))];
        vec![Stage::new("x", vec![adopt]), Stage::new("y", vec![launch("n1", clear, world)])]
    };
    let both = [Violation::InstanceTwice(id("i-1")), Violation::UpTwice(node("n1"))];
    assert_eq!(found(true, replaced), both);
}

#[test]
fn a_node_given_back_and_launched_later() {
    let reason = plan::our_reason("x");
    let back = Step::notify(
        [node("n3")],
        Notification::ReturnToSlurm { still: Still::Awaited, cause: Cause::Cooling, reason },
    );
    let stages = |world: World<'_>| {
        vec![
            Stage::new("return to slurm", vec![back]),
            Stage::new("start", vec![launch("n3", vec![], world)]),
        ]
    };
    assert_eq!(found(true, stages), [Violation::UpAndBack(node("n3"))]);
}

#[test]
fn waiting_for_an_instance_to_go_that_nobody_ends() {
    let clear = vec![Clear::AwaitGone(id("i-1"))];
    let violations =
        found(true, |world| vec![Stage::new("start", vec![launch("n1", clear, world)])]);
    assert_eq!(violations, [Violation::LaunchWhileLive(node("n1"), id("i-1"))]);
}

#[test]
fn an_instance_ended_and_taken_in_another_stage() {
    let adopt =
        Step::Machine(MachineStep::Adopt { node: node("n1"), id: id("i-1"), address: None });
    let stages =
        vec![Stage::new("x", vec![terminate("n1", &["i-1"])]), Stage::new("y", vec![adopt])];
    assert_eq!(found(true, |_| stages), [Violation::InstanceTwice(id("i-1"))]);
}

#[test]
fn a_node_that_leaves_slurm_conf_before_its_machine_is_gone() {
    let write = || {
        Step::File(FileStep::Write {
            which: WrittenFile::SlurmConf,
            before: Vec::new(),
            text: Vec::new(),
            summary: String::new(),
            drops: vec![node("n1"), node("n3")],
        })
    };
    let ended = || Stage::new("terminate", vec![terminate("n1", &["i-1"])]);
    let stages = vec![ended(), Stage::new("write", vec![write()])];
    let live = [Violation::DroppedWhileLive(node("n1"), id("i-1"))];
    assert_eq!(found(true, |_| stages), live);
    let gone = Step::Machine(MachineStep::WaitGone { node: node("n1"), ids: vec![id("i-1")] });
    let confirmed = Stage::new("confirm", vec![gone]);
    let stages = vec![ended(), confirmed, Stage::new("write", vec![write()])];
    assert_eq!(found(true, |_| stages), []);
}
