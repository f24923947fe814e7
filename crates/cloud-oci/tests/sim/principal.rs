//! Instance principals: the exchange, its end, and its rejection in the middle of a run.

use crate::sim::fixture::{SimFixture, http, pacer};
use cloud_core::{ErrorKind, InstanceFilter, Provider as _};
use cloud_oci::{Clock, Config, Credentials, Oci};
use cloud_sim::{CloudSettings, Fault, Rule};
use std::collections::BTreeSet;
use std::time::{Duration, SystemTime};

/// The machine that we run on is the loopback cloud's own.
fn config(fixture: &SimFixture) -> Config {
    let base = format!("{}/opc/v2", fixture.cloud.endpoint());
    Config {
        credentials: Credentials::InstancePrincipal { metadata: base.parse().expect("a URL") },
        region: None,
        tenancy: None,
        endpoint: Some(fixture.cloud.endpoint().parse().expect("a URL")),
        roots: None,
    }
}

async fn provider(fixture: &SimFixture) -> Oci {
    fixture.provider_of(config(fixture), fixture.site()).await
}

/// The keys that the listings so far were signed with.
fn key_ids(fixture: &SimFixture) -> Vec<String> {
    let requests = fixture.cloud.admin().requests();
    let listings = requests.iter().filter(|request| request.operation == "ListInstances");
    let authorization = |request: &cloud_sim::Recorded| {
        let headers = request.headers.iter();
        let found = headers.clone().find(|(name, _)| name.eq_ignore_ascii_case("authorization"));
        let value = found.map(|(_, value)| value.clone()).expect("signed");
        value.split("keyId=\"").nth(1).and_then(|rest| rest.split('"').next()).map(str::to_owned)
    };
    listings.filter_map(authorization).collect()
}

async fn list(provider: &Oci) {
    provider.list(&InstanceFilter::default()).await.expect("we are known");
}

#[tokio::test]
async fn one_exchange_serves_many_requests() {
    let fixture = SimFixture::start(CloudSettings::quick()).await;
    let provider = provider(&fixture).await;
    let filter = InstanceFilter::default();
    let (a, b, c) =
        tokio::join!(provider.list(&filter), provider.list(&filter), provider.list(&filter));
    for result in [a, b, c] {
        result.expect("we are known");
    }
    list(&provider).await;
    let keys = key_ids(&fixture);
    assert!(keys.iter().all(|key| key.starts_with("ST$")), "{keys:?}");
    assert_eq!((keys.len(), keys.iter().collect::<BTreeSet<_>>().len()), (4, 1));
    assert!(!provider.limits().await.expect("the tenancy is the certificate's").is_empty());
}

#[tokio::test]
async fn a_token_that_was_given_out_near_its_end_is_used_once() {
    let mut settings = CloudSettings::quick();
    settings.session_seconds = 30;
    let fixture = SimFixture::start(settings).await;
    let provider = provider(&fixture).await;
    list(&provider).await;
    list(&provider).await;
    let keys = key_ids(&fixture);
    assert_eq!(keys.iter().collect::<BTreeSet<_>>().len(), 2, "less than a minute is too little");
}

/// The public halves of the keys that tokens were asked for.
fn public_keys(fixture: &SimFixture) -> Vec<String> {
    let requests = fixture.cloud.admin().requests();
    let exchanges = requests.iter().filter(|request| request.operation == "X509");
    let key = |body: &str| {
        let body: serde_json::Value = serde_json::from_str(body).expect("JSON");
        body.get("publicKey").and_then(|key| key.as_str()).expect("a key").to_owned()
    };
    exchanges.map(|request| key(&request.body)).collect()
}

/// Lets so much time pass at once; what waits for the network meanwhile is not hurried.
async fn pass(time: Duration) {
    tokio::time::pause();
    tokio::time::advance(time).await;
    tokio::time::resume();
}

#[tokio::test]
async fn a_token_is_used_until_a_minute_before_its_end_and_renewed_with_a_new_key() {
    let mut settings = CloudSettings::quick();
    settings.session_seconds = 3600;
    let fixture = SimFixture::start(settings).await;
    let provider = provider(&fixture).await;
    list(&provider).await;
    pass(Duration::from_mins(50)).await;
    list(&provider).await;
    assert_eq!(public_keys(&fixture).len(), 1, "ten minutes are left");
    pass(Duration::from_secs(9 * 60 + 1)).await;
    list(&provider).await;
    let (keys, tokens) = (public_keys(&fixture), key_ids(&fixture));
    assert_eq!(keys.iter().collect::<BTreeSet<_>>().len(), 2, "{keys:?}");
    assert_eq!(tokens.len(), 3);
    assert_eq!(tokens.iter().collect::<BTreeSet<_>>().len(), 2, "{tokens:?}");
}

