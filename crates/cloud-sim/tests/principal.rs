//! Instance principals: the metadata service, the exchange, and sessions that end.

use crate::support::{Answered, Fixture, Signer, pem};
use aws_lc_rs::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use aws_lc_rs::encoding::AsDer as _;
use aws_lc_rs::rsa::KeySize;
use aws_lc_rs::signature::{KeyPair as _, RsaKeyPair};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use serde_json::{Value, json};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const LIST: &str = "/20160918/instances?compartmentId=ocid1.compartment.oc1..aaaacomp";

async fn metadata(fixture: &Fixture, path: &str) -> String {
    let url = format!("{}/opc/v2/{path}", fixture.cloud.endpoint());
    let request = fixture.http.get(url).header("authorization", "Bearer Oracle");
    request.send().await.unwrap().error_for_status().unwrap().text().await.unwrap()
}

/// Exchanges the certificate for a token, with this session key.
async fn exchange(fixture: &mut Fixture, session: &RsaKeyPair) -> Answered {
    let public = session.public_key().as_der().unwrap();
    exchange_for(fixture, public.as_ref()).await
}

/// Exchanges the instance's certificate for a session token, with a public key in any form.
async fn exchange_for(fixture: &mut Fixture, public: &[u8]) -> Answered {
    let certificate = pem(&metadata(fixture, "identity/cert.pem").await);
    let key = metadata(fixture, "identity/key.pem").await;
    assert!(key.starts_with("-----BEGIN RSA PRIVATE KEY-----"));
    let intermediate = pem(&metadata(fixture, "identity/intermediate.pem").await);
    let body = json!({
        "certificate": STANDARD.encode(&certificate),
        "publicKey": STANDARD.encode(public),
        "intermediateCertificates": [STANDARD.encode(intermediate)],
    });
    let print = digest(&SHA1_FOR_LEGACY_USE_ONLY, &certificate);
    let print: Vec<String> = print.as_ref().iter().map(|byte| format!("{byte:02X}")).collect();
    let tenancy = fixture.cloud.credentials().tenancy.clone();
    let key_id = format!("{tenancy}/fed-x509/{}", print.join(":"));
    fixture.signer = Signer::with_key(key_id, RsaKeyPair::from_der(&pem(&key)).unwrap());
    fixture.signer.sign_host = false;
    fixture.send("POST", "/v1/x509", &body.to_string()).await
}

fn as_session(fixture: &mut Fixture, token: &str, session: RsaKeyPair) {
    fixture.signer = Signer::with_key(format!("ST${token}"), session);
}

fn new_key() -> RsaKeyPair {
    RsaKeyPair::generate(KeySize::Rsa2048).unwrap()
}

#[tokio::test]
async fn a_certificate_becomes_a_session() {
    let mut fixture = Fixture::frozen().await;
    assert_eq!(metadata(&fixture, "instance/region").await, "phx");
    let document: Value = serde_json::from_str(&metadata(&fixture, "instance/").await).unwrap();
    assert_eq!(document["regionInfo"]["realmDomainComponent"], "oraclecloud.com");
    let bare = fixture.http.get(format!("{}/opc/v2/instance/", fixture.cloud.endpoint()));
    assert_eq!(bare.send().await.unwrap().status(), 403);

    let session = new_key();
    let token =
        exchange(&mut fixture, &session).await.ok().json()["token"].as_str().unwrap().to_owned();
    let claims = URL_SAFE_NO_PAD.decode(token.split('.').nth(1).unwrap()).unwrap();
    let claims: Value = serde_json::from_slice(&claims).unwrap();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let left = claims["exp"].as_u64().unwrap() - now;
    assert!((1100..=1200).contains(&left), "{left}");
    let jwk: Value = serde_json::from_str(claims["jwk"].as_str().unwrap()).unwrap();
    assert_eq!((jwk["kty"].as_str(), jwk["e"].as_str()), (Some("RSA"), Some("AQAB")));

    as_session(&mut fixture, &token, session);
    fixture.get(LIST).await.ok();
    let id = fixture.launch("n1").await;
    let own = format!("{}/machines/{id}/opc/v2/instance/displayName", fixture.cloud.endpoint());
    let own = fixture.http.get(own).header("authorization", "Bearer Oracle").send().await.unwrap();
    assert_eq!(own.text().await.unwrap(), "n1");
    as_session(&mut fixture, &token, new_key());
    fixture.get(LIST).await.refused(401, "NotAuthenticated");
}

