//! What can be said to a program of cloud-sim that clients cannot say: its admin API.

use crate::http;
use cloud_sim::{Recorded, Rule, Throttle};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Where a program says what is wrong with it.
pub(crate) const COMPLAINTS: &str = "complaints";

/// The admin API of a program that runs.
#[derive(Debug)]
pub struct Admin {
    /// Without `http://`.
    address: String,
    directory: PathBuf,
}

impl Admin {
    /// That of a program at an address, which keeps its state in a directory.
    pub(crate) fn new(address: String, directory: &Path) -> Self {
        Self { address, directory: directory.to_owned() }
    }

    /// Where the program is, as clients are told.
    pub(crate) fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Adds a fault rule.
    pub fn add_fault(&self, rule: &Rule) {
        self.call("POST", "faults", &json!(rule));
    }

    /// Takes every fault rule away.
    pub fn clear_faults(&self) {
        self.call("DELETE", "faults", &Value::Null);
    }

    /// Sets how many requests are accepted; replaces all earlier settings.
    pub fn set_throttle(&self, throttle: &[Throttle]) {
        self.call("PUT", "throttle", &json!(throttle));
    }

    /// The newest requests, oldest first.
    #[must_use]
    pub fn requests(&self) -> Vec<Recorded> {
        self.read("requests", "")
    }

    /// How many requests there were of each operation.
    #[must_use]
    pub fn counts(&self) -> BTreeMap<String, u64> {
        self.read("counts", "/operations")
    }

    /// Forgets the requests and their counts.
    pub fn clear_requests(&self) {
        self.call("DELETE", "requests", &Value::Null);
    }

    /// Hides new instances for so many milliseconds.
    pub fn set_lag(&self, millis: u64) {
        self.call("PUT", "lag", &json!(millis));
    }

    /// How many requests had a token that was used before with another request; nothing if the program has ended.
    pub(crate) fn token_mismatches(&self) -> Option<u64> {
        let answer = http::ask(&self.address, ("GET", "/admin/counts"), "", &Value::Null).ok()?;
        http::good(answer, "counts").ok()?.pointer("/token_mismatches")?.as_u64()
    }

    pub(crate) fn call(&self, method: &str, what: &str, body: &Value) -> Value {
        let path = format!("/admin/{what}");
        let answer = http::ask(&self.address, (method, &path), "", body);
        let answer = answer.and_then(|answer| http::good(answer, &format!("{method} {path}")));
        answer.unwrap_or_else(|error| {
            let said = complaints(&self.directory);
            panic!("the loopback cloud does not answer: {error}\n{said}")
        })
    }

    /// A part of an answer.
    pub(crate) fn read<T: DeserializeOwned>(&self, what: &str, part: &str) -> T {
        let mut answer = self.call("GET", what, &Value::Null);
        let part = answer.pointer_mut(part).map(Value::take).unwrap_or_default();
        serde_json::from_value(part).unwrap_or_else(|error| panic!("{what}: {error}"))
    }
}

/// What a program has said about itself.
pub(crate) fn complaints(directory: &Path) -> String {
    fs::read_to_string(directory.join(COMPLAINTS)).unwrap_or_default()
}
