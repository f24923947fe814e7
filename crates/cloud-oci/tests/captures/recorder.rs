//! A server that answers what it is told to and keeps what it was asked.

use serde_json::Value;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// A request as it came over the wire.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) method: String,
    pub(crate) target: String,
    /// By their names in small letters.
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: Vec<u8>,
}

/// An answer to give: status, headers, body.
#[derive(Clone, Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Response {
    pub(crate) fn new(status: u16, body: impl Into<String>) -> Self {
        Self { status, headers: Vec::new(), body: body.into() }
    }

    /// As a capture has it.
    pub(crate) fn captured(response: &Value) -> Self {
        let status = response["status"].as_u64().expect("a status").try_into().expect("small");
        let skipped = ["content-length", "date", "content-type"];
        let headers = response["headers"].as_object().expect("headers").iter();
        let headers = headers
            .filter(|(name, _)| !skipped.contains(&name.to_ascii_lowercase().as_str()))
            .map(|(name, value)| (name.clone(), value.as_str().expect("a text").to_owned()));
        let body = match &response["body"] {
            Value::Null => String::new(),
            body => body.to_string(),
        };
        Self { status, headers: headers.collect(), body }
    }
}

#[derive(Default)]
struct Log {
    responses: VecDeque<Response>,
    asked: Vec<Asked>,
}

/// The server.
pub(crate) struct Recorder {
    pub(crate) endpoint: String,
    log: Arc<Mutex<Log>>,
}

impl Recorder {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let endpoint = format!("http://{}", listener.local_addr().expect("an address"));
        let log = Arc::new(Mutex::new(Log::default()));
        let shared = Arc::clone(&log);
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                tokio::spawn(serve(socket, Arc::clone(&shared)));
            }
        });
        Self { endpoint, log }
    }

    /// What to answer next.
    pub(crate) fn queue(&self, response: Response) {
        self.log.lock().expect("not poisoned").responses.push_back(response);
    }

    /// What was asked since the last time, after all that was queued has been answered.
    pub(crate) fn take(&self) -> Vec<Asked> {
        let mut log = self.log.lock().expect("not poisoned");
        assert!(log.responses.is_empty(), "not all answers were asked for: {:?}", log.responses);
        std::mem::take(&mut log.asked)
    }
}

async fn serve(mut socket: TcpStream, log: Arc<Mutex<Log>>) {
    let mut bytes = Vec::new();
    let head = loop {
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break end;
        }
        if socket.read_buf(&mut bytes).await.unwrap_or_default() == 0 {
            return;
        }
    };
    let text = String::from_utf8_lossy(&bytes[..head]).into_owned();
    let mut lines = text.lines();
    let mut first = lines.next().expect("a request line").split(' ').map(str::to_owned);
    let (method, target) = (first.next().expect("a method"), first.next().expect("a target"));
    let headers: BTreeMap<String, String> = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
        .collect();
    let length = headers.get("content-length").map_or(0, |text| text.parse().expect("a length"));
    while bytes.len() < head + 4 + length {
        if socket.read_buf(&mut bytes).await.unwrap_or_default() == 0 {
            return;
        }
    }
    let body = bytes[head + 4..].to_vec();
    let response = {
        let mut log = log.lock().expect("not poisoned");
        log.asked.push(Asked { method, target, headers, body });
        log.responses.pop_front().unwrap_or_else(|| Response::new(599, "nothing is queued"))
    };
    let mut reply = format!("HTTP/1.1 {} X\r\nconnection: close\r\n", response.status);
    for (name, value) in &response.headers {
        reply += &format!("{name}: {value}\r\n");
    }
    if response.status != 204 {
        reply += &format!("content-length: {}\r\n", response.body.len());
    }
    reply += &format!("\r\n{}", response.body);
    let _ = socket.write_all(reply.as_bytes()).await;
}
