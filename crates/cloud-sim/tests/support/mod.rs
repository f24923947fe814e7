//! A client that signs as the SDK does, and speaks plain HTTP.

use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{RSA_PKCS1_SHA256, RsaKeyPair};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cloud_sim::{Cloud, CloudSettings, Credentials};
use reqwest::{Client, Method};
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

pub(crate) const COMPARTMENT: &str = "ocid1.compartment.oc1..aaaacomp";
pub(crate) const DOMAIN: &str = "Uocm:PHX-AD-1";
pub(crate) const SUBNET: &str = "ocid1.subnet.oc1.phx.aaaasub";
pub(crate) const IMAGE: &str = "ocid1.image.oc1.phx.img001";

/// A key, and whose it is.
pub(crate) struct Signer {
    pub(crate) key_id: String,
    key: RsaKeyPair,
    /// What it takes the date to be.
    pub(crate) date: Option<SystemTime>,
    pub(crate) sign_host: bool,
}

/// The bytes of a PEM block.
pub(crate) fn pem(text: &str) -> Vec<u8> {
    let body: String = text.lines().filter(|line| !line.starts_with("-----")).collect();
    STANDARD.decode(body).unwrap()
}

impl Signer {
    pub(crate) fn new(credentials: &Credentials) -> Self {
        let Credentials { tenancy, user, fingerprint, .. } = credentials;
        let key = RsaKeyPair::from_pkcs8(&pem(&credentials.private_key_pem)).unwrap();
        Self::with_key(format!("{tenancy}/{user}/{fingerprint}"), key)
    }

    pub(crate) fn with_key(key_id: String, key: RsaKeyPair) -> Self {
        Self { key_id, key, date: None, sign_host: true }
    }

    /// The headers that a request has to have.
    pub(crate) fn headers(
        &self,
        method: &str,
        target: &str,
        host: &str,
        body: &str,
    ) -> Vec<(String, String)> {
        let date = httpdate::fmt_http_date(self.date.unwrap_or_else(SystemTime::now));
        let mut headers = vec![("date".to_owned(), date), ("host".to_owned(), host.to_owned())];
        let mut names = vec!["date", "(request-target)"];
        if self.sign_host {
            names.push("host");
        }
        headers.push(("content-type".to_owned(), "application/json".to_owned()));
        if matches!(method, "POST" | "PUT") {
            names.extend(["content-length", "content-type", "x-content-sha256"]);
            headers.push(("content-length".to_owned(), body.len().to_string()));
            let sum = STANDARD.encode(digest(&SHA256, body.as_bytes()));
            headers.push(("x-content-sha256".to_owned(), sum));
        }
        let line = |name: &&str| match *name {
            "(request-target)" => format!("(request-target): {} {target}", method.to_lowercase()),
            name => format!("{name}: {}", headers.iter().find(|(key, _)| key == name).unwrap().1),
        };
        let message = names.iter().map(line).collect::<Vec<_>>().join("\n");
        let mut signature = vec![0; self.key.public_modulus_len()];
        let random = SystemRandom::new();
        self.key.sign(&RSA_PKCS1_SHA256, &random, message.as_bytes(), &mut signature).unwrap();
        let authorization = format!(
            "Signature algorithm=\"rsa-sha256\",headers=\"{}\",keyId=\"{}\",signature=\"{}\",version=\"1\"",
            names.join(" "),
            self.key_id,
            STANDARD.encode(signature)
        );
        headers.push(("authorization".to_owned(), authorization));
        headers
    }
}

/// An answer.
#[derive(Debug)]
pub(crate) struct Answered {
    pub(crate) status: u16,
    pub(crate) headers: reqwest::header::HeaderMap,
    pub(crate) text: String,
}

impl Answered {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or(Value::Null)
    }

    pub(crate) fn header(&self, name: &str) -> Option<String> {
        Some(self.headers.get(name)?.to_str().unwrap().to_owned())
    }

    pub(crate) fn code(&self) -> String {
        self.json()["code"].as_str().unwrap_or_default().to_owned()
    }

    #[track_caller]
    pub(crate) fn ok(self) -> Self {
        assert!((200..300).contains(&self.status), "{self:?}");
        self
    }

    #[track_caller]
    pub(crate) fn refused(self, status: u16, code: &str) -> Self {
        assert_eq!((self.status, self.code().as_str()), (status, code), "{self:?}");
        self
    }
}

