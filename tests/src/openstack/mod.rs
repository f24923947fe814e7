//! A real OpenStack, whose servers are real slurmd: Nova's hypervisor boots nothing, so that we boot what it says is up.

mod client;
mod start;

use crate::network;
use crate::test_cloud::{Machine, TestCloud};
use crate::wait::wait;
use crate::watch::Watcher;
use client::Client;
use serde_json::{Value, json};
use std::fs;
use std::io::{self, BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::Duration;

/// Keystone, Nova, Neutron, Glance and Placement, which end when this is dropped.
#[derive(Debug)]
pub struct OpenStack {
    // Dropped in this order: who watches asks Nova, which ends with its supervisor's input.
    watcher: Option<Watcher>,
    admin: Client,
    _supervisor: Supervisor,
    directory: PathBuf,
    facts: Value,
}

#[derive(Debug)]
struct Supervisor {
    child: Child,
    input: Option<ChildStdin>,
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        drop(self.input.take());
        let _ = self.child.wait();
    }
}

impl OpenStack {
    /// Brings one up below a directory, where machines can reach it.
    pub(crate) fn start(below: &Path) -> Self {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("openstack/cloud");
        let mut child = Command::new(&script)
            .arg("hold")
            .env("TMPDIR", below)
            .env("OPENSTACK_HOST", network::CONTROLLER)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{}: {error}", script.display()));
        let output = child.stdout.take().expect("a pipe");
        let supervisor = Supervisor { input: child.stdin.take(), child };
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line).expect("a line");
        assert!(!line.is_empty(), "no OpenStack: run tests/openstack/fetch to see why");
        let directory = PathBuf::from(line.trim_end());
        let facts = fs::read(directory.join("cloud.json")).expect("it is up");
        let facts: Value = serde_json::from_slice(&facts).expect("JSON");
        let admin = Client::new(&facts, "admin");
        Self { watcher: None, admin, _supervisor: supervisor, directory, facts }
    }

    /// A fact by its path, such as `/images/image-1`.
    #[must_use]
    pub fn fact(&self, path: &str) -> String {
        let fact = self.facts.pointer(path).unwrap_or_else(|| panic!("no {path}"));
        fact.as_str().map_or_else(|| fact.to_string(), str::to_owned)
    }

    /// The id of an image.
    #[must_use]
    pub fn image(&self, name: &str) -> String {
        self.fact(&format!("/images/{name}"))
    }

    /// Orders for the hypervisor, such as `delay 2` for the step `spawn`; none with an empty text.
    pub fn order(&self, step: &str, text: &str) {
        let file = self.directory.join("hypervisor").join(step);
        if text.is_empty() {
            let _ = fs::remove_file(file);
        } else {
            fs::write(file, text).expect("a directory of the cloud");
        }
    }

    /// How a server has booted each time, such as `spawn`, `rebuild`, `reboot SOFT`.
    #[must_use]
    pub fn boots(&self, id: &str) -> Vec<String> {
        boots(&self.directory, id)
    }

    /// How many servers there ever were.
    #[must_use]
    pub fn ever(&self) -> usize {
        let entries = fs::read_dir(self.directory.join("hypervisor")).expect("it is up");
        let names = entries.flatten().map(|entry| entry.file_name());
        names.filter(|name| name.to_string_lossy().starts_with("boots-")).count()
    }

    /// How many servers the project may have from now on.
    pub fn set_quota(&self, instances: usize) {
        let path = format!("/v2.1/os-quota-sets/{}", self.fact("/projects/demo"));
        let body = json!({"quota_set": {"instances": instances, "force": true}});
        self.admin.call("PUT", "nova", &path, &body).expect("Nova takes a quota");
    }

    /// How many requests Nova has had from anybody but this harness.
    #[must_use]
    pub fn requests(&self) -> usize {
        let log = fs::read_to_string(self.directory.join("log/nova.log")).unwrap_or_default();
        let of_others = |line: &&str| {
            line.contains("requestlog") && line.contains("/v2.1") && !line.contains(client::MARK)
        };
        log.lines().filter(of_others).count()
    }
}

impl TestCloud for OpenStack {
    fn present(&self) -> Vec<Machine> {
        wait(|| self.admin.servers().ok()).expect("Nova answers")
    }

    fn patience(&self) -> Duration {
        // As long as a node has to come.
        Duration::from_mins(10)
    }
}

/// How a server has booted each time.
fn boots(openstack: &Path, id: &str) -> Vec<String> {
    let file = openstack.join("hypervisor").join(format!("boots-{id}"));
    let text = fs::read_to_string(file).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// What is up, and how often it has booted.
fn up(client: &Client, directory: &Path) -> io::Result<Vec<(usize, Machine)>> {
    // A reboot may be over before anybody sees its state; the hypervisor has counted it.
    // One without an address is on its way out.
    let is_up = |server: &Machine| server.state == "ACTIVE" && !server.address.is_empty();
    let servers = client.servers()?.into_iter().filter(is_up);
    Ok(servers.map(|server| (boots(directory, &server.id).len(), server)).collect())
}
