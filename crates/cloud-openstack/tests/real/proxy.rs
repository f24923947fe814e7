//! Stands between us and the cloud: counts what goes by, and loses or refuses what it is told to.

use crate::real::cloud::Cloud;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// A request that went by.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) service: String,
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) status: u16,
}

/// What to do to the next request that begins with a text such as `POST /v2.1/servers`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Refuse it.
    Throttle,
    /// Pass it on, and hang up instead of answering.
    LoseResponse,
}

#[derive(Default)]
struct State {
    seen: Vec<Seen>,
    fault: Option<(String, Fault)>,
    token: Option<String>,
}

/// One listener for each service.
pub(crate) struct Proxy {
    ports: BTreeMap<String, u16>,
    state: Arc<Mutex<State>>,
}

impl Proxy {
    pub(crate) async fn new(cloud: &Cloud) -> Self {
        let state = Arc::new(Mutex::new(State::default()));
        let mut ports = BTreeMap::new();
        for service in ["keystone", "nova", "glance", "neutron"] {
            let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
            ports.insert(service.to_owned(), listener.local_addr().expect("an address").port());
            let (upstream, state) = (cloud.port(service), Arc::clone(&state));
            tokio::spawn(async move {
                while let Ok((socket, _)) = listener.accept().await {
                    let state = Arc::clone(&state);
                    tokio::spawn(async move {
                        let _ = pass(socket, service, upstream, &state).await;
                    });
                }
            });
        }
        Self { ports, state }
    }

    pub(crate) fn url(&self, service: &str, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.ports[service])
    }

    /// The next request that begins like this fails like this.
    pub(crate) fn inject(&self, beginning: &str, fault: Fault) {
        self.with(|state| state.fault = Some((beginning.to_owned(), fault)));
    }

    pub(crate) fn clear_faults(&self) {
        self.with(|state| state.fault = None);
    }

    /// Everything since the last time.
    pub(crate) fn take(&self) -> Vec<Seen> {
        self.with(|state| std::mem::take(&mut state.seen))
    }

    /// The token that was used last.
    pub(crate) fn token(&self) -> String {
        self.with(|state| state.token.clone()).expect("a token")
    }

    fn with<T>(&self, work: impl FnOnce(&mut State) -> T) -> T {
        work(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// One request and its answer; the connection ends with it.
async fn pass(
    mut socket: TcpStream,
    service: &str,
    upstream: u16,
    state: &Mutex<State>,
) -> std::io::Result<()> {
    let Some((head, body)) = read(&mut socket).await? else {
        return Ok(());
    };
    let mut words = head.split(' ');
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let fault = note(state, &head, &format!("{method} {path}"));
    let record = |status| {
        let seen = Seen {
            service: service.to_owned(),
            method: method.to_owned(),
            path: path.to_owned(),
            status,
        };
        state.lock().unwrap_or_else(PoisonError::into_inner).seen.push(seen);
    };
    if fault == Some(Fault::Throttle) {
        record(429);
        let response = b"HTTP/1.1 429 Too Many Requests\r\nRetry-After: 1\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
        return socket.write_all(response).await;
    }
    let mut server = TcpStream::connect(("127.0.0.1", upstream)).await?;
    server.write_all(alone(&head).as_bytes()).await?;
    server.write_all(&body).await?;
    let mut response = Vec::new();
    server.read_to_end(&mut response).await?;
    let status =
        String::from_utf8_lossy(response.get(9..12).unwrap_or_default()).parse().unwrap_or(0);
    record(status);
    if fault == Some(Fault::LoseResponse) {
        return Ok(());
    }
    socket.write_all(&response).await
}

fn note(state: &Mutex<State>, head: &str, line: &str) -> Option<Fault> {
    let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
    let token = head.lines().find_map(|line| {
        let (name, value) = line.split_once(": ")?;
        name.eq_ignore_ascii_case("x-auth-token").then(|| value.to_owned())
    });
    state.token = token.or_else(|| state.token.take());
    let hit = state.fault.as_ref().is_some_and(|(beginning, _)| line.starts_with(beginning));
    if hit { state.fault.take().map(|(_, fault)| fault) } else { None }
}

/// The head with its blank line, and the body.
async fn read(socket: &mut TcpStream) -> std::io::Result<Option<(String, Vec<u8>)>> {
    let (mut bytes, mut chunk) = (Vec::new(), [0; 8192]);
    loop {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&bytes[..end + 4]).into_owned();
            let length = head.lines().find_map(|line| {
                let (name, value) = line.split_once(": ")?;
                name.eq_ignore_ascii_case("content-length").then(|| value.parse().ok())?
            });
            if bytes.len() >= end + 4 + length.unwrap_or(0) {
                return Ok(Some((head, bytes.split_off(end + 4))));
            }
        }
        match socket.read(&mut chunk).await? {
            0 => return Ok(None),
            count => bytes.extend_from_slice(&chunk[..count]),
        }
    }
}

/// A head for a connection of its own.
fn alone(head: &str) -> String {
    let keeps = |line: &&str| !line.to_lowercase().starts_with("connection:");
    let mut lines: Vec<&str> = head.trim_end().lines().filter(keeps).collect();
    lines.extend(["Connection: close", "", ""]);
    lines.join("\r\n")
}
