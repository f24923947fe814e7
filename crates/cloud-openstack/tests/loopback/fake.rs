//! A Keystone, a Nova and a Neutron of the test's own making.

use cloud_core::InstanceId;
use cloud_core::http::Retry;
use cloud_core::pace::{Pace, Pacer};
use cloud_core::{File, Sources};
use cloud_openstack::{Config, ConnectSettings, LaunchOptions, Nic, OpenStack, Search};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

pub(crate) const SERVER: &str = "11111111-1111-4111-8111-111111111111";
pub(crate) const IMAGE: &str = "22222222-2222-4222-8222-222222222222";
pub(crate) const NETWORK: &str = "33333333-3333-4333-8333-333333333333";
pub(crate) const PORT: &str = "44444444-4444-4444-8444-444444444444";

/// A request: method, path with query, all its headers, body.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) line: String,
    pub(crate) head: String,
    pub(crate) body: Value,
}

type Answers = dyn Fn(&Asked) -> (u16, String) + Send + Sync;

/// A Keystone and a Nova that offers a microversion; all other answers are the test's.
pub(crate) struct Fake {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Fake {
    pub(crate) async fn new(
        newest: &'static str,
        responses: impl Fn(&Asked) -> (u16, String) + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (responses, seen): (Arc<Answers>, _) = (Arc::new(responses), Arc::clone(&asked));
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                let (responses, seen) = (Arc::clone(&responses), Arc::clone(&seen));
                tokio::spawn(
                    async move { serve(socket, address, newest, &*responses, &seen).await },
                );
            }
        });
        Self { address, asked }
    }

    pub(crate) async fn connect(
        &self,
        auth: &Value,
        launch: LaunchOptions,
    ) -> Result<OpenStack, cloud_core::ConfigError> {
        let mut settings = ConnectSettings::default();
        settings.launch = launch;
        self.connect_with(auth, settings).await
    }

    pub(crate) async fn connect_with(
        &self,
        auth: &Value,
        mut settings: ConnectSettings,
    ) -> Result<OpenStack, cloud_core::ConfigError> {
        let mut auth = auth.clone();
        auth["auth_url"] = json!(format!("http://{}/identity", self.address));
        let text = json!({"clouds": {"test": {"auth": auth}}}).to_string();
        let read = move |path: &Path| match path.to_str() {
            Some("/etc/openstack/clouds.yaml") => {
                Ok(File { bytes: text.clone().into_bytes(), mode: Some(0o640) })
            }
            _ => Err(io::Error::from(io::ErrorKind::NotFound)),
        };
        let config = {
            let sources = Sources::new(None, BTreeMap::new(), read);
            Config::load(&sources, &Search::usual(&sources))
        }?;
        settings.http.retry = Retry::never();
        OpenStack::connect(config, settings, Pacer::new(Pace::default())).await
    }

    pub(crate) async fn provider(&self, nics: &[Nic]) -> OpenStack {
        let mut launch = LaunchOptions::default();
        launch.nics = nics.to_vec();
        self.connect(&by_token(), launch).await.expect("a connection")
    }

    /// The requests that began like this.
    pub(crate) fn asked(&self, beginning: &str) -> Vec<Asked> {
        let asked = self.asked.lock().expect("nobody panicked");
        asked.iter().filter(|it| it.line.starts_with(beginning)).cloned().collect()
    }
}

async fn serve(
    mut socket: TcpStream,
    address: SocketAddr,
    newest: &str,
    responses: &Answers,
    seen: &Mutex<Vec<Asked>>,
) {
    let Some(asked) = read(&mut socket).await else {
        return;
    };
    let (status, body) = match asked.line.as_str() {
        "GET /compute/v2.1/" => (200, json!({"version": {"version": newest}}).to_string()),
        _ => responses(&asked),
    };
    let (status, body) = match (asked.line.as_str(), status) {
        ("POST /identity/v3/auth/tokens", 404) => {
            (201, token(&address.to_string(), "compute/v2.1"))
        }
        _ => (status, body),
    };
    seen.lock().expect("nobody panicked").push(asked);
    if status == SILENCE {
        return std::future::pending().await;
    }
    let response = format!(
        "HTTP/1.1 {status} X\r\nX-Subject-Token: t1\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let _ = socket.write_all(response.as_bytes()).await;
}

async fn read(socket: &mut TcpStream) -> Option<Asked> {
    let (mut bytes, mut chunk) = (Vec::new(), [0; 4096]);
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let head = head.to_lowercase();
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            if body.len() >= length.map_or(0, |length| length.parse().expect("a number")) {
                let line = text.split(' ').take(2).collect::<Vec<_>>().join(" ");
                return Some(Asked {
                    line,
                    head,
                    body: serde_json::from_str(body).unwrap_or_default(),
                });
            }
        }
        match socket.read(&mut chunk).await {
            Ok(0) | Err(_) => return None,
            Ok(count) => bytes.extend(chunk.iter().take(count)),
        }
    }
}

fn token(address: &str, compute: &str) -> String {
    let entry = |kind: &str, path: &str| {
        let url = format!("http://{address}/{path}");
        let endpoint =
            json!({"interface": "public", "region": "R1", "region_id": "R1", "url": url});
        json!({"type": kind, "endpoints": [endpoint]})
    };
    let catalog = [entry("compute", compute), entry("image", "image"), entry("network", "network")];
    let times = ("2026-11-16T00:00:00Z", "2026-11-16T08:00:00Z");
    json!({"token": {"issued_at": times.0, "expires_at": times.1, "project": {"id": "p"},
        "catalog": catalog}})
    .to_string()
}

/// The usual way to log in.
pub(crate) fn by_token() -> Value {
    json!({"token": "t0", "project_id": "p"})
}

/// A token whose catalog has Nova at another path.
pub(crate) fn token_with(asked: &Asked, compute: &str) -> (u16, String) {
    let host = asked.head.lines().find_map(|line| line.strip_prefix("host: "));
    (201, token(host.expect("a host"), compute))
}

/// The status of an answer that never comes.
pub(crate) const SILENCE: u16 = 0;

/// To a request for a token it means that Keystone is as it should be.
pub(crate) fn nothing() -> (u16, String) {
    (404, String::new())
}

pub(crate) fn no_such_server() -> (u16, String) {
    (
        404,
        json!({"itemNotFound": {"code": 404, "message": "Instance could not be found."}})
            .to_string(),
    )
}

pub(crate) fn server() -> Value {
    json!({"id": SERVER, "name": "vm-1", "status": "ACTIVE", "image": {"id": IMAGE}, "addresses": {
        "alpha": [{"addr": "10.9.0.1"}], "slurm": [{"addr": "10.1.0.7"}]}})
}

/// A Nova with one server, and a Neutron that answers by the test's table.
pub(crate) async fn with_networks(neutron: &'static [(&'static str, u16, &'static str)]) -> Fake {
    Fake::new("2.95", move |asked| {
        if asked.line.starts_with("GET /compute/v2.1/servers/detail") {
            return (200, json!({"servers": [server()]}).to_string());
        }
        if asked.line.starts_with("GET /compute/v2.1/servers/") {
            return (200, json!({"server": server()}).to_string());
        }
        let row =
            neutron.iter().find(|(path, ..)| asked.line == format!("GET /network/v2.0/{path}"));
        row.map_or_else(nothing, |(_, status, body)| (*status, (*body).to_owned()))
    })
    .await
}

pub(crate) fn id() -> InstanceId {
    InstanceId::new(SERVER)
}
