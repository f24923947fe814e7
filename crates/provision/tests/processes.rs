//! One state directory, and processes that contend for it, or are killed.

use hostlist::NodeName;
use provision::state::{Launch, NodeLock, NodeRecord, State as _, StateDir, StateFile};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::SystemTime;

/// Where a child finds its directory.
const DIRECTORY: &str = "PROVISION_TEST_STATE";

/// How often each process changes what it shares with the others.
const ROUNDS: u32 = 200;

fn n1() -> NodeName {
    NodeName::new("n1").unwrap()
}

/// This very program as another process, which does one of the two things below.
fn child(directory: &Path, what: &str) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", &format!("processes::{what}"), "--ignored", "--nocapture"])
        .env(DIRECTORY, directory)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

fn state() -> StateDir {
    StateDir::open(std::env::var(DIRECTORY).unwrap()).unwrap()
}

/// Waits until the child says that it has the lock.
fn says_locked(child: &mut Child) -> BufReader<ChildStdout> {
    let mut lines = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    while !line.contains("locked") {
        line.clear();
        assert_ne!(lines.read_line(&mut line).unwrap(), 0, "the child has ended");
    }
    lines
}

/// The lock, whenever it is free.
fn lock(state: &StateDir) -> Box<dyn NodeLock> {
    loop {
        if let Some(lock) = state.try_lock(&n1()).unwrap() {
            return lock;
        }
        std::thread::yield_now();
    }
}

#[test]
#[ignore = "the other process of the tests below"]
fn holds_the_lock() {
    let state = state();
    let mut lock = lock(&state);
    let launch = Some(Launch::asked(SystemTime::now()));
    lock.keep(&NodeRecord { generation: 7, launch, ..NodeRecord::default() }).unwrap();
    println!("locked");
    // Until the other end closes, or for ever.
    let _ = std::io::stdin().read(&mut [0]);
}

#[test]
#[ignore = "the other process of the tests below"]
fn counts_in_the_lock() {
    let state = state();
    for _ in 0..ROUNDS {
        let mut lock = lock(&state);
        let mut record = lock.record();
        record.generation += 1;
        lock.keep(&record).unwrap();
        drop(lock);
        let mut done = false;
        while !done {
            let add = |text: Option<&str>| {
                let count: u32 = text.map_or(0, |text| text.parse().unwrap());
                (count + 1).to_string()
            };
            done = state.change(StateFile::Sightings, &mut { add }).unwrap();
            std::thread::yield_now();
        }
    }
}

#[test]
fn a_lock_holds_between_processes_and_a_killed_one_leaves_it_free() {
    let directory = tempfile::tempdir().unwrap();
    let state = StateDir::open(directory.path()).unwrap();
    let mut holder = child(directory.path(), "holds_the_lock");
    let lines = says_locked(&mut holder);
    assert!(state.try_lock(&n1()).unwrap().is_none(), "another process has it");
    assert!(state.try_lock(&NodeName::new("n2").unwrap()).unwrap().is_some(), "of n1 alone");
    holder.kill().unwrap();
    holder.wait().unwrap();
    drop(lines);
    let lock = state.try_lock(&n1()).unwrap().unwrap();
    assert_eq!(lock.record().generation, 7, "what it wrote down is there");
    assert!(lock.record().is_open(), "and that it asked for a launch");
}

#[test]
fn a_lock_is_free_when_its_process_has_ended() {
    let directory = tempfile::tempdir().unwrap();
    let state = StateDir::open(directory.path()).unwrap();
    let mut holder = child(directory.path(), "holds_the_lock");
    let mut lines = says_locked(&mut holder);
    assert!(state.try_lock(&n1()).unwrap().is_none());
    holder.stdin.take().unwrap().write_all(b"x").unwrap();
    let mut rest = String::new();
    lines.read_to_string(&mut rest).unwrap();
    assert!(holder.wait().unwrap().success(), "{rest}");
    assert!(state.try_lock(&n1()).unwrap().is_some());
}

#[test]
fn processes_that_contend_for_a_node_lose_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let children: Vec<Child> =
        (0..3).map(|_| child(directory.path(), "counts_in_the_lock")).collect();
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    }
    let state = StateDir::open(directory.path()).unwrap();
    assert_eq!(lock(&state).record().generation, 3 * ROUNDS);
    let count = state.load(StateFile::Sightings).unwrap();
    assert_eq!(count.as_deref(), Some((3 * ROUNDS).to_string().as_str()));
}
