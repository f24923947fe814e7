//! The loopback cloud: the program, as a child, and what can be said to it that clients cannot say.

use crate::admin::{Admin, COMPLAINTS, complaints};
use crate::programs::program;
use crate::test_cloud::{Machine, TestCloud};
use crate::wait::{wait, wait_for};
use cloud_sim::{
    Capacity, CloudSettings, Instance, Limit, Notice, Recorded, Rule, State, Throttle,
};
use serde::Deserialize;
use serde_json::{Value, json};
use slurm_testbed::Guard;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// How long it may take to end its machines.
const END: Duration = Duration::from_secs(20);

/// A loopback cloud, which ends with this value.
#[derive(Debug)]
pub struct Loopback {
    child: Guard,
    admin: Admin,
    directory: PathBuf,
}

impl Loopback {
    /// Starts one that keeps its state in a directory.
    pub(crate) fn start(settings: &CloudSettings, directory: &Path) -> Self {
        let script = directory.join("script.json");
        let text = serde_json::to_string(settings).expect("settings are JSON");
        fs::write(&script, text).expect("a directory of ours");
        let mut command = Command::new("sh");
        command.args(["-c", "exec \"$@\" 2>\"$0\""]).arg(directory.join(COMPLAINTS));
        command.arg(program("cloud-sim"));
        command.arg("--state").arg(directory).arg("--script").arg(&script);
        let child = Guard::spawn(&command);
        let address = wait(|| {
            assert!(child.ended().is_none(), "it has ended: {}", complaints(directory));
            let endpoint = fs::read_to_string(directory.join("endpoint")).ok()?;
            Some(endpoint.trim().strip_prefix("http://")?.to_owned())
        });
        let admin = Admin::new(address.expect("the loopback cloud starts"), directory);
        Self { child, admin, directory: directory.to_owned() }
    }

    /// Where it is, as clients are told.
    pub(crate) fn endpoint(&self) -> String {
        self.admin.endpoint()
    }

    /// The configuration file of one who may call.
    pub(crate) fn client_config(&self) -> PathBuf {
        self.directory.join("oci/config")
    }

    /// Adds a fault rule.
    pub fn add_fault(&self, rule: &Rule) {
        self.admin.add_fault(rule);
    }

    /// Takes every fault rule away.
    pub fn clear_faults(&self) {
        self.admin.clear_faults();
    }

    /// Sets how many instances fit; replaces all earlier settings.
    pub fn set_capacity(&self, capacity: &[Capacity]) {
        self.admin.call("PUT", "capacity", &json!(capacity));
    }

    /// Sets one service limit, and leaves the others.
    pub fn set_limit(&self, limit: &Limit) {
        let mut all: Vec<Limit> = self.admin.read("limits", "");
        let same = |one: &Limit| {
            one.name == limit.name && one.availability_domain == limit.availability_domain
        };
        all.retain(|one| !same(one));
        all.push(limit.clone());
        self.admin.call("PUT", "limits", &json!(all));
    }

    /// Sets how many requests are accepted; replaces all earlier settings.
    pub fn set_throttle(&self, throttle: &[Throttle]) {
        self.admin.set_throttle(throttle);
    }

    /// The newest requests, oldest first.
    #[must_use]
    pub fn requests(&self) -> Vec<Recorded> {
        self.admin.requests()
    }

    /// How many requests there were of each operation.
    #[must_use]
    pub fn counts(&self) -> BTreeMap<String, u64> {
        self.admin.counts()
    }

    /// Forgets the requests and their counts.
    pub fn clear_requests(&self) {
        self.admin.clear_requests();
    }

    /// Every instance there is, in the order of launch.
    #[must_use]
    pub fn instances(&self) -> Vec<Instance> {
        self.rows().into_iter().map(|row| row.instance).collect()
    }

    fn rows(&self) -> Vec<Row> {
        self.admin.read("instances", "")
    }

    /// Launches an instance, as if by another's hand, and gives its id.
    pub(crate) fn launch(&self, details: &Value) -> String {
        let launched = self.admin.call("POST", "instances", details);
        launched.pointer("/id").and_then(Value::as_str).expect("an instance has an id").to_owned()
    }

    /// How often an instance has booted.
    #[must_use]
    pub fn boots(&self, id: &str) -> u64 {
        self.admin.read(&format!("instances/{id}"), "/boots")
    }

    /// The address that an instance has or will have.
    #[must_use]
    pub fn address(&self, id: &str) -> String {
        self.admin.read(&format!("instances/{id}"), "/address")
    }

    /// The metadata service, as the machine of an instance asks it.
    #[must_use]
    pub fn metadata(&self, id: &str) -> String {
        format!("{}/machines/{id}/opc/v2", self.endpoint())
    }

    /// Announces something to an instance, by its metadata service.
    pub fn announce(&self, id: &str, notice: &Notice) {
        self.admin.call("PUT", &format!("notices/{id}"), &json!(notice));
    }

    /// Puts an instance into a state, as if by another's hand.
    pub fn set_state(&self, id: &str, state: State) {
        self.admin.call("PUT", &format!("instances/{id}"), &json!(state));
    }
}

/// An instance, and what clients have to ask for in another place.
#[derive(Deserialize)]
struct Row {
    instance: Instance,
    address: String,
}

impl Drop for Loopback {
    fn drop(&mut self) {
        let (ended, mismatches) = (self.child.ended(), self.admin.token_mismatches());
        // Not by a kill at once: it ends its machines first.
        self.child.signal("TERM");
        let _ = wait_for(END, || self.child.ended());
        // A body that drifts under one token would be launched a second time and not be noticed.
        if !std::thread::panicking() {
            let known = ended.is_some() || mismatches == Some(0);
            assert!(known, "a token had two bodies, or nobody knows: {mismatches:?}");
        }
    }
}

impl TestCloud for Loopback {
    fn present(&self) -> Vec<Machine> {
        let mut all = self.rows();
        all.retain(|row| row.instance.lifecycle_state.is_live());
        let machine = |Row { instance, address }: Row| Machine {
            address,
            id: instance.id,
            name: instance.display_name,
            state: format!("{:?}", instance.lifecycle_state).to_uppercase(),
            zone: instance.availability_domain,
            image: instance.image_id.unwrap_or_default(),
        };
        all.into_iter().map(machine).collect()
    }
}
