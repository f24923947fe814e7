//! What boto3 sends for each operation, and what we send: equal field for field.

use crate::fake::{Asked, Fake, answer, error, item};
use cloud_aws::{Aws, ConnectSettings, Credentials, Keys, LaunchOptions, LaunchTemplate, Role};
use cloud_core::pace::{Pace, Pacer};
use cloud_core::{
    ImageFilter, ImageId, ImageName, InstanceFilter, InstanceId, InstanceName, InstanceSpec,
    LaunchToken, Provider as _, Reboot, Secret, ShapeName, SubnetId, Tags, Zone,
};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

const NODE: &str = "cheerful-macaw-t3a-small-0001";
const ID: &str = "i-0a1b2c3d4e5f60718";
const IMAGE: &str = "ami-0a1b2c3d4e5f60718";

/// What boto3 sends.
struct Capture {
    headers: BTreeMap<String, String>,
    form: BTreeMap<String, String>,
    body: String,
}

fn capture(name: &str) -> Capture {
    let path = format!("{}/../../tests/moto/boto3/{name}.json", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let capture: Value = serde_json::from_str(&text).expect("JSON");
    let map = |key: &str| serde_json::from_value(capture[key].clone()).expect("pairs");
    Capture {
        headers: map("headers"),
        form: map("form"),
        body: capture["body"].as_str().expect("text").to_owned(),
    }
}

/// Answers so that each operation goes on to its end.
fn answers(asked: &Asked) -> (u16, String) {
    match asked.action() {
        "RunInstances" if asked.get("DryRun") == "true" => {
            error(412, "DryRunOperation", "would have succeeded")
        }
        "RunInstances" => {
            let count: usize = asked.get("MaxCount").parse().expect("a number");
            let items: String =
                (0..count).map(|n| item(&format!("i-{n}"), "pending", n, &[])).collect();
            answer("RunInstances", &format!("<instancesSet>{items}</instancesSet>"))
        }
        "DescribeInstances"
            if asked.get("NextToken").is_empty() && asked.get("Filter.1.Name") == "tag:cluster" =>
        {
            answer("DescribeInstances", "<reservationSet/><nextToken>eyJ2IjoiMiIs/+==</nextToken>")
        }
        "DescribeInstances" => {
            let tags: &[(&str, &str)] =
                if asked.get("InstanceId.1").is_empty() { &[] } else { &[("boot-image", IMAGE)] };
            let items = item(ID, "running", 0, tags);
            let set = format!(
                "<reservationSet><item><instancesSet>{items}</instancesSet></item></reservationSet>"
            );
            answer("DescribeInstances", &set)
        }
        "DescribeImages" => {
            let image = format!(
                "<item><imageId>{IMAGE}</imageId><rootDeviceName>/dev/sda1</rootDeviceName></item>"
            );
            answer("DescribeImages", &format!("<imagesSet>{image}</imagesSet>"))
        }
        "DescribeReplaceRootVolumeTasks" => {
            answer("DescribeReplaceRootVolumeTasks", "<replaceRootVolumeTaskSet/>")
        }
        "DescribeInstanceTypes" => answer("DescribeInstanceTypes", "<instanceTypeSet/>"),
        "DescribeSubnets" => answer("DescribeSubnets", "<subnetSet/>"),
        "CreateImage" => answer("CreateImage", "<imageId>ami-2</imageId>"),
        "GetCallerIdentity" => answer(
            "GetCallerIdentity",
            "<GetCallerIdentityResult><Arn>arn:x</Arn></GetCallerIdentityResult>",
        ),
        action @ ("AssumeRole" | "AssumeRoleWithWebIdentity") => {
            crate::credentials::sts(action, "ASIA")
        }
        "" => (200, "{\"Quotas\": []}".to_owned()),
        action => answer(action, "<return>true</return>"),
    }
}

fn options() -> LaunchOptions {
    let mut options = LaunchOptions::default();
    options.subnets = [(Zone::new("eu-west-1a"), SubnetId::new("subnet-0a1b2c3d4e5f60718"))].into();
    options.security_groups = vec!["sg-0a1b2c3d4e5f60718".to_owned()];
    options
}

fn with(change: impl FnOnce(&mut LaunchOptions)) -> LaunchOptions {
    let mut options = options();
    change(&mut options);
    options
}

fn launch() -> InstanceSpec {
    let mut spec = crate::fake::spec(NODE);
    spec.zone = Some(Zone::new("eu-west-1a"));
    spec.token = LaunchToken::new("4f1d2c3b4a59687f").ok();
    spec
}

/// Compares what was sent for an operation with a capture, without what is random; says what differs.
fn same(name: &str, asked: &[Asked], random: &[&str]) {
    let capture = capture(name);
    let action = capture.form.get("Action").cloned().unwrap_or_default();
    let form = |form: &BTreeMap<String, String>| {
        let mut form = form.clone();
        for key in random {
            form.remove(*key);
        }
        form
    };
    let sent: Vec<_> = asked.iter().filter(|it| it.action() == action).collect();
    let found = sent.iter().any(|it| form(&it.form) == form(&capture.form));
    assert!(found, "{name}: {:#?}\nis not among {sent:#?}", capture.form);
    for header in ["content-type", "x-amz-target"] {
        assert_eq!(sent[0].headers.get(header), capture.headers.get(header), "{name}");
    }
}

async fn launched(name: &str, options: LaunchOptions, spec: InstanceSpec) {
    let fake = Fake::new(answers).await;
    fake.connect(options).launch(&spec).await.expect("a launch");
    same(name, &fake.asked(), &[]);
}

#[tokio::test]
async fn launches_are_what_boto3_sends() {
    launched("run-instances", options(), launch()).await;
    let spot = with(|it| it.spot_max_price = Some("0.5".to_owned()));
    let mut spec = launch();
    spec.preemptible = true;
    launched("run-instances-spot", spot, spec).await;
    let arn = "arn:aws:resource-groups:eu-west-1:123456789012:group/gpu";
    let group = with(|it| it.capacity_reservation = Some(arn.to_owned()));
    launched("run-instances-reservation-group", group, launch()).await;
    let block = with(|it| {
        it.capacity_reservation = Some("cr-0a1b2c3d4e5f60718".to_owned());
        it.capacity_block = true;
    });
    launched("run-instances-capacity-block", block, launch()).await;
    let version = Some("3".to_owned());
    let template = LaunchTemplate { id: "lt-0a1b2c3d4e5f60718".to_owned(), version };
    launched("run-instances-template", with(|it| it.launch_template = Some(template)), launch())
        .await;
}

#[tokio::test]
async fn a_launch_with_everything_is_what_boto3_sends() {
    let options = with(|it| {
        it.efa = 2;
        it.boot_volume_gb = Some(40);
        it.placement_group = Some("pack".to_owned());
        it.instance_profile = Some("arn:aws:iam::123456789012:instance-profile/compute".to_owned());
        it.capacity_reservation = Some("cr-0a1b2c3d4e5f60718".to_owned());
    });
    let mut spec = launch();
    spec.shape = ShapeName::new("p5.48xlarge");
    spec.keypair = Some("key-1".to_owned());
    spec.user_data = Some(Secret::new("#!/bin/bash\necho 'hello, wörld' > /etc/motd\n".to_owned()));
    launched("run-instances-full", options, spec).await;
}

#[tokio::test]
async fn launches_of_many_are_what_boto3_sends() {
    let fake = Fake::new(answers).await;
    let specs: Vec<InstanceSpec> = (1..=3)
        .map(|number| {
            let name = format!("cheerful-macaw-t3a-small-000{number}");
            let mut spec = launch();
            spec.name = InstanceName::new(&name);
            spec.tags = spec.tags.with("node", name);
            spec
        })
        .collect();
    let results = fake.connect(options()).launch_many(&specs).await;
    assert!(results.iter().all(Result::is_ok), "{results:?}");
    same("run-instances-many", &fake.asked(), &["ClientToken"]);
}

/// As Cluster in the Cloud launches, with what we add: tags of our own, which the machine can read itself.
#[tokio::test]
async fn a_launch_with_citcs_options_is_citcs_and_a_little_more() {
    let mut options = LaunchOptions::default();
    options.subnet = Some(SubnetId::new("subnet-0a1b2c3d4e5f60718"));
    options.security_groups = vec!["sg-0a1b2c3d4e5f60718".to_owned()];
    options.key_name = Some("ec2-user-cheerful-macaw".to_owned());
    options.instance_profile = Some("describe_tags-cheerful-macaw".to_owned());
    options.public_ip = Some(true);
    options.legacy_imds = true;
    options.batch = 1;
    let mut spec = launch();
    spec.zone = None;
    spec.user_data = Some(Secret::new("#!/bin/bash\necho 'hello, wörld' > /etc/motd\n".to_owned()));
    let fake = Fake::new(answers).await;
    fake.connect(options).launch(&spec).await.expect("a launch");
    let ours = fake.asked().remove(0).form;
    let citc = capture("run-instances-citc").form;
    let is_tag = |key: &&String| key.starts_with("TagSpecification");
    for (key, value) in citc.iter().filter(|(key, _)| !is_tag(key)) {
        assert_eq!(ours.get(key), Some(value), "{key}");
    }
    let more: BTreeSet<&str> = ours
        .keys()
        .filter(|key| !is_tag(key) && !citc.contains_key(*key))
        .map(String::as_str)
        .collect();
    let expected = [
        "MetadataOptions.HttpEndpoint",
        "MetadataOptions.HttpTokens",
        "MetadataOptions.InstanceMetadataTags",
        "NetworkInterface.1.DeleteOnTermination",
    ];
    assert_eq!(more, expected.into());
    assert_eq!(ours["MetadataOptions.HttpTokens"], "optional", "its bootstrap.sh has no token");
    let tags = |form: &BTreeMap<String, String>| -> BTreeSet<(String, String)> {
        let tag = |number: u32| {
            let key = format!("TagSpecification.1.Tag.{number}");
            let part = |part: &str| form.get(&format!("{key}.{part}")).cloned();
            Some((part("Key")?, part("Value")?))
        };
        (1..).map_while(tag).collect()
    };
    let node = BTreeSet::from([("node".to_owned(), NODE.to_owned())]);
    assert_eq!(tags(&ours), &tags(&citc) | &node);
}

/// Takes a role, and gives what was asked for.
async fn role_by(credentials: Credentials) -> Vec<Asked> {
    let fake = Fake::new(answers).await;
    let mut config = crate::fake::config(&[], &fake.endpoint());
    config.credentials = credentials;
    let settings = ConnectSettings::new(crate::fake::noon);
    let cloud = Aws::connect(&config, settings, &Pacer::new(Pace::default())).expect("a client");
    cloud.shapes().await.expect("shapes");
    fake.asked()
}

#[tokio::test]
async fn roles_are_taken_as_boto3_takes_them() {
    let mut role = Role {
        arn: "arn:aws:iam::123456789012:role/slurm".to_owned(),
        session: "slurm-elastic".to_owned(),
        external_id: None,
        duration: None,
    };
    let token = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(token.path(), "eyJhbGciOi.eyJzdWIi.c2ln").expect("a token");
    let web = Credentials::WebIdentity(role.clone(), token.path().to_owned());
    same("assume-role-with-web-identity", &role_by(web).await, &[]);
    role.duration = Some(Duration::from_hours(1));
    let keys = Keys {
        id: "AKIDEXAMPLE".to_owned(),
        secret: Secret::new("very-secret".to_owned()),
        token: None,
    };
    let by_key = Credentials::AssumeRole(role, Box::new(Credentials::Keys(keys)));
    same("assume-role", &role_by(by_key).await, &[]);
}

#[tokio::test]
async fn a_refusal_is_decoded_as_boto3_does_it() {
    let fake = Fake::new(|asked| match asked.action() {
        "RunInstances" => {
            error(403, "UnauthorizedOperation", "no. Encoded authorization failure message: YWJj-_")
        }
        _ => error(403, "AccessDenied", "no"),
    })
    .await;
    fake.connect(options()).launch(&launch()).await.expect_err("a refusal");
    same("decode-authorization-message", &fake.asked(), &[]);
}

/// Sends every request that is no launch.
async fn everything(cloud: &Aws) {
    let (id, image) = (InstanceId::new(ID), ImageId::new(IMAGE));
    let tags = Tags::from([("cluster", "cheerful-macaw"), ("type", "compute")]);
    cloud.list(&InstanceFilter::tagged(tags)).await.expect("a list");
    cloud.get(&id).await.expect("an instance");
    let other = InstanceId::new("i-0a1b2c3d4e5f60719");
    cloud.addresses(&[id.clone(), other.clone()]).await.expect("addresses");
    let (one, two) = tokio::join!(cloud.terminate(&id), cloud.terminate(&other));
    one.and(two).expect("both");
    cloud.start(&id).await.expect("a start");
    cloud.stop(&id).await.expect("a stop");
    cloud.reboot(&id, Reboot::Soft).await.expect("a reboot");
    cloud.rebuild(&id, &image).await.expect("a rebuild");
    let name = ImageName::new("citc-slurm-compute-*");
    let filter =
        ImageFilter { tags: Tags::from([("cluster", "cheerful-macaw")]), name: Some(name) };
    cloud.images(&filter).await.expect("images");
    cloud.shapes().await.expect("shapes");
    cloud.subnets(&[]).await;
    cloud.snapshot(&id, &ImageName::new("citc-slurm-compute-2")).await.expect("an image");
    cloud.caller().await.expect("a caller");
    cloud.limits().await.expect("limits");
    cloud.boots(&image, &[]).await.expect("an image");
    cloud.dry_run(&launch()).await.expect("permission");
    cloud.may_change(Some(&id)).await.expect("permission");
}

#[tokio::test]
async fn every_other_request_is_what_boto3_sends() {
    let fake = Fake::new(answers).await;
    let cloud = fake.connect(with(|it| it.image_owners = vec!["amazon".to_owned()]));
    everything(&cloud).await;
    let asked = fake.asked();
    for name in [
        "describe-instances",
        "describe-instances-next-page",
        "describe-instances-by-id",
        "describe-instances-addresses",
        "terminate-instances",
        "terminate-instances-dry-run",
        "start-instances",
        "stop-instances",
        "reboot-instances",
        "create-tags",
        "describe-replace-root-volume-tasks",
        "describe-images",
        "describe-images-by-id",
        "describe-instance-types",
        "describe-subnets",
        "create-image",
        "get-caller-identity",
    ] {
        same(name, &asked, &[]);
    }
    for name in ["create-replace-root-volume-task", "run-instances-dry-run"] {
        same(name, &asked, &["ClientToken"]);
    }
    let quotas = asked.iter().find(|it| it.headers.contains_key("x-amz-target")).expect("quotas");
    let (expected, sent) =
        (capture("list-service-quotas"), serde_json::from_str::<Value>(&quotas.body));
    assert_eq!(sent.expect("JSON"), serde_json::from_str::<Value>(&expected.body).expect("JSON"));
}

#[tokio::test]
async fn the_policy_of_the_examples_allows_what_is_sent_and_nothing_else() {
    let fake = Fake::new(answers).await;
    let cloud = fake.connect(options());
    cloud.launch(&launch()).await.expect("a launch");
    everything(&cloud).await;
    let asked = fake.asked();
    // Anybody may ask who he is.
    let actions = asked.iter().map(Asked::action);
    let actions = actions.filter(|action| !["", "GetCallerIdentity"].contains(action));
    let mut sent: BTreeSet<String> = actions.map(|action| format!("ec2:{action}")).collect();
    // What `a_refusal_is_decoded_as_boto3_does_it` sends, what is sent as JSON, and what EC2 itself looks for.
    sent.extend(
        ["sts:DecodeAuthorizationMessage", "servicequotas:ListServiceQuotas", "iam:PassRole"]
            .map(str::to_owned),
    );
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/aws/policy.json");
    let policy = std::fs::read_to_string(path).expect("the example");
    let policy: Value = serde_json::from_str(&policy).expect("JSON");
    let statements = policy["Statement"].as_array().expect("statements").iter();
    let of = |statement: &Value| match &statement["Action"] {
        Value::String(action) => vec![action.clone()],
        several => serde_json::from_value(several.clone()).expect("actions"),
    };
    let allowed: BTreeSet<String> = statements.flat_map(of).collect();
    assert_eq!(allowed, sent);
}

#[tokio::test]
async fn a_request_has_the_signature_that_boto3_gives_it() {
    let capture = capture("get-caller-identity");
    let parts = cloud_aws::sign::Scope::new(crate::fake::noon(), "eu-west-1", "sts");
    let headers: Vec<(&str, &str)> = [
        ("content-type", capture.headers["content-type"].as_str()),
        ("host", "sts.eu-west-1.amazonaws.com"),
        ("x-amz-date", parts.time()),
    ]
    .to_vec();
    assert_eq!(capture.headers["x-amz-date"], parts.time());
    let request = cloud_aws::sign::Signed {
        method: "POST",
        path: "/",
        query: "",
        headers: &headers,
        body_sha256: &cloud_aws::sign::sha256(capture.body.as_bytes()),
    };
    let signature = request.signature(&parts, "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY");
    let header = request.authorization(&parts, "AKIDEXAMPLE", &signature);
    assert_eq!(header, capture.headers["authorization"]);
}
