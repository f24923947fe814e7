//! The conformance suite on moto's server, which nobody here wrote, with its signature check on, behind cloud-sim's proxy.

use async_trait::async_trait;
use cloud_aws::{Aws, Config, ConnectSettings, LaunchOptions, Overrides};
use cloud_core::conformance::{self, Condition, Fixture};
use cloud_core::pace::{Pace, Pacer};
use cloud_core::{
    ApiOperation, ErrorKind, ImageId, InstanceFilter, InstanceId, InstanceName, InstanceSpec, Poll,
    Provider as _, Secret, ShapeName, Sources, SubnetId, Tags, Zone,
};
use cloud_sim::ec2::Proxy;
use cloud_sim::{Fault, Rule};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, SystemTime};

const SERVE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/moto/serve");

/// How many instances a page has at most.
const PAGE: usize = 4;

/// A server with a network and images, which ends with the test.
struct Moto {
    child: Child,
    pipes: Mutex<(ChildStdin, BufReader<ChildStdout>)>,
    folder: tempfile::TempDir,
    cloud: Value,
    proxy: Proxy,
}

impl Moto {
    async fn start() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let mut command = Command::new(SERVE);
        command.arg(folder.path()).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("tests/moto/serve");
        let input = child.stdin.take().expect("an input");
        let mut output = BufReader::new(child.stdout.take().expect("an output"));
        let mut endpoint = String::new();
        output.read_line(&mut endpoint).expect("an endpoint");
        let text = std::fs::read_to_string(folder.path().join("cloud.json")).expect("cloud.json");
        let cloud = serde_json::from_str(&text).expect("JSON");
        let upstream = endpoint.trim().trim_start_matches("http://").to_owned();
        let proxy = Proxy::start("127.0.0.1:0", &upstream).await.expect("a proxy");
        Self { child, pipes: Mutex::new((input, output)), folder, cloud, proxy }
    }

    /// Has boto3 do something as the administrator of the account, beside us.
    fn order(&self, call: &str, with: &Value) -> Value {
        let mut pipes = self.pipes.lock().expect("a lock");
        let line = json!({"call": call, "with": with}).to_string();
        writeln!(pipes.0, "{line}").expect("an order");
        let mut answer = String::new();
        pipes.1.read_line(&mut answer).expect("an answer");
        let answer: Value = serde_json::from_str(&answer).expect("JSON");
        assert!(answer.get("error").is_none(), "{call}: {answer}");
        answer["answer"].clone()
    }

    fn image(&self, name: &str) -> ImageId {
        ImageId::new(self.cloud["images"][name].as_str().expect("an image"))
    }

    fn options(&self) -> LaunchOptions {
        let subnets: BTreeMap<String, String> =
            serde_json::from_value(self.cloud["subnets"].clone()).expect("subnets");
        let mut options = LaunchOptions::default();
        options.subnets =
            subnets.into_iter().map(|(zone, id)| (Zone::new(zone), SubnetId::new(id))).collect();
        options.security_groups =
            vec![self.cloud["security_group"].as_str().expect("a group").to_owned()];
        options
    }

    fn connect(&self, launch: LaunchOptions, change: impl FnOnce(&mut Config)) -> Aws {
        let aws = |name: &str| self.folder.path().join("aws").join(name).display().to_string();
        let variables = [
            ("AWS_CONFIG_FILE", aws("config")),
            ("AWS_SHARED_CREDENTIALS_FILE", aws("credentials")),
        ];
        let variables = variables.map(|(name, value)| (name.to_owned(), value));
        let overrides = Overrides { endpoint: Some(self.proxy.endpoint()), ..Overrides::default() };
        let sources = Sources::of_system(None, variables.into());
        let mut config = Config::load(&sources, &overrides).expect("a configuration");
        assert_eq!(config.warnings, Vec::<String>::new());
        change(&mut config);
        let mut settings = ConnectSettings::new(SystemTime::now);
        settings.launch = launch;
        settings.http.retry.first = Duration::from_millis(20);
        Aws::connect(&config, settings, &Pacer::new(Pace::default())).expect("a client")
    }

    fn fault(&self, operation: &str, fault: Fault) {
        self.proxy.add_fault(Rule::once(operation, fault)).expect("it can happen");
    }
}

impl Drop for Moto {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[async_trait]
impl Fixture for Moto {
    fn spec(&self, name: &str) -> InstanceSpec {
        let mut spec = InstanceSpec::new(
            InstanceName::new(name),
            ShapeName::new("t3a.small"),
            self.image("image-1"),
        );
        spec.zone = Some(Zone::new("eu-west-1a"));
        spec.user_data = Some(Secret::new("#!/bin/sh\n".to_owned()));
        spec
    }

