//! A cloud on loopback that does what a script says, one step for each request.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// What to do with a request.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// Response with a status, extra header lines and a body.
    Response(u16, &'static [&'static str], String),
    /// Read nothing of the request and reset the connection.
    ResetUnread,
    /// Read the request and reset the connection.
    ResetRead,
    /// Promise a body, send half of it and never go on.
    Stall,
    /// Promise a body, send half of it and close.
    CutShort,
}

impl Step {
    pub(crate) fn ok(body: &str) -> Self {
        Self::Response(200, &[], body.to_owned())
    }

    pub(crate) fn status(status: u16) -> Self {
        Self::Response(status, &[], String::new())
    }
}

/// A request as it arrived.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Seen {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().skip(1).filter_map(|line| line.split_once(": "));
        lines.find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }
}

#[derive(Default)]
struct Script {
    steps: VecDeque<Step>,
    seen: Vec<Seen>,
    connections: usize,
}

/// The server; it stops with the test's run time.
pub(crate) struct Server {
    pub(crate) address: std::net::SocketAddr,
    script: Arc<Mutex<Script>>,
}

impl Server {
    pub(crate) async fn start(steps: impl IntoIterator<Item = Step>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        let steps = steps.into_iter().collect();
        let script = Arc::new(Mutex::new(Script { steps, ..Script::default() }));
        let shared = Arc::clone(&script);
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                shared.lock().expect("not poisoned").connections += 1;
                tokio::spawn(serve(socket, Arc::clone(&shared)));
            }
        });
        Self { address, script }
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.script.lock().expect("not poisoned").seen.clone()
    }

    pub(crate) fn connections(&self) -> usize {
        self.script.lock().expect("not poisoned").connections
    }

    /// Steps of the script that nobody has asked for.
    pub(crate) fn steps_left(&self) -> usize {
        self.script.lock().expect("not poisoned").steps.len()
    }
}

async fn serve(mut socket: TcpStream, script: Arc<Mutex<Script>>) {
    loop {
        if socket.readable().await.is_err() {
            return;
        }
        let unread = {
            let mut script = script.lock().expect("not poisoned");
            matches!(script.steps.front(), Some(Step::ResetUnread))
                .then(|| script.steps.pop_front())
                .is_some()
        };
        if unread {
            return reset(socket);
        }
        let Some(seen) = read(&mut socket).await else {
            return;
        };
        let step = {
            let mut script = script.lock().expect("not poisoned");
            script.seen.push(seen);
            script.steps.pop_front().unwrap_or_else(|| Step::status(599))
        };
        match step {
            Step::Response(status, headers, body) => {
                if response(&mut socket, status, headers, &body).await.is_err() {
                    return;
                }
            }
            Step::ResetUnread | Step::ResetRead => return reset(socket),
            Step::Stall => {
                let _ = socket.write_all(HALF).await;
                tokio::time::sleep(Duration::from_hours(1)).await;
            }
            Step::CutShort => {
                let _ = socket.write_all(HALF).await;
                return;
            }
        }
    }
}

/// An answer that promises twice as much as comes.
const HALF: &[u8] = b"HTTP/1.1 200 X\r\ncontent-length: 10\r\n\r\nhalf-";

async fn response(
    socket: &mut TcpStream,
    status: u16,
    headers: &[&str],
    body: &str,
) -> std::io::Result<()> {
    let first = [format!("HTTP/1.1 {status} X"), format!("content-length: {}", body.len())];
    let lines = first.into_iter().chain(headers.iter().map(ToString::to_string));
    let head = lines.collect::<Vec<_>>().join("\r\n") + "\r\n\r\n";
    socket.write_all((head + body).as_bytes()).await
}

fn reset(socket: TcpStream) {
    socket.set_zero_linger().expect("a socket option");
    drop(socket);
}

/// One request with its body; none when the client has closed the connection.
async fn read(socket: &mut TcpStream) -> Option<Seen> {
    let mut bytes = Vec::new();
    let head = loop {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break String::from_utf8_lossy(bytes.get(..end)?).into_owned();
        }
        if socket.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    };
    let mut seen = Seen { head, body: String::new() };
    let length = seen.header("content-length").and_then(|text| text.parse().ok()).unwrap_or(0);
    let begin = seen.head.len() + 4;
    while bytes.len() < begin + length {
        if socket.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
    seen.body = String::from_utf8_lossy(bytes.get(begin..)?).into_owned();
    Some(seen)
}
