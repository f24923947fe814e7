use crate::clouds::Wanted;
use crate::config::Settings;
use crate::environment::Environment;
use crate::wiring::Purpose;
use cloud_core::pace::{Pace, Pacer};
use cloud_sim::ec2::Proxy;
use cloud_sim::{Fault, Rule};

const BASE: &str = "csp: aws\nregion: eu-west-1\nimage_id: ami-0a1b2c3d4e5f60718\n";

fn settings(text: &str) -> Settings {
    Settings::read("startnode.yaml", text).unwrap().settings
}

#[test]
fn a_hundred_machines_are_launched_in_one_request() {
    assert_eq!(settings(BASE).cloud.describe().batch, 100);
    assert_eq!(settings(&format!("{BASE}batch: 7\n")).cloud.describe().batch, 7);
}

#[test]
fn a_tag_that_ec2_refuses_to_show_to_the_machine_is_refused() {
    assert_eq!(settings(&format!("{BASE}tags: {{cost:centre: a b/c}}\n")).cluster_id, None);
    let found = Settings::read("startnode.yaml", &format!("{BASE}tags: {{cost centre: x}}\n"));
    let found = found.unwrap_err()[0].to_string();
    assert!(found.starts_with("startnode.yaml:4:") && found.contains("tags"), "{found}");
}

/// What `finish --check` says of nodes of two shapes, where EC2 gives these answers before all others.
async fn checks(first: Vec<Rule>) -> Vec<String> {
    let answer = |operation: &str, body: &str| {
        let body = format!("<{operation}Response>{body}</{operation}Response>");
        Rule::always(operation, Fault::answer(200, "", &body))
    };
    let shape = |name: &str| {
        format!(
            "<item><instanceType>{name}</instanceType><vCpuInfo><defaultVCpus>2</defaultVCpus></vCpuInfo>\
             <memoryInfo><sizeInMiB>2048</sizeInMiB></memoryInfo></item>"
        )
    };
    let shapes = ["c7i.large", "m7i.large", "t3.small"].map(shape).concat();
    let usual = [
        answer(
            "GetCallerIdentity",
            "<GetCallerIdentityResult><Arn>arn:x</Arn></GetCallerIdentityResult>",
        ),
        answer(
            "DescribeImages",
            "<imagesSet><item><imageId>ami-0a1b2c3d4e5f60718</imageId><architecture>x86_64</architecture></item></imagesSet>",
        ),
        answer("DescribeInstanceTypes", &format!("<instanceTypeSet>{shapes}</instanceTypeSet>")),
        Rule::always("*", Fault::answer(412, "DryRunOperation", "would have succeeded")),
    ];
    let ec2 = Proxy::start("127.0.0.1:0", "127.0.0.1:1").await.unwrap();
    for rule in first.into_iter().chain(usual) {
        ec2.add_fault(rule).unwrap();
    }
    let settings = settings(&format!("{BASE}endpoint: {}\n", ec2.endpoint()));
    let keys = [("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE"), ("AWS_SECRET_ACCESS_KEY", "very-secret")];
    let variables = keys.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    let environment = Environment { variables, ..Environment::default() };
    let nodes = "NodeName=a State=CLOUD Features=shape=t3.small\nNodeName=b State=CLOUD Features=shape=c7i.large\n";
    let slurm = slurmconf::Config::parse(nodes).unwrap();
    let pacer = Pacer::new(Pace::default());
    let purpose = Purpose::Check;
    let wanted = Wanted {
        settings: &settings,
        environment: &environment,
        purpose,
        slurm: &slurm,
        pacer: &pacer,
    };
    let connected = settings.cloud.connect(wanted).await.unwrap();
    let text = |check: Result<String, crate::diagnostic::Diagnostic>| {
        check.unwrap_or_else(|diagnostic| format!("fail: {diagnostic}"))
    };
    connected.named.into_iter().map(text).collect()
}

#[tokio::test]
async fn a_launch_of_every_shape_is_tried_dry() {
    let refusal = Fault::answer(400, "VcpuLimitExceeded", "your limit is 0");
    let refused =
        Rule { containing: Some("t3.small".to_owned()), ..Rule::always("RunInstances", refusal) };
    let checks = checks(vec![refused]).await;
    let launches: Vec<&String> = checks.iter().filter(|it| it.contains("launch")).collect();
    assert!(
        matches!(launches[..], [first, second]
        if first == "permission to launch c7i.large"
            && second.starts_with("fail: ") && second.contains("VcpuLimitExceeded")),
        "{checks:?}"
    );
}

#[tokio::test]
async fn shapes_that_cannot_be_listed_are_a_failure_and_not_silence() {
    let refusal = Fault::answer(403, "UnauthorizedOperation", "not authorized");
    let checks = checks(vec![Rule::always("DescribeInstanceTypes", refusal)]).await;
    let failed: Vec<&String> = checks.iter().filter(|it| it.starts_with("fail: ")).collect();
    assert!(matches!(failed[..], [one] if one.contains("UnauthorizedOperation")), "{checks:?}");
}
