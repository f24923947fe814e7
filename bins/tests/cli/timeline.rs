//! `timeline` on a log of events, without a cloud and without Slurm.

use crate::fixture::{Ended, program};
use crate::snapshot;
use std::fs;
use std::path::Path;
use std::process::Command;

const EVENTS: &str = r#"{"at":1000000,"run":"a","event":"begun","detail":"start"}
{"at":1002000,"run":"a","event":"launched","node":"n1","instance":"i-1","shape":"S","zone":"Z","jobs":[17]}
{"at":1002500,"run":"a","event":"launch_failed","node":"n2","detail":"full </script>","cause":"capacity","jobs":[17]}
{"at":1003000,"run":"a","event":"returned_to_slurm","node":"n2","detail":"launch: full </script>","cause":"capacity"}
{"at":1030000,"run":"a","event":"up","node":"n1","since":1029000}
{"at":1120000,"run":"b","event":"registered","node":"n1","since":1060000}
{"at":1120000,"run":"b","event":"idle","node":"n1","since":1100000}
{"at":1120000,"run":"b","event":"terminated","node":"n1","instance":"i-1"}
"#;

fn timeline(directory: &Path, arguments: &[&str]) -> Ended {
    let mut command = Command::new(program("timeline"));
    let output = command
        .args(["--state-dir", &directory.display().to_string(), "--log", "/dev/null"])
        .args(["--config", "/nowhere", "--until", "1970-01-01T00:20:00Z"])
        .args(arguments)
        .env_clear()
        .env("TZ", "UTC")
        .current_dir(directory)
        .output()
        .unwrap();
    Ended::of(&output, directory)
}

#[test]
fn a_log_is_drawn_without_configuration_cloud_and_slurm() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("events.jsonl"), EVENTS).unwrap();
    let ended = timeline(directory.path(), &[]).with_code(0);
    snapshot::matches("timeline", &ended.stdout);
    let json = timeline(directory.path(), &["--json", "n1"]).with_code(0).stdout;
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((json["nodes"].as_u64(), json["jobs"].as_u64()), (Some(1), Some(1)), "{json}");
}

#[test]
fn a_page_holds_all_it_needs_and_no_reason_ends_its_script() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("events.jsonl"), EVENTS).unwrap();
    let files = ["--html", "t.html", "--svg", "t.svg"];
    let ended = timeline(directory.path(), &files).with_code(0);
    assert_eq!(ended.stdout, "wrote t.html\nwrote t.svg\n");
    let page = fs::read_to_string(directory.path().join("t.html")).unwrap();
    assert_eq!(page.matches("</script>").count(), 2, "{page}");
    for elsewhere in ["http://", "https://", "src=", "@import", "url("] {
        assert!(!page.contains(elsewhere), "{elsewhere}");
    }
    assert!(page.contains("default-src 'none'"));
    let picture = fs::read_to_string(directory.path().join("t.svg")).unwrap();
    assert!(picture.contains("launch: full &lt;/script&gt;"), "{picture}");
}

#[test]
fn what_cannot_be_read_is_said_and_the_rest_is_shown() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("events.jsonl"), format!("{EVENTS}{{\"at\":7,\"ev")).unwrap();
    let ended = timeline(directory.path(), &[]).with_code(1);
    let ended = ended.saying(&["1 line is not readable", "DIR/events.jsonl:9"]);
    assert!(ended.stdout.contains("n1"), "{ended:?}");
    for (arguments, words) in [
        (["--since", "yesterday"], "yesterday is no time"),
        (["--since", "1970-01-02"], "--since is not before --until"),
        (["--html", "no/such/file"], "cannot write no/such/file"),
    ] {
        let ended = timeline(directory.path(), &arguments).with_code(2).saying(&[words]);
        assert_eq!(ended.stdout, "");
    }
}