/// A cloud and a client for it.
pub(crate) struct Fixture {
    pub(crate) cloud: Cloud,
    pub(crate) signer: Signer,
    pub(crate) http: Client,
}

impl Fixture {
    pub(crate) async fn new(settings: CloudSettings) -> Self {
        let cloud = Cloud::start(settings).await.unwrap();
        let signer = Signer::new(cloud.credentials());
        Self { cloud, signer, http: Client::builder().no_proxy().build().unwrap() }
    }

    /// With a clock that stands still until it is told to move.
    pub(crate) async fn frozen() -> Self {
        Self::new(CloudSettings { speed: 0.0, ..CloudSettings::default() }).await
    }

    pub(crate) async fn try_send(
        &self,
        method: &str,
        target: &str,
        extra: &[(&str, &str)],
        body: &str,
    ) -> Result<Answered, reqwest::Error> {
        let endpoint = self.cloud.endpoint();
        let host = endpoint.trim_start_matches("http://");
        let method: Method = method.parse().unwrap();
        let mut request = self.http.request(method.clone(), format!("{endpoint}{target}"));
        for (name, value) in self.signer.headers(method.as_str(), target, host, body) {
            request = request.header(name, value);
        }
        for (name, value) in extra {
            request = request.header(*name, *value);
        }
        let response = request.body(body.to_owned()).send().await?;
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        Ok(Answered { status, headers, text: response.text().await? })
    }

    pub(crate) async fn send(&self, method: &str, target: &str, body: &str) -> Answered {
        self.try_send(method, target, &[], body).await.unwrap()
    }

    pub(crate) async fn get(&self, target: &str) -> Answered {
        self.send("GET", target, "").await
    }

    pub(crate) async fn launch_with(&self, token: Option<&str>, body: &Value) -> Answered {
        let token = token.map(|token| ("opc-retry-token", token));
        let extra: Vec<_> = token.into_iter().collect();
        self.try_send("POST", "/20160918/instances", &extra, &body.to_string()).await.unwrap()
    }

    /// Launches and gives the id.
    pub(crate) async fn launch(&self, name: &str) -> String {
        let answer = self.launch_with(None, &launch_body(name)).await.ok();
        answer.json()["id"].as_str().unwrap().to_owned()
    }

    /// How the work of a launch that is accepted has ended a minute later.
    pub(crate) async fn fate(&self, body: &Value) -> String {
        let answer = self.launch_with(None, body).await.ok();
        self.advance(60);
        let work = answer.header("opc-work-request-id").unwrap();
        let work = self.get(&format!("/20160918/workRequests/{work}")).await.ok().json();
        work["status"].as_str().unwrap().to_owned()
    }

    pub(crate) async fn state(&self, id: &str) -> String {
        let answer = self.get(&format!("/20160918/instances/{id}")).await.ok();
        answer.json()["lifecycleState"].as_str().unwrap().to_owned()
    }

    pub(crate) fn advance(&self, seconds: u64) {
        self.cloud.admin().advance(Duration::from_secs(seconds)).unwrap();
    }
}

pub(crate) fn launch_body(name: &str) -> Value {
    json!({
        "availabilityDomain": DOMAIN,
        "compartmentId": COMPARTMENT,
        "displayName": name,
        "shape": "VM.Standard.E5.Flex",
        "shapeConfig": {"ocpus": 1, "memoryInGBs": 8},
        "sourceDetails": {"sourceType": "image", "imageId": IMAGE},
        "createVnicDetails": {"subnetId": SUBNET},
    })
}

/// The token of a page, as a query has it.
pub(crate) fn escaped(token: &str) -> String {
    token.replace('+', "%2B").replace('/', "%2F").replace('=', "%3D")
}

/// Writes a script of a shell that can be run, and gives its path.
pub(crate) fn script(directory: &Path, name: &str, text: &str) -> String {
    let path = directory.join(name);
    std::fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path.to_str().unwrap().to_owned()
}

/// Looks until it is so, with a deadline that only a hang reaches.
pub(crate) async fn eventually(what: &str, mut so: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_mins(2);
    while !so() {
        assert!(Instant::now() < deadline, "never: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
