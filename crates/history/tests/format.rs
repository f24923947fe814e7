//! The format of the log, and reading it.

use history::{Event, EventKind, Position, RecordedPlace, label, read, read_after};
use hostlist::NodeName;
use proptest::prelude::*;
use rustix::fs::{FileType, Mode};
use std::fs;
use std::os::unix::fs::symlink;
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
    let place =
        RecordedPlace { shape: Some("S".into()), zone: Some("AD-1".into()), preemptible: true };
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

/// What slurmctld's user could put in the place of a file of the log.
#[test]
fn what_is_no_file_in_the_place_of_the_log_is_an_error_at_once() {
    let mode = Mode::RUSR | Mode::WUSR;
    for name in ["events.jsonl", "events.jsonl.1"] {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(name);
        let position = Position { file: 1, offset: 0 };
        if name.ends_with('1') {
            fs::write(directory.path().join("events.jsonl"), "").unwrap();
        }
        for link in [false, true] {
            if link {
                symlink("/dev/zero", &path).unwrap();
            } else {
                rustix::fs::mknodat(rustix::fs::CWD, &path, FileType::Fifo, mode, 0).unwrap();
            }
            let error = read(directory.path()).unwrap_err();
            let why = if link { "it is a link" } else { "it is no file" };
            assert!(error.source.to_string().contains(why), "{name}: {error:?}");
            let error = read_after(directory.path(), position).unwrap_err();
            assert!(error.source.to_string().contains(why), "{name}: {error:?}");
            fs::remove_file(&path).unwrap();
        }
    }
}

#[test]
fn a_file_without_end_is_read_in_parts_and_does_not_stop_the_reader() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("events.jsonl");
    fs::File::create(&path).unwrap().set_len(1 << 40).unwrap();
    let (events, first) = read_after(directory.path(), Position::default()).unwrap();
    let (_, second) = read_after(directory.path(), first).unwrap();
    assert!(events.is_empty() && second.offset > first.offset, "{first:?} {second:?}");
}

proptest! {
    #[test]
    fn no_value_leaves_its_label(value in "[a-z\"\\\\\n,{}= ]{0,20}") {
        let text = label("zone", &value);
        let inner = text.strip_prefix("zone=\"").and_then(|text| text.strip_suffix('"')).unwrap();
        prop_assert!(!inner.contains('\n'));
        // A quote ends a label unless a backslash is before it that is none itself.
        let plain = inner.replace("\\\\", "").replace("\\\"", "").replace("\\n", "");
        prop_assert!(!plain.contains(['"', '\\']), "{text}");
        prop_assert_eq!(inner.replace("\\\\", "\0").replace("\\n", "\n").replace("\\\"", "\"").replace('\0', "\\"), value);
    }

    #[test]
    fn what_is_written_is_read_again(detail in ".*", node in "[a-z]{1,9}", jobs in proptest::collection::vec(any::<u32>(), 0..3), millis in 0..u64::from(u32::MAX)) {
        let node = NodeName::new(&node).unwrap();
        let event = Event::new(at(millis), "r", EventKind::LaunchFailed).of(&node).because(detail).for_jobs(jobs);
        let line = event.to_line();
        prop_assert_eq!(line.matches('\n').count(), 1);
        prop_assert_eq!(serde_json::from_str::<Event>(&line).unwrap(), event);
    }
}
