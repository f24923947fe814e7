//! How many requests per second the cloud answers: `cargo run --release --example load`.
//!
//! Requests are signed beforehand and sent again and again, so that what is measured is the
//! server: it verifies every one, and its limits are those that it always has. Server and clients
//! share two cores. Fails if a bar is missed.

#![expect(
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a measurement"
)]

#[path = "../tests/support/mod.rs"]
mod support;

use cloud_sim::Settings;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use support::{COMPARTMENT, Scene, launch_body};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

const CONNECTIONS: usize = 16;
const TIME: Duration = Duration::from_secs(4);

/// The fewest requests per second, where there is a bar.
const BAR: f64 = 5000.0;

/// A request as it goes over the wire.
fn wire(scene: &Scene, method: &str, target: &str, body: &str) -> Vec<u8> {
    let endpoint = scene.cloud.endpoint();
    let host = endpoint.trim_start_matches("http://");
    let mut text = format!("{method} {target} HTTP/1.1\r\n");
    for (name, value) in scene.signer.headers(method, target, host, body) {
        text.extend([name.as_str(), ": ", value.as_str(), "\r\n"]);
    }
    text.push_str("\r\n");
    text.push_str(body);
    text.into_bytes()
}

/// Reads one answer and gives its status.
async fn answer(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> u16 {
    buffer.clear();
    loop {
        let mut piece = vec![0; 16384];
        let read = stream.read(&mut piece).await.unwrap();
        assert!(read > 0, "closed");
        buffer.extend_from_slice(&piece[..read]);
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

/// Measures one kind of request, and gives how many of it are answered in a second.
async fn measure(scene: &Scene, what: &str, request: Vec<u8>) -> f64 {
    let address = scene.cloud.endpoint().trim_start_matches("http://").to_owned();
    let start = Instant::now();
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..CONNECTIONS {
        let (address, request) = (address.clone(), request.clone());
        tasks.spawn(async move {
            let mut stream = TcpStream::connect(address).await.unwrap();
            stream.set_nodelay(true).unwrap();
            let (mut buffer, mut count) = (Vec::new(), 0u32);
            while start.elapsed() < TIME {
                stream.write_all(&request).await.unwrap();
                assert_eq!(answer(&mut stream, &mut buffer).await, 200);
                count += 1;
            }
            count
        });
    }
    let count: u32 = tasks.join_all().await.into_iter().sum();
    let instances = scene.cloud.admin().instances().len();
    let rate = f64::from(count) / start.elapsed().as_secs_f64();
    println!("{what:<16} {rate:>8.0} requests/s, {instances} instances");
    rate
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let settings = Settings { threads: 2, keep_requests: 1000, ..Settings::quick() };
    let scene = Scene::new(settings).await;
    for n in 0..2000 {
        scene.launch(&format!("n{n:04}")).await;
    }
    let id = scene.launch("one").await;
    let get = wire(&scene, "GET", &format!("/20160918/instances/{id}"), "");
    let list = |query: &str| {
        let target = format!("/20160918/instances?compartmentId={COMPARTMENT}&{query}");
        wire(&scene, "GET", &target, "")
    };
    let body = launch_body("more").to_string();
    let mut barred = [
        measure(&scene, "get", get).await,
        measure(&scene, "list by name", list("displayName=n0001")).await,
    ]
    .to_vec();
    measure(&scene, "a page of 100", list("limit=100")).await;
    measure(&scene, "a page of 1000", list("limit=1000")).await;
    let launch = wire(&scene, "POST", "/20160918/instances", &body);
    barred.push(measure(&scene, "launch", launch).await);
    if barred.iter().all(|rate| *rate >= BAR) {
        return ExitCode::SUCCESS;
    }
    println!("get, list by name and launch have a bar of {BAR} requests/s: MISSED");
    ExitCode::FAILURE
}