    fn other_image(&self) -> ImageId {
        self.image("image-2")
    }

    fn absent(&self) -> InstanceId {
        InstanceId::new("i-0123456789abcdef0")
    }

    fn poll(&self) -> Poll {
        let millis = Duration::from_millis;
        Poll { first: millis(20), longest: millis(200), deadline: Duration::from_mins(1) }
    }

    fn more_than_a_page(&self) -> Option<usize> {
        Some(PAGE + 1)
    }

    fn boots(&self, id: &InstanceId) -> Option<usize> {
        Some(self.order("boots", &json!({}))[id.as_str()].as_array().map_or(0, Vec::len))
    }

    async fn set(&self, condition: Condition) -> bool {
        match condition {
            Condition::Normal => drop(self.order("room", &json!({"rules": []}))),
            Condition::NoCapacity => {
                self.order("room", &json!({"rules": [{"instances": 0}]}));
            }
            Condition::NoQuota => {
                let message = "You have requested more vCPU capacity than your current vCPU limit";
                self.fault("RunInstances", Fault::answer(400, "VcpuLimitExceeded", message));
            }
            Condition::Throttled => {
                let message = "Request limit exceeded.";
                self.fault("RunInstances", Fault::answer(503, "RequestLimitExceeded", message));
            }
            Condition::ResponseLost(ApiOperation::Launch) => {
                self.fault("RunInstances", Fault::DropAfter);
            }
            Condition::ResponseLost(_) => self.fault("TerminateInstances", Fault::DropAfter),
            Condition::NoCapacityLater => {
                self.order("room", &json!({"rules": [{"instances": 0}], "later": true}));
            }
        }
        true
    }
}

/// Everything that the cloud claims.
#[tokio::test]
async fn motos_ec2_passes_the_conformance_suite() {
    let moto = Moto::start().await;
    let cloud = moto.connect(moto.options(), |_| {});
    moto.order("pages", &json!({"most": PAGE}));
    let summary = conformance::run(&cloud, &moto).await;
    println!("{summary}");
    let is_further = |one: &cloud_sim::Recorded| one.body.contains("NextToken=");
    assert!(moto.proxy.requests().iter().any(is_further), "a page follows another");
    assert!(summary.failed.is_empty(), "{summary}");
    assert!(summary.skipped.is_empty(), "{summary}");
    a_wrong_key_is_not_authenticated(&moto).await;
    the_checks_before_a_launch(&moto).await;
}

async fn a_wrong_key_is_not_authenticated(moto: &Moto) {
    let cloud = moto.connect(moto.options(), |config| {
        if let cloud_aws::Credentials::Keys(keys) = &mut config.credentials {
            keys.secret = Secret::new("wrong".to_owned());
        }
    });
    let error = cloud.list(&InstanceFilter::default()).await.expect_err("a wrong key");
    assert_eq!(error.kind(), ErrorKind::Unauthenticated, "{error}");
}

async fn the_checks_before_a_launch(moto: &Moto) {
    let cloud = moto.connect(moto.options(), |_| {});
    cloud.dry_run(&moto.spec("dry")).await.expect("permission");
    let ours = InstanceFilter::tagged(Tags::from([("node", "dry")]));
    assert_eq!(cloud.list(&ours).await.expect("a list"), []);
    let limits = cloud.limits().await.expect("limits");
    let limits: Vec<_> = limits.iter().map(|limit| (limit.name.as_str(), limit.most)).collect();
    assert_eq!(limits, [("standard-vcpus", Some(1920)), ("p-vcpus", Some(192))]);
    let subnets = cloud.subnets(&["subnet-0123456789abcdef0".to_owned()]).await;
    assert_eq!(subnets.iter().filter(|it| it.is_ok()).count(), 3, "{subnets:?}");
    assert!(
        subnets
            .iter()
            .any(|it| it.as_ref().is_err_and(|it| it.to_string().contains("no such subnet")))
    );
    let shapes = cloud.shapes().await.expect("shapes");
    let small: Vec<_> = shapes.into_iter().filter(|it| it.name.as_str() == "t3a.small").collect();
    cloud.boots(&moto.image("image-1"), &small).await.expect("it boots");
    let error =
        cloud.boots(&moto.image("image-arm"), &small).await.expect_err("another architecture");
    assert!(
        error.to_string().contains("arm64") && error.to_string().contains("t3a.small"),
        "{error}"
    );
}
