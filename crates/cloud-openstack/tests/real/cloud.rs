//! A real OpenStack for the time of a test, and ways to speak to it past the crate under test.

use crate::real::proxy::Proxy;
use cloud_core::pace::{Pace, Pacer};
use cloud_core::{File, Sources};
use cloud_openstack::{Config, ConnectSettings, LaunchOptions, Nic, OpenStack, Search};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{self, BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep};

/// Longer than anything takes on a machine that is busy with other things.
pub(crate) const PATIENCE: Duration = Duration::from_mins(3);

/// Five processes, which end when this is dropped: their supervisor reads the end of its input.
pub(crate) struct Cloud {
    supervisor: Child,
    // Dropped first, which is what ends the supervisor.
    input: Option<ChildStdin>,
    pub(crate) directory: PathBuf,
    pub(crate) facts: Value,
}

impl Cloud {
    pub(crate) fn new() -> Self {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/openstack/cloud");
        let mut supervisor = Command::new(&script)
            .arg("hold")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{}: {error}", script.display()));
        let input = supervisor.stdin.take();
        let output = supervisor.stdout.take().expect("a pipe");
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line).expect("a line");
        assert!(!line.is_empty(), "no OpenStack: run tests/openstack/fetch to see why");
        let directory = PathBuf::from(line.trim_end());
        let facts = std::fs::read(directory.join("cloud.json")).expect("facts");
        let facts = serde_json::from_slice(&facts).expect("JSON");
        Self { supervisor, input, directory, facts }
    }

    /// A fact by its path, such as `/networks/net-1`.
    pub(crate) fn fact(&self, path: &str) -> String {
        let fact = self.facts.pointer(path).unwrap_or_else(|| panic!("no {path}"));
        fact.as_str().map_or_else(|| fact.to_string(), str::to_owned)
    }

    pub(crate) fn port(&self, service: &str) -> u16 {
        self.fact(&format!("/ports/{service}")).parse().expect("a port")
    }

    /// Orders for the hypervisor; none with an empty text.
    pub(crate) fn order(&self, step: &str, text: &str) {
        let file = self.directory.join("hypervisor").join(step);
        if text.is_empty() {
            let _ = std::fs::remove_file(file);
        } else {
            std::fs::write(file, text).expect("an order");
        }
    }

    pub(crate) fn boots(&self, id: &str) -> usize {
        let file = self.directory.join("hypervisor").join(format!("boots-{id}"));
        std::fs::read_to_string(file).map_or(0, |text| text.lines().count())
    }

    /// The `openstack` client's answer to this, as JSON.
    pub(crate) async fn client(&self, arguments: &[&str]) -> Value {
        let program = Path::new(&self.fact("/venv")).join("bin/openstack");
        let mut command = tokio::process::Command::new(program);
        command.args(["--os-cloud", "app", "--os-compute-api-version", "2.90"]).args(arguments);
        command.args(["-f", "json"]).kill_on_drop(true);
        for (name, _) in std::env::vars_os() {
            let text = name.to_string_lossy();
            if text.starts_with("OS_") || text.to_lowercase().contains("proxy") {
                command.env_remove(&name);
            }
        }
        command.env("OS_CLIENT_CONFIG_FILE", self.directory.join("clouds.yaml"));
        let output = command.output().await.expect("the client");
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "openstack {arguments:?}: {error}");
        serde_json::from_slice(&output.stdout).expect("JSON")
    }

    /// A clouds.yaml entry of the instance, as the harness wrote it.
    pub(crate) fn entry(&self, cloud: &str) -> Value {
        let file = std::fs::read(self.directory.join("clouds.yaml")).expect("clouds.yaml");
        let file: Value = serde_json::from_slice(&file).expect("JSON is YAML");
        file.pointer(&format!("/clouds/{cloud}")).expect("the cloud").clone()
    }
}

impl Drop for Cloud {
    fn drop(&mut self) {
        drop(self.input.take());
        let _ = self.supervisor.wait();
    }
}

/// The configuration that a clouds.yaml of this one entry gives.
pub(crate) fn config(entry: &Value) -> Result<Config, cloud_core::ConfigError> {
    let text = json!({"clouds": {"test": entry}}).to_string();
    let read = move |path: &Path| match path.to_str() {
        Some("/etc/openstack/clouds.yaml") => {
            Ok(File { bytes: text.clone().into_bytes(), mode: Some(0o640) })
        }
        _ => Err(io::Error::from(io::ErrorKind::NotFound)),
    };
    {
        let sources = Sources::new(None, BTreeMap::new(), read);
        Config::load(&sources, &Search::usual(&sources))
    }
}