#[tokio::test]
async fn a_token_that_is_rejected_in_the_middle_of_a_run_is_renewed_once() {
    let fixture = SimFixture::start(CloudSettings::quick()).await;
    let provider = provider(&fixture).await;
    list(&provider).await;
    fixture.cloud.admin().end_sessions();
    list(&provider).await;
    let keys = key_ids(&fixture);
    assert_eq!(
        (keys.len(), keys.iter().collect::<BTreeSet<_>>().len()),
        (3, 2),
        "refused, renewed"
    );
}

#[tokio::test]
async fn a_cloud_that_never_knows_us_is_asked_twice_and_no_more() {
    let fixture = SimFixture::start(CloudSettings::quick()).await;
    let provider = provider(&fixture).await;
    let refuse = Fault::answer(401, "NotAuthenticated", "who are you?");
    fixture.cloud.admin().add_fault(Rule::always("ListInstances", refuse)).expect("it can happen");
    let error = provider.list(&InstanceFilter::default()).await.expect_err("refused");
    assert_eq!(error.kind(), ErrorKind::Unauthenticated);
    assert_eq!(fixture.cloud.admin().counts()["ListInstances"], 2);
}

#[tokio::test]
async fn clocks_that_are_apart_are_named() {
    let fixture = SimFixture::start(CloudSettings::quick()).await;
    let clock = Clock::new(|| SystemTime::now() - Duration::from_mins(20));
    let late = Oci::connect(fixture.config(), fixture.site(), http(), pacer(), clock).await;
    let error = late.expect("a provider").list(&InstanceFilter::default()).await;
    let error = error.expect_err("too late").to_string();
    assert!(error.contains("the cloud's clock says "), "{error}");
    assert!(error.contains("apart, set the clock of this machine"), "{error}");
    let clock = Clock::new(|| SystemTime::now() - Duration::from_mins(20));
    let late = Oci::connect(config(&fixture), fixture.site(), http(), pacer(), clock).await;
    let error = late.expect("a provider").list(&InstanceFilter::default()).await;
    let error = error.expect_err("too late");
    assert_eq!(error.kind(), ErrorKind::Unauthenticated);
    let cause = std::error::Error::source(&error).expect("a cause").to_string();
    assert!(cause.contains("apart, set the clock of this machine"), "{error}: {cause}");
}

#[tokio::test]
async fn a_region_newer_than_our_table_is_asked_for_with_its_realm() {
    let (region, region_key) = ("us-atlantis-1".to_owned(), "atl".to_owned());
    let fixture =
        SimFixture::start(CloudSettings { region, region_key, ..CloudSettings::quick() }).await;
    list(&provider(&fixture).await).await;
    let asked = fixture.cloud.admin().requests();
    let asked: Vec<&str> = asked.iter().map(|request| request.target.as_str()).collect();
    assert!(asked.contains(&"/opc/v2/instance/regionInfo"), "{asked:?}");
}

#[tokio::test]
async fn a_machine_without_a_metadata_service_is_told_to_use_a_config_file() {
    let fixture = SimFixture::start(CloudSettings::quick()).await;
    // A port that is held, so that nobody else can have it, and on which nobody listens.
    let held = tokio::net::TcpSocket::new_v4().expect("a socket");
    held.bind("127.0.0.1:0".parse().expect("an address")).expect("a port");
    let base = format!("http://{}/opc/v2", held.local_addr().expect("an address"));
    let metadata = base.parse().expect("a URL");
    let config =
        Config { credentials: Credentials::InstancePrincipal { metadata }, ..config(&fixture) };
    let clock = Clock::new(SystemTime::now);
    let error = Oci::connect(config, fixture.site(), http(), pacer(), clock).await;
    let error = error.expect_err("nobody there");
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert_eq!(
        error.message(),
        Some(
            "no connection to 127.0.0.1: is this machine an OCI instance? else set auth: config_file"
        )
    );
}

#[tokio::test]
async fn metadata_that_a_new_machine_does_not_have_yet_is_asked_for_again() {
    let fixture = SimFixture::start(CloudSettings::quick()).await;
    for path in ["instance/region", "identity/cert.pem", "identity/key.pem"] {
        let missing = Fault::answer(404, "", "not found");
        let rule = Rule { containing: Some(path.to_owned()), ..Rule::once("Metadata", missing) };
        fixture.cloud.admin().add_fault(rule).expect("it can happen");
    }
    list(&provider(&fixture).await).await;
    let asked = fixture.cloud.admin().requests();
    let missed = asked.iter().filter(|request| request.status == Some(404));
    assert_eq!(missed.count(), 3);
}

/// Certificate and key are two reads, between which there may be new ones.
#[tokio::test]
async fn a_certificate_that_changes_while_it_is_read_is_read_again() {
    let fixture = SimFixture::start(CloudSettings::quick()).await;
    let refuse = Fault::answer(401, "NotAuthenticated", "not the key of the certificate");
    fixture.cloud.admin().add_fault(Rule::once("X509", refuse)).expect("it can happen");
    list(&provider(&fixture).await).await;
    assert_eq!(public_keys(&fixture).len(), 2, "asked again with what was read again");
}