#[tokio::test]
async fn sessions_end() {
    let mut fixture = Fixture::frozen().await;
    let session = new_key();
    let token =
        exchange(&mut fixture, &session).await.ok().json()["token"].as_str().unwrap().to_owned();
    as_session(&mut fixture, &token, session);
    fixture.get(LIST).await.ok();
    assert_eq!(fixture.cloud.admin().end_sessions(), 1);
    fixture.get(LIST).await.refused(401, "NotAuthenticated");

    fixture.cloud.admin().set_session_lifetime(Duration::ZERO).unwrap();
    let session = new_key();
    let token =
        exchange(&mut fixture, &session).await.ok().json()["token"].as_str().unwrap().to_owned();
    as_session(&mut fixture, &token, session);
    fixture.get(LIST).await.refused(401, "NotAuthenticated");
}

#[tokio::test]
async fn only_the_certificates_key_gets_a_token() {
    let mut fixture = Fixture::frozen().await;
    let session = new_key();
    exchange(&mut fixture, &session).await.ok();
    let requests = fixture.cloud.admin().requests();
    let sent = requests.iter().rfind(|request| request.operation == "X509").unwrap().body.clone();
    let key_id = fixture.signer.key_id.clone();
    fixture.signer = Signer::with_key(key_id, new_key());
    fixture.signer.sign_host = false;
    fixture.send("POST", "/v1/x509", &sent).await.refused(401, "NotAuthenticated");
    fixture.send("POST", "/v1/x509", "{}").await.refused(400, "MissingParameter");
}

#[tokio::test]
async fn a_token_is_given_for_a_post_and_metadata_for_a_get_alone() {
    let mut fixture = Fixture::frozen().await;
    let session = new_key();
    exchange(&mut fixture, &session).await.ok();
    let requests = fixture.cloud.admin().requests();
    let sent = requests.iter().rfind(|request| request.operation == "X509").unwrap().body.clone();
    for method in ["DELETE", "GET", "PUT"] {
        let answer = fixture.send(method, "/v1/x509", &sent).await;
        answer.refused(401, "NotAuthenticated");
    }
    let url = format!("{}/opc/v2/instance/region", fixture.cloud.endpoint());
    let put = fixture.http.put(url).header("authorization", "Bearer Oracle");
    assert_eq!(put.send().await.unwrap().status(), 401);
}

#[tokio::test]
async fn a_public_key_of_the_older_form_gets_no_token() {
    let mut fixture = Fixture::frozen().await;
    let session = new_key();
    // Without the wrapping that says what kind of key it is.
    let bare = session.public_key().as_ref().to_vec();
    exchange_for(&mut fixture, &bare).await.refused(400, "InvalidParameter");
    exchange_for(&mut fixture, b"nonsense").await.refused(400, "InvalidParameter");
    exchange(&mut fixture, &session).await.ok();
}

#[tokio::test]
async fn every_instance_learns_its_own_domain() {
    let fixture = Fixture::frozen().await;
    let mut body = crate::support::launch_body("n1");
    body["availabilityDomain"] = json!("Uocm:PHX-AD-2");
    let id = fixture.launch_with(None, &body).await.ok().json()["id"].clone();
    fixture.advance(10);
    let own = format!("machines/{}/opc/v2", id.as_str().unwrap());
    for (base, domain) in [("opc/v2", "phx-ad-1"), (own.as_str(), "phx-ad-2")] {
        for (what, expected) in [("ociAdName", domain), ("state", "Running")] {
            let url = format!("{}/{base}/instance/{what}", fixture.cloud.endpoint());
            let asked = fixture.http.get(url).header("authorization", "Bearer Oracle");
            assert_eq!(asked.send().await.unwrap().text().await.unwrap(), expected, "{base}");
        }
    }
}

/// Cloud-init and the SDKs ask at the same address on every machine.
#[tokio::test]
async fn an_instance_is_known_by_the_address_that_it_asks_from() {
    let mut settings = cloud_sim::CloudSettings::quick();
    for subnet in &mut settings.subnets {
        subnet.cidr = "127.9.0.0/24".to_owned();
    }
    let fixture = Fixture::new(settings).await;
    let id = fixture.launch("node-1").await;
    let address = fixture.cloud.admin().address(&id).unwrap();
    let machine = reqwest::Client::builder().local_address(Some(address.into())).build().unwrap();
    let url = format!("{}/opc/v2/instance/id", fixture.cloud.endpoint());
    let asked = machine.get(url).header("authorization", "Bearer Oracle").send().await.unwrap();
    assert_eq!(asked.text().await.unwrap(), id);
    assert_ne!(metadata(&fixture, "instance/id").await, id, "the host is the management node");
    let url = format!("{}/opc/v2/vnics/", fixture.cloud.endpoint());
    let vnics = machine.get(url).header("authorization", "Bearer Oracle").send().await.unwrap();
    let vnics: Value = serde_json::from_str(&vnics.text().await.unwrap()).unwrap();
    assert_eq!(vnics[0]["privateIp"], json!(address));
    assert_eq!(vnics[0]["subnetCidrBlock"], "127.9.0.0/24", "cloud-init cannot do without it");
}
