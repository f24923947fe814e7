//! What administrators are told through webhooks: servers on loopback, of which one answers, one is slow and one is dead.

use crate::fixture::{Ended, Fixture};
use cloud_sim::{Fault, Rule};
use serde_json::Value;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const NODE: &str = "vm-standard2-1-ad1-0001";

/// Longer than all webhooks may take, and shorter than anybody would let a start wait.
const SLOW: Duration = Duration::from_mins(1);

/// A message as the webhook got it, and what our log said when it came.
#[derive(Clone, Debug)]
struct Posted {
    line: String,
    body: Value,
    log: String,
}

/// A webhook that answers after so long, and keeps what it got.
#[expect(clippy::disallowed_methods, reason = "the server is slow")]
fn webhook(pause: Duration, log: PathBuf) -> (SocketAddr, Arc<Mutex<Vec<Posted>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let posted: Arc<Mutex<Vec<Posted>>> = Arc::default();
    let record = Arc::clone(&posted);
    std::thread::spawn(move || {
        for mut socket in listener.incoming().flatten() {
            let (line, body) = read(&socket);
            let log = std::fs::read_to_string(&log).unwrap_or_default();
            record.lock().unwrap().push(Posted { line, body, log });
            std::thread::sleep(pause);
            let _ = socket.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
        }
    });
    (address, posted)
}

/// The first line of a request, and its body.
fn read(socket: &TcpStream) -> (String, Value) {
    let mut reader = BufReader::new(socket);
    let (mut first, mut length) = (String::new(), 0);
    reader.read_line(&mut first).unwrap();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        let Some((name, value)) = line.split_once(':') else { break };
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse().unwrap();
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    (first.trim_end().to_owned(), serde_json::from_slice(&body).unwrap())
}

/// A cluster that tells these webhooks of what the cloud has no room for.
fn telling(webhooks: &[String]) -> Fixture {
    let stage = Fixture::new().running();
    let lines: Vec<String> = webhooks
        .iter()
        .map(|url| format!("  - {{webhook: \"{url}\", on: [capacity]}}\n"))
        .collect();
    stage.write("startnode.yaml", &format!("{}notify:\n{}", stage.configuration(), lines.concat()));
    stage
}

fn start(stage: &Fixture) -> (Ended, Duration) {
    let begun = Instant::now();
    let ended = stage.run("startnode", &[NODE]);
    (ended, begun.elapsed())
}

fn full(stage: &Fixture) {
    stage.cloud().add_fault(Rule::always("LaunchInstance", Fault::out_of_capacity())).unwrap();
}

#[test]
fn a_webhook_gets_one_message_when_all_else_is_done_and_not_the_same_again() {
    let (address, posted) = webhook(Duration::ZERO, PathBuf::new());
    let stage = telling(&[format!("http://{address}/services/T0/secret")]);
    let (ended, _) = start(&stage);
    ended.with_code(0);
    assert!(posted.lock().unwrap().is_empty(), "all is well");
    stage.run("stopnode", &["--now", NODE]).with_code(0);
    full(&stage);
    start(&stage).0.with_code(1);
    let all = posted.lock().unwrap().clone();
    let [one] = &all[..] else { panic!("{all:?}") };
    assert_eq!(one.line, "POST /services/T0/secret HTTP/1.1");
    let text = one.body["text"].as_str().unwrap_or_default();
    assert!(text.starts_with("c1: capacity: ") && text.contains(NODE), "{text}");
    assert_eq!(one.body.as_object().map(serde_json::Map::len), Some(1), "{one:?}");
    start(&stage).0.with_code(1);
    assert_eq!(posted.lock().unwrap().len(), 1, "it was told a moment ago");
}

/// Slurm and operators have waited for nothing: the log has the outcome of the node when the first message comes.
#[test]
fn a_slow_webhook_and_a_dead_one_are_not_in_the_way_of_a_start() {
    // Nobody listens where this one did.
    let dead = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let log = tempfile::tempdir().unwrap();
    let path = log.path().join("elastic.log");
    let (slow, posted) = webhook(SLOW, path.clone());
    let urls = [dead, slow, slow].map(|address| format!("http://{address}/secret"));
    let stage = telling(&urls);
    let text = stage.read("startnode.yaml");
    let own = stage.path("log/elastic.log").display().to_string();
    stage.write("startnode.yaml", &text.replace(&own, &path.display().to_string()));
    let (ended, usual) = start(&stage);
    ended.with_code(0);
    stage.run("stopnode", &["--now", NODE]).with_code(0);
    full(&stage);
    let (ended, took) = start(&stage);
    let ended = ended.with_code(1).saying(&["out of capacity"]);
    assert!(took < usual + Duration::from_secs(15), "{took:?}, and usually {usual:?}");
    let first = posted.lock().unwrap().first().cloned().unwrap();
    assert!(first.log.contains("out of capacity"), "the start is over: {}", first.log);
    let log = std::fs::read_to_string(&path).unwrap();
    for number in 1..=3 {
        assert_eq!(log.matches(&format!("notify: webhook {number}: ")).count(), 1, "{log}");
    }
    assert!(!log.contains("/secret") && !ended.stderr.contains("/secret"), "{log}{ended:?}");
}
