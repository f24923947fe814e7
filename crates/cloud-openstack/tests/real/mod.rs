//! The crate against a real Keystone, Nova, Glance and Neutron.
//!
//! A cloud takes its time to start, so that one serves many scenarios. Each says how it went, and
//! one that fails does not keep the others from being tried.

mod addresses;
mod cloud;
mod fixture;
mod launch_resources;
mod legacy_tag;
mod proxy;
mod scenarios;

use cloud::{Caller, Cloud, connect, settings, through};
use cloud_core::conformance::{CASES, Verdict};
use cloud_openstack::OpenStack;
use fixture::{PAGE, RealFixture};
use proxy::Proxy;
use scenarios::Harness;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

/// What a conformance case may not be able to try here: Nova has neither.
const NOT_HERE: [&str; 2] = ["idempotent_launch", "capacity_at_once"];

/// Runs scenarios one after the other, and says which have failed.
macro_rules! scenarios {
    ($world:expr, $($scenario:ident $(($argument:expr))?),+ $(,)?) => {{
        let mut failed = Vec::new();
        $({
            let begin = Instant::now();
            let name = concat!(stringify!($scenario) $(, " ", stringify!($argument))?);
            let world = Arc::clone(&$world);
            // A task of its own, so that a panic ends it and not us.
            let task = tokio::spawn(async move {
                scenarios::$scenario(&world.harness() $(, $argument)?).await;
            });
            let verdict = if task.await.is_ok() {
                "passed"
            } else {
                failed.push(name.to_owned());
                "FAILED"
            };
            println!("{name} in {:.1} s: {verdict}", begin.elapsed().as_secs_f32());
        })+
        failed
    }};
}

/// The list was made on a Python that has `cgi`, and the next one has not.
#[test]
fn the_client_runs_with_the_python_that_has_its_packages() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/openstack");
    let printed = |command: &mut Command| {
        let output = command.current_dir(&folder).output().expect("a program");
        assert!(output.status.success(), "{command:?}: {output:?}");
        String::from_utf8(output.stdout).expect("text")
    };
    let template = printed(&mut Command::new(folder.join("fetch")));
    let python = Path::new(template.trim_end()).with_file_name("venv").join("bin/python");
    let missing = printed(Command::new(python).arg("missing.py"));
    assert_eq!(missing, "");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_real_openstack_conforms_and_is_dealt_with_and_takes_batches() {
    let begin = Instant::now();
    let world = Arc::new(World::new().await);
    let mut failed = conformance(&world).await;
    failed.extend(scenarios![
        world,
        bad_credentials_are_told_in_one_sentence,
        tokens_are_renewed,
        an_ambiguous_name_is_refused,
        resources_of_launches_are_looked_up,
        servers_with_the_legacy_tag_alone_are_listed,
        addresses_of_many_are_looked_for_among_ours,
        a_port_quota_is_a_quota,
        one_server_with_everything,
        a_spawn_error_is_a_fault,
        a_name_is_not_a_pattern,
        another_projects_server_is_left_alone,
        a_batch_costs_what_it_must(1),
        a_batch_costs_what_it_must(10),
        a_batch_costs_what_it_must(25),
    ]);
    println!("all of it in {:.1} s", begin.elapsed().as_secs_f32());
    assert!(failed.is_empty(), "{failed:#?}");
}

/// The suite for all clouds, with pages so short that listings have several; returns what failed.
async fn conformance(world: &World) -> Vec<String> {
    let World { cloud, proxy, admin, .. } = world;
    let fixture = RealFixture { cloud, proxy, admin, no_room: AtomicBool::new(false) };
    let mut settings = settings();
    settings.page = PAGE;
    let entry = through(proxy, cloud.entry("app"));
    let provider = connect(&entry, settings).await.expect("a connection");
    let mut failed = Vec::new();
    for case in CASES {
        let begin = Instant::now();
        let verdict = case.run(&provider, &fixture).await;
        println!("{} in {:.1} s: {verdict:?}", case.name, begin.elapsed().as_secs_f32());
        let why = match (verdict, NOT_HERE.contains(&case.name)) {
            (Verdict::Passed, false) | (Verdict::Skipped(_), true) => continue,
            (Verdict::Passed, true) => "it was tried".to_owned(),
            (Verdict::Skipped(why), false) | (Verdict::Failed(why), _) => why,
        };
        failed.push(format!("{}: {why}", case.name));
    }
    failed
}

struct World {
    cloud: Cloud,
    proxy: Proxy,
    admin: Caller,
    provider: OpenStack,
}

impl World {
    async fn new() -> Self {
        let cloud = started();
        let proxy = Proxy::new(&cloud).await;
        let admin = Caller::new(&cloud, "admin").await;
        let entry = through(&proxy, cloud.entry("app"));
        let provider = connect(&entry, settings()).await.expect("a connection");
        assert!(provider.warnings().is_empty(), "{:?}", provider.warnings());
        Self { cloud, proxy, admin, provider }
    }

    fn harness(&self) -> Harness<'_> {
        let Self { cloud, proxy, admin, provider } = self;
        Harness { cloud, proxy, admin, provider }
    }
}

fn started() -> Cloud {
    let begin = Instant::now();
    let cloud = Cloud::new();
    println!("OpenStack is up after {:.1} s", begin.elapsed().as_secs_f32());
    cloud
}
