//! A provider that talks to the recorder, and the captures.

use crate::captures::compare::{Differences, compare};
use crate::captures::recorder::{Asked, Recorder, Response};
use cloud_core::http::Retry;
use cloud_core::pace::{Pace, Pacer};
use cloud_core::{InstanceId, Secret, http};
use cloud_oci::{Clock, Config, Credentials, LaunchOptions, Oci, PrivateKey, Region};
use serde_json::Value;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

pub(crate) const COMPARTMENT: &str = "ocid1.compartment.oc1..aaaacomp";

/// Nothing is different.
pub(crate) const ALONE: Differences = Differences { ours: &[], theirs: &[] };

pub(crate) struct Fixture {
    pub(crate) oci: Oci,
    pub(crate) recorder: Recorder,
    key: Arc<PrivateKey>,
}

impl Fixture {
    pub(crate) async fn new(site: LaunchOptions) -> Self {
        Self::known_as(None, site).await
    }

    /// Signs by another name than that of the captures.
    pub(crate) async fn known_as(key_id: Option<&str>, site: LaunchOptions) -> Self {
        let recorder = Recorder::start().await;
        let vectors: Value =
            serde_json::from_str(include_str!("../data/signing-vectors.json")).expect("JSON");
        let text = |key: &str| vectors[key].as_str().expect("a text").to_owned();
        let key = PrivateKey::from_pem(&text("private_key_pem_pkcs8"), None).expect("a key");
        let key = Arc::new(key);
        let usual = || format!("{}/{}/{}", text("tenancy"), text("user"), text("fingerprint"));
        let key_id = key_id.map_or_else(usual, str::to_owned);
        let config = Config {
            credentials: Credentials::Key { key_id: Secret::new(key_id), key: Arc::clone(&key) },
            region: Region::find("phx"),
            tenancy: Some(text("tenancy")),
            endpoint: Some(recorder.endpoint.parse().expect("a URL")),
            roots: None,
        };
        let mut http = http::ClientConfig::default();
        http.retry = Retry::never();
        http.roots = http::Roots::Only(Vec::new());
        let pacer = Pacer::new(Pace::default());
        let clock = Clock::new(|| SystemTime::UNIX_EPOCH + Duration::from_hours(498_000));
        let oci = Oci::connect(config, site, http, pacer, clock).await.expect("a provider");
        Self { oci, recorder, key }
    }

    /// Answers next as the capture has it.
    pub(crate) fn queue(&self, number: &str, exchange: usize) {
        let response = &capture(number)["exchanges"][exchange]["response"];
        self.recorder.queue(Response::captured(response));
    }

    /// What was asked is what was captured, but for what is meant to be different.
    pub(crate) fn compare(&self, expected: &[(&str, usize, Differences)]) -> Vec<Asked> {
        let asked = self.recorder.take();
        assert_eq!(asked.len(), expected.len(), "{asked:?}");
        for (asked, (number, exchange, but)) in asked.iter().zip(expected) {
            let captured = &capture(number)["exchanges"][exchange];
            compare(number, asked, captured, *but, &self.key);
        }
        asked
    }
}

/// The instance that a captured request is about.
pub(crate) fn id_of(number: &str, exchange: usize) -> InstanceId {
    let capture = capture(number);
    let line = capture["exchanges"][exchange]["request_line"].as_str().expect("a line");
    let id = line.split("/instances/").nth(1).expect("an id");
    InstanceId::new(id.split([' ', '?']).next().expect("an id"))
}

pub(crate) fn capture(number: &str) -> Value {
    let path = files().into_iter().find(|path| number_of(path) == number).expect("a capture");
    serde_json::from_str(&std::fs::read_to_string(path).expect("readable")).expect("JSON")
}

/// The numbers of all captures.
pub(crate) fn captured_files() -> Vec<String> {
    files().iter().map(|path| number_of(path).to_owned()).collect()
}

fn files() -> Vec<PathBuf> {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data");
    let files = std::fs::read_dir(directory).expect("a directory");
    let files = files.map(|entry| entry.expect("an entry").path());
    files.filter(|path| number_of(path).bytes().all(|byte| byte.is_ascii_digit())).collect()
}

fn number_of(path: &std::path::Path) -> &str {
    path.file_name().and_then(|name| name.to_str()).and_then(|name| name.get(..2)).expect("a name")
}
