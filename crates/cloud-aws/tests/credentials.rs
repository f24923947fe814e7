//! Temporary keys: how they are got, used and renewed.

use crate::fake::{Asked, Fake, answer, config, error, noon};
use cloud_aws::{Aws, Config, ConnectSettings, Credentials, LaunchOptions, Role};
use cloud_core::pace::{Pace, Pacer};
use cloud_core::{ErrorKind, InstanceFilter, Provider as _};
use std::os::unix::fs::PermissionsExt as _;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

fn key_of(asked: &Asked) -> String {
    let header = asked.headers.get("authorization").cloned().unwrap_or_default();
    let key = header.split_once("Credential=").and_then(|(_, rest)| rest.split_once('/'));
    key.map(|(key, _)| key.to_owned()).unwrap_or_default()
}

/// Keys as the metadata service and programs write them.
fn written(id: &str) -> String {
    format!(
        "{{\"Code\": \"Success\", \"Version\": 1, \"AccessKeyId\": \"{id}\", \"SecretAccessKey\": \"s\", \
         \"Token\": \"t-{id}\", \"Expiration\": \"2026-11-18T18:00:00Z\"}}"
    )
}

pub(crate) fn sts(action: &str, id: &str) -> (u16, String) {
    let keys = format!(
        "<AccessKeyId>{id}</AccessKeyId><SecretAccessKey>s</SecretAccessKey><SessionToken>t-{id}</SessionToken>\
         <Expiration>2026-11-18T13:00:00Z</Expiration>"
    );
    answer(action, &format!("<{action}Result><Credentials>{keys}</Credentials></{action}Result>"))
}

fn answers(asked: &Asked) -> (u16, String) {
    let path = asked.line.split(' ').nth(1).unwrap_or_default();
    match (path, asked.action()) {
        ("/latest/api/token", _) => (200, "session-1".to_owned()),
        (_, "")
            if asked.headers.get("x-aws-ec2-metadata-token").map(String::as_str)
                != Some("session-1") =>
        {
            (401, String::new())
        }
        ("/latest/meta-data/iam/security-credentials/", _) => (200, "slurm\n".to_owned()),
        ("/latest/meta-data/iam/security-credentials/slurm", _) => (200, written("ASIAMACHINE")),
        (_, action @ "AssumeRole") => sts(action, "ASIAROLE"),
        (_, action @ "AssumeRoleWithWebIdentity") => sts(action, "ASIAWEB"),
        _ => answer("DescribeInstances", "<reservationSet/>"),
    }
}

fn role() -> Role {
    let (arn, session) =
        ("arn:aws:iam::123456789012:role/slurm".to_owned(), "slurm-elastic".to_owned());
    Role { arn, session, external_id: None, duration: None }
}

/// Lists with these credentials, twice; gives what was asked for.
async fn list_with(change: impl FnOnce(&mut Config)) -> Vec<Asked> {
    let fake = Fake::new(answers).await;
    let endpoint = fake.endpoint();
    let mut config = config(&[("AWS_EC2_METADATA_SERVICE_ENDPOINT", &endpoint)], &endpoint);
    change(&mut config);
    let cloud = Aws::connect(&config, ConnectSettings::new(noon), &Pacer::new(Pace::default()));
    let cloud = cloud.expect("a client");
    for _ in 0..2 {
        cloud.list(&InstanceFilter::default()).await.expect("a list");
    }
    fake.asked()
}

fn listed_as(asked: &[Asked], key: &str) {
    let lists: Vec<&Asked> = asked.iter().filter(|it| it.action() == "DescribeInstances").collect();
    assert_eq!(lists.len(), 2);
    for list in lists {
        assert_eq!(key_of(list), key);
        assert_eq!(list.headers.get("x-amz-security-token"), Some(&format!("t-{key}")));
        assert!(list.headers["authorization"].contains("x-amz-security-token"), "it is signed");
    }
}

#[tokio::test]
async fn the_role_of_the_machine_is_asked_for_once() {
    let asked = list_with(|_| {}).await;
    listed_as(&asked, "ASIAMACHINE");
    assert_eq!(asked.len(), 5, "a session, a name, a key, and two listings");
    assert!(asked[0].line.starts_with("PUT "), "{:?}", asked[0]);
}

#[tokio::test]
async fn a_role_is_asked_for_in_the_name_of_its_source() {
    let asked = list_with(|config| {
        config.credentials = Credentials::AssumeRole(role(), Box::new(Credentials::InstanceRole));
    })
    .await;
    listed_as(&asked, "ASIAROLE");
    let assumed = asked.iter().find(|it| it.action() == "AssumeRole").expect("a role");
    assert_eq!(key_of(assumed), "ASIAMACHINE");
    assert!(assumed.headers["authorization"].contains("/eu-west-1/sts/"), "{assumed:?}");
}