/// The entry with every service behind the proxy.
pub(crate) fn through(proxy: &Proxy, mut entry: Value) -> Value {
    entry["auth"]["auth_url"] = json!(proxy.url("keystone", ""));
    entry["compute_endpoint_override"] = json!(proxy.url("nova", "/v2.1"));
    entry["image_endpoint_override"] = json!(proxy.url("glance", ""));
    entry["network_endpoint_override"] = json!(proxy.url("neutron", ""));
    entry
}

pub(crate) fn settings() -> ConnectSettings {
    let mut settings = ConnectSettings::default();
    let mut launch = LaunchOptions::default();
    launch.nics = vec![Nic::network("net-1")];
    settings.launch = launch;
    settings
}

pub(crate) fn pacer() -> Pacer {
    // As fast as it will go, and not more at a time than one machine can take.
    Pacer::new(Pace { start: 50.0, least: 1.0, most: 100.0, burst: 10, concurrency: 6 })
}

pub(crate) async fn connect(
    entry: &Value,
    settings: ConnectSettings,
) -> Result<OpenStack, cloud_core::ConfigError> {
    OpenStack::connect(config(entry)?, settings, pacer()).await
}

/// One user's requests, made by hand.
pub(crate) struct Caller {
    ports: BTreeMap<String, u16>,
    token: String,
}

impl Caller {
    pub(crate) async fn new(cloud: &Cloud, user: &str) -> Self {
        let ports = ["keystone", "nova", "neutron", "glance"];
        let ports = ports.map(|service| (service.to_owned(), cloud.port(service))).into();
        let mut caller = Self { ports, token: String::new() };
        let domain = json!({"name": "Default"});
        let body = json!({"auth": {
            "identity": {"methods": ["password"], "password": {
                "user": {"name": user, "domain": domain, "password": "secret"}}},
            "scope": {"project": {"name": user, "domain": domain}}}});
        let (head, _) = caller.ask("POST", "keystone", "/v3/auth/tokens", &body).await;
        let token = head.lines().find_map(|line| {
            let (name, value) = line.split_once(": ")?;
            name.eq_ignore_ascii_case("x-subject-token").then(|| value.to_owned())
        });
        caller.token = token.expect("a token");
        caller
    }

    /// Asks and returns the body; anything but a success stops the test.
    pub(crate) async fn call(
        &self,
        method: &str,
        service: &str,
        path: &str,
        body: &Value,
    ) -> Value {
        let (head, text) = self.ask(method, service, path, body).await;
        let status = head.split(' ').nth(1).unwrap_or_default();
        assert!(status.starts_with('2'), "{method} {path}: {head}\n{text}");
        serde_json::from_str(&text).unwrap_or(Value::Null)
    }

    /// Revokes a token, as if by another's hand.
    pub(crate) async fn revoke(&self, token: &str) {
        let line = "DELETE /v3/auth/tokens HTTP/1.1";
        let (head, _) =
            self.send("keystone", &format!("{line}\r\nX-Subject-Token: {token}"), "").await;
        assert!(head.contains(" 204 "), "{head}");
    }

    async fn ask(&self, method: &str, service: &str, path: &str, body: &Value) -> (String, String) {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        self.send(service, &format!("{method} {path} HTTP/1.1"), &body).await
    }

    /// Sends a request that begins with this line, and perhaps a header.
    async fn send(&self, service: &str, beginning: &str, body: &str) -> (String, String) {
        let port = self.ports.get(service).copied().expect("a service");
        let token = match &self.token[..] {
            "" => String::new(),
            token => format!("X-Auth-Token: {token}\r\n"),
        };
        let request = format!(
            "{beginning}\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\
             Content-Type: application/json\r\nOpenStack-API-Version: compute 2.90\r\n\
             Content-Length: {}\r\n{token}\r\n{body}",
            body.len()
        );
        let mut socket = TcpStream::connect(("127.0.0.1", port)).await.expect("a connection");
        socket.write_all(request.as_bytes()).await.expect("a request");
        let mut response = String::new();
        socket.read_to_string(&mut response).await.expect("an answer");
        let (head, text) = response.split_once("\r\n\r\n").expect("a head");
        (head.to_owned(), text.to_owned())
    }
}

/// Looks again and again until it holds.
pub(crate) async fn until<F: Future<Output = bool>>(what: &str, look: impl Fn() -> F) {
    let deadline = Instant::now() + PATIENCE;
    while !look().await {
        assert!(Instant::now() < deadline, "it does not come: {what}");
        sleep(Duration::from_millis(200)).await;
    }
}
