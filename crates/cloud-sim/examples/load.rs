//! How many requests per second the cloud answers: `bench/run sim`.
//!
//! Requests are signed beforehand and sent again and again, so that what is measured is the
//! server: it verifies every one, and keeps requests as the program does.
//! Launches have a retry token each, as `cloud-oci` sends them; signatures do not cover it.
//! Server and clients share two cores. Fails if a bar is missed.

#![expect(
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a measurement"
)]

#[expect(dead_code, reason = "a part of the helpers is for tests alone")]
#[path = "../tests/support/mod.rs"]
mod support;

use cloud_sim::CloudSettings;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use support::{COMPARTMENT, Fixture, launch_body};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

const CONNECTIONS: u64 = 16;
const TIME: Duration = Duration::from_secs(4);

/// The fewest requests per second, where there is a bar.
const BAR: f64 = 5000.0;

/// Where the token of a request stands that has one, until each gets its own.
const TOKEN: &str = "00000000000000000000";

/// A request as it goes over the wire.
#[derive(Clone)]
struct Wire {
    bytes: Vec<u8>,
    token: Option<usize>,
}

impl Wire {
    fn new(text: String) -> Self {
        let token = text.find(TOKEN);
        Self { bytes: text.into_bytes(), token }
    }

    /// The bytes of this request, with the token of this number.
    fn numbered(&mut self, number: u64) -> &[u8] {
        if let Some(start) = self.token {
            let digits = format!("{number:020}");
            self.bytes[start..start + TOKEN.len()].copy_from_slice(digits.as_bytes());
        }
        &self.bytes
    }
}

fn wire(fixture: &Fixture, method: &str, target: &str, body: &str) -> Wire {
    let endpoint = fixture.cloud.endpoint();
    let host = endpoint.trim_start_matches("http://");
    let mut text = format!("{method} {target} HTTP/1.1\r\n");
    if method == "POST" {
        text.extend(["opc-retry-token: ", TOKEN, "\r\n"]);
    }
    for (name, value) in fixture.signer.headers(method, target, host, body) {
        text.extend([name.as_str(), ": ", value.as_str(), "\r\n"]);
    }
    text.push_str("\r\n");
    text.push_str(body);
    Wire::new(text)
}

/// Reads one answer and gives its status.
async fn answer(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> u16 {
    buffer.clear();
    loop {
        let read = stream.read_buf(buffer).await.unwrap();
        assert!(read > 0, "closed");
        let Some(end) = buffer.windows(4).position(|window| window == b"\r\n\r\n") else {
            continue;
        };
        let head = String::from_utf8_lossy(&buffer[..end]).to_lowercase();
        let length = head.split("content-length: ").nth(1).and_then(|rest| rest.lines().next());
        let length: usize = length.map_or(0, |length| length.trim().parse().unwrap());
        if buffer.len() >= end + 4 + length {
            return head[9..12].parse().unwrap();
        }
    }
}

/// What this process has taken of the cores, server and clients together: what a busy machine changes least.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let (_, fields) = stat.rsplit_once(") ").unwrap();
    let ticks: f64 = fields.split(' ').skip(11).take(2).map(|n| n.parse::<f64>().unwrap()).sum();
    ticks / 100.0
}

/// Measures one kind of request, prints its row, and gives whether it is as fast as its bar.
async fn measure(fixture: &Fixture, (what, bar): (&str, Option<f64>), request: Wire) -> bool {
    let address = fixture.cloud.endpoint().trim_start_matches("http://").to_owned();
    let (start, cpu) = (Instant::now(), cpu_seconds());
    let mut tasks = tokio::task::JoinSet::new();
    for connection in 0..CONNECTIONS {
        let (address, mut request) = (address.clone(), request.clone());
        tasks.spawn(async move {
            let mut stream = TcpStream::connect(address).await.unwrap();
            stream.set_nodelay(true).unwrap();
            let (mut buffer, mut count) = (Vec::with_capacity(1 << 20), 0u32);
            while start.elapsed() < TIME {
                let number = connection << 32 | u64::from(count);
                stream.write_all(request.numbered(number)).await.unwrap();
                assert_eq!(answer(&mut stream, &mut buffer).await, 200);
                count += 1;
            }
            count
        });
    }
    let count: u32 = tasks.join_all().await.into_iter().sum();
    let rate = f64::from(count) / start.elapsed().as_secs_f64();
    let cpu = (cpu_seconds() - cpu) * 1e6 / f64::from(count);
    let instances = fixture.cloud.admin().instances().len();
    let met = bar.is_none_or(|bar| rate >= bar);
    let bar = bar.map_or("-".to_owned(), |bar| format!("{bar:.0}"));
    let verdict = if met { "" } else { "MISSED" };
    println!("{what:<16} {rate:>12.0} {bar:>8} {cpu:>10.0} {instances:>10} {verdict}");
    met
}

/// As the program is by default, with room for all that the fastest machine launches in the time.
fn settings(state: &Path) -> CloudSettings {
    let mut settings = CloudSettings { state: Some(state.to_owned()), ..CloudSettings::default() };
    for subnet in &mut settings.subnets {
        "10.0.0.0/8".clone_into(&mut subnet.cidr);
    }
    for limit in &mut settings.limits {
        limit.value *= 100;
    }
    settings
}

/// What is measured: its name, its bar and the request.
async fn rows(fixture: &Fixture, id: &str) -> Vec<(&'static str, Option<f64>, Wire)> {
    let get = |target: &str| wire(fixture, "GET", &format!("/20160918/{target}"), "");
    let list = |query: &str| get(&format!("instances?compartmentId={COMPARTMENT}&{query}"));
    let cards = format!("vnicAttachments?compartmentId={COMPARTMENT}&instanceId={id}");
    let attached = fixture.get(&format!("/20160918/{cards}")).await.ok().json();
    let vnic = attached[0]["vnicId"].as_str().unwrap();
    let body = launch_body("more").to_string();
    let launch = wire(fixture, "POST", "/20160918/instances", &body);
    vec![
        ("get", Some(BAR), get(&format!("instances/{id}"))),
        ("list by name", Some(BAR), list("displayName=n0001")),
        ("a page of 100", None, list("limit=100")),
        ("a page of 1000", None, list("limit=1000")),
        ("attachments", Some(BAR), get(&cards)),
        ("vnic", Some(BAR), get(&format!("vnics/{vnic}"))),
        ("launch", Some(BAR), launch),
    ]
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let state = tempfile::TempDir::new().unwrap();
    let fixture = Fixture::new(settings(state.path())).await;
    println!("{:<16} {:>12} {:>8} {:>10} {:>10}", "", "requests/s", "bar", "CPU us", "instances");
    for n in 0..2000 {
        fixture.launch(&format!("n{n:04}")).await;
    }
    let id = fixture.launch("one").await;
    // Until then nobody can see a VNIC.
    fixture.advance(60);
    let mut met = true;
    let only = std::env::args().nth(1);
    for (what, bar, request) in rows(&fixture, &id).await {
        if only.as_ref().is_some_and(|only| only != what) {
            continue;
        }
        met &= measure(&fixture, (what, bar), request).await;
    }
    if met { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