#[tokio::test]
async fn a_web_identity_is_exchanged_without_a_signature() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("token");
    std::fs::write(&file, "eyJhbGciOi.eyJzdWIi.c2ln\n").expect("a file");
    let asked =
        list_with(|config| config.credentials = Credentials::WebIdentity(role(), file)).await;
    listed_as(&asked, "ASIAWEB");
    assert_eq!(asked[0].get("WebIdentityToken"), "eyJhbGciOi.eyJzdWIi.c2ln");
    assert_eq!(asked[0].headers.get("authorization"), None);
}

#[tokio::test]
async fn keys_that_a_program_prints_are_used() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = folder.path().join("my keys");
    std::fs::write(
        &program,
        format!("#!/bin/sh\ntest \"$1\" = --json && cat <<'E'\n{}\nE\n", written("ASIAPROG")),
    )
    .expect("a file");
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).expect("a mode");
    let words = vec![program.display().to_string(), "--json".to_owned()];
    let asked = list_with(|config| config.credentials = Credentials::Process(words)).await;
    listed_as(&asked, "ASIAPROG");
}

#[tokio::test]
async fn a_machine_without_a_role_is_told_what_to_set() {
    let fake = Fake::new(|_| (404, String::new())).await;
    let endpoint = fake.endpoint();
    let cloud = fake.connect_with(
        &[("AWS_EC2_METADATA_SERVICE_ENDPOINT", &endpoint)],
        cloud_aws::LaunchOptions::default(),
    );
    let error = cloud.list(&InstanceFilter::default()).await.expect_err("no role");
    assert_eq!(error.kind(), ErrorKind::Unauthenticated);
    let cause = std::error::Error::source(&error).expect("a cause").to_string();
    assert!(cause.contains("no credentials are set"), "{cause}");
}

/// A machine with a role, whose keys are `ASIA1`, `ASIA2` and so on; EC2 answers with what is said of each.
async fn machine(ec2: impl Fn(&str) -> (u16, String) + Send + Sync + 'static) -> (Fake, Aws) {
    let count = AtomicU32::new(0);
    let fake = Fake::new(move |asked| match asked.action() {
        "" if asked.line.contains("/security-credentials/slurm") => {
            let number = count.fetch_add(1, Ordering::SeqCst) + 1;
            (200, written(&format!("ASIA{number}")))
        }
        "" => answers(asked),
        _ => ec2(&key_of(asked)),
    })
    .await;
    let variables = [("AWS_EC2_METADATA_SERVICE_ENDPOINT", &*fake.endpoint())];
    let cloud = fake.connect_with(&variables, LaunchOptions::default());
    (fake, cloud)
}

/// The keys of all listings, in their order.
fn keys(fake: &Fake) -> Vec<String> {
    let asked = fake.asked();
    asked.iter().filter(|it| it.action() == "DescribeInstances").map(key_of).collect()
}

async fn pass(time: Duration) {
    tokio::time::pause();
    tokio::time::advance(time).await;
    tokio::time::resume();
}

#[tokio::test]
async fn the_keys_of_a_machine_are_renewed_shortly_before_they_expire() {
    let (fake, cloud) = machine(|_| answer("DescribeInstances", "<reservationSet/>")).await;
    // They are valid for six hours.
    for minutes in [0, 354, 2, 1] {
        pass(Duration::from_mins(minutes)).await;
        cloud.list(&InstanceFilter::default()).await.expect("a list");
    }
    assert_eq!(keys(&fake), ["ASIA1", "ASIA1", "ASIA2", "ASIA2"]);
}

#[tokio::test]
async fn keys_that_have_expired_are_renewed_once_and_the_request_is_sent_again() {
    for code in ["ExpiredToken", "RequestExpired"] {
        let (fake, cloud) = machine(move |key| match key {
            "ASIA1" => error(400, code, "the security token has expired"),
            _ => answer("DescribeInstances", "<reservationSet/>"),
        })
        .await;
        for _ in 0..2 {
            cloud.list(&InstanceFilter::default()).await.expect("a list");
        }
        assert_eq!(keys(&fake), ["ASIA1", "ASIA2", "ASIA2"], "{code}");
    }
}

#[tokio::test]
async fn keys_that_are_refused_when_new_are_not_renewed_for_ever() {
    let (fake, cloud) = machine(|_| error(400, "ExpiredToken", "expired")).await;
    let refused = cloud.list(&InstanceFilter::default()).await.expect_err("a refusal");
    assert_eq!(refused.kind(), ErrorKind::Unauthenticated);
    assert_eq!(keys(&fake), ["ASIA1", "ASIA2"]);
}
