//! Printed plans: each file of `tests/plans` has a world and a request above the line, and the plan below.
//!
//! `PLANS=write cargo test -p provision --test it plans::` writes the plans anew; read what changed before it is kept.

use crate::scenario::Scenario;
use std::{
    env, fs,
    path::{Path, PathBuf},
};

const LINE: &str = "----\n";

fn files() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/plans");
    let mut files: Vec<PathBuf> =
        fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

#[test]
fn every_scenario_has_its_plan() {
    let write = env::var("PLANS").is_ok_and(|value| value == "write");
    let mut wrong = Vec::new();
    for file in files() {
        let text = fs::read_to_string(&file).unwrap();
        let name = file.file_name().unwrap().display().to_string();
        let (above, below) = text.split_once(LINE).unwrap_or((&text, ""));
        let found = Scenario::read(&name, above).outcome();
        if write && found != below {
            fs::write(&file, format!("{above}{LINE}{found}")).unwrap();
        } else if found != below {
            wrong.push(format!("{name}: expected\n{below}\nfound\n{found}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn there_are_enough_scenarios_and_each_says_what_it_shows() {
    let files = files();
    assert!(files.len() >= 60, "only {}", files.len());
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        assert!(text.starts_with("# "), "{} does not say what it shows", file.display());
        assert_eq!(text.matches(LINE).count(), 1, "{}", file.display());
    }
}
