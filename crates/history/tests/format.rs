//! The format of the log, and reading it.

use history::{Event, EventKind, Place, read};
use hostlist::NodeName;
use proptest::prelude::*;
use std::fs;
use std::time::{Duration, SystemTime};

fn at(millis: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_millis(millis)
}

#[test]
fn a_line_has_only_what_is_known() {
    let node = NodeName::new("n1").unwrap();
    let event = Event::new(at(5), "r1", EventKind::Launched).of(&node).with("i-1");
    let line = r#"{"at":5,"run":"r1","event":"launched","node":"n1","instance":"i-1"}"#;
    assert_eq!(event.to_line(), format!("{line}\n"));
    let place = Place { shape: Some("S".into()), zone: Some("AD-1".into()), preemptible: true };
    let event = event.in_place(place).for_jobs([17]).caused_by("capacity").since(at(3));
    let more = r#","cause":"capacity","shape":"S","zone":"AD-1","preemptible":true,"jobs":[17],"since":3}"#;
    assert_eq!(event.to_line(), format!("{}{more}\n", line.trim_end_matches('}')));
    assert_eq!(event.place().to_string(), "S preemptible in AD-1");
}

#[test]
fn lines_of_older_and_newer_versions_are_read() {
    let old: Event =
        serde_json::from_str(r#"{"at":5,"run":"r","event":"up","node":"n1","detail":"10.0.0.2"}"#)
            .unwrap();
    assert_eq!((old.event, old.jobs.len(), old.since), (EventKind::Up, 0, None));
    let new: Event = serde_json::from_str(r#"{"at":5,"event":"hummed","tune":[1,{}]}"#).unwrap();
    assert_eq!((new.event, new.run.as_str()), (EventKind::Unknown, ""));
}

#[test]
fn rotated_files_come_first_and_a_broken_line_hides_no_other() {
    let directory = tempfile::tempdir().unwrap();
    let line = |at: u64| format!("{{\"at\":{at},\"run\":\"r\",\"event\":\"begun\"}}\n");
    fs::write(
        directory.path().join("events.jsonl"),
        format!("{}half a li\n\n{}", line(5), line(6)),
    )
    .unwrap();
    fs::write(directory.path().join("events.jsonl.1"), line(4) + &line(3)).unwrap();
    fs::write(directory.path().join("events.jsonl.2.gz"), "?").unwrap();
    fs::write(directory.path().join("events.jsonl.3"), "x".repeat(70_000)).unwrap();
    let log = read(directory.path()).unwrap();
    assert_eq!(log.events.iter().map(|event| event.at).collect::<Vec<_>>(), [4, 3, 5, 6]);
    assert_eq!((log.broken, log.compressed.len(), log.is_cut), (2, 1, false));
    let [oversized, half] = &log.first_broken[..] else { panic!("{log:?}") };
    assert_eq!((oversized.line, oversized.why.as_str()), (1, "too long"));
    assert_eq!(half.line, 2);
    assert_eq!(log.warnings().len(), 2, "{:?}", log.warnings());
}

#[test]
fn no_log_is_an_empty_one() {
    let directory = tempfile::tempdir().unwrap();
    let log = read(directory.path()).unwrap();
    assert!(log.events.is_empty() && log.warnings().is_empty());
}

proptest! {
    #[test]
    fn what_is_written_is_read_again(detail in ".*", node in "[a-z]{1,9}", jobs in proptest::collection::vec(any::<u32>(), 0..3), millis in 0..u64::from(u32::MAX)) {
        let node = NodeName::new(&node).unwrap();
        let event = Event::new(at(millis), "r", EventKind::LaunchFailed).of(&node).because(detail).for_jobs(jobs);
        let line = event.to_line();
        prop_assert_eq!(line.matches('\n').count(), 1);
        prop_assert_eq!(serde_json::from_str::<Event>(&line).unwrap(), event);
    }
}
