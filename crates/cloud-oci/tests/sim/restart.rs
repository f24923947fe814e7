//! A launch by one process that is killed, and the same launch by another.

use crate::sim::fixture::{SimFixture, http, pacer, spec};
use cloud_core::Sources;
use cloud_core::{LaunchToken, Provider as _, SubnetId};
use cloud_oci::{Clock, Config, LaunchOptions, Oci, Overrides};
use cloud_sim::{CloudSettings, Fault, Rule};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

/// Where the other process finds the cloud, and its credentials.
const ENDPOINT: &str = "CLOUD_OCI_TEST_ENDPOINT";
const CONFIG: &str = "CLOUD_OCI_TEST_CONFIG";

/// This very program as another process, which launches.
fn launching(fixture: &SimFixture, config: &Path) -> Child {
    Command::new(std::env::current_exe().expect("this program has a path"))
        .args(["--exact", "sim::restart::launches", "--ignored", "--nocapture"])
        .env(ENDPOINT, fixture.cloud.endpoint())
        .env(CONFIG, config)
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts")
}

#[tokio::test]
#[ignore = "the other process of the test below"]
async fn launches() {
    let variable = |name| std::env::var(name).ok();
    // Run by hand with all that is ignored, it is nobody's other process.
    let (Some(file), Some(endpoint)) = (variable(CONFIG), variable(ENDPOINT)) else {
        return;
    };
    let sources = Sources::of_system(None, BTreeMap::new());
    let overrides =
        Overrides { file: Some(file.into()), endpoint: Some(endpoint), ..Overrides::default() };
    let config = Config::load(&sources, &overrides, SystemTime::now()).expect("good");
    let settings = CloudSettings::default();
    let mut site = LaunchOptions::new(settings.compartments.first().expect("one").clone());
    site.subnet = settings.subnets.first().map(|subnet| SubnetId::new(subnet.id.clone()));
    let clock = Clock::new(SystemTime::now);
    let provider = Oci::connect(config, site, http(), pacer(), clock).await.expect("a provider");
    let mut spec = spec("vm-1");
    spec.token = LaunchToken::new("c1:vm-1:1").ok();
    println!("launched {}", provider.launch(&spec).await.expect("accepted").id);
}

#[tokio::test]
async fn a_process_that_is_killed_after_its_launch_was_accepted_leaves_one_instance_to_the_next() {
    let fixture = SimFixture::start(CloudSettings::quick()).await;
    let directory = tempfile::tempdir().expect("a directory");
    fixture.cloud.credentials().write_config(directory.path()).expect("written");
    let config = directory.path().join("config");
    // Carried out at once, and answered long after the process is gone.
    let late = Fault::Delay { millis: 600_000 };
    fixture.cloud.admin().add_fault(Rule::once("LaunchInstance", late)).expect("it can happen");
    let mut first = launching(&fixture, &config);
    let deadline = Instant::now() + Duration::from_mins(1);
    while fixture.live_named("vm-1") == 0 {
        assert!(Instant::now() < deadline, "nothing was launched");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    first.kill().expect("it waits for its answer");
    let ended = first.wait().expect("it ends");
    assert!(!ended.success(), "it was killed before it had an answer");

    let second = launching(&fixture, &config).wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&second.stdout).into_owned();
    assert!(second.status.success(), "{said}");
    assert_eq!(fixture.cloud.admin().counts()["LaunchInstance"], 2, "each has asked once");
    assert_eq!(fixture.live_named("vm-1"), 1);
    let id = &fixture.cloud.admin().instances()[0].id;
    assert!(said.contains(&format!("launched {id}")), "{said}");
}
