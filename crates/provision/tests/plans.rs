//! Printed plans. Each `tests/plans/*.txt` is a chapter of scenarios, each of them a world and a request;
//! the snapshot beside it repeats them with their plans, to be read on its own.
//!
//! After a change, `cargo insta review` shows what is different; without it,
//! `INSTA_UPDATE=always cargo test -p provision --test it plans::` and `git diff`.

use crate::scenario::Scenario;
use std::{fs, path::Path};

/// The scenarios of a chapter: name, and world and request.
fn scenarios(chapter: &str) -> Vec<(&str, &str)> {
    let scenarios = chapter.split("## ").filter(|scenario| !scenario.is_empty());
    scenarios.filter_map(|scenario| scenario.trim_end().split_once('\n')).collect()
}

/// Every chapter: its name and its text.
fn chapters() -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/plans");
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let chapters = files.filter(|path| path.extension().is_some_and(|kind| kind == "txt"));
    chapters
        .map(|path| {
            let name = path.file_stem().unwrap().display().to_string();
            (name, fs::read_to_string(&path).unwrap())
        })
        .collect()
}

#[test]
fn every_scenario_has_its_plan() {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("plans");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    for (chapter, text) in chapters() {
        let plans: Vec<String> = scenarios(&text)
            .into_iter()
            .map(|(name, above)| {
                let plan = Scenario::read(name, above).outcome();
                format!("## {name}\n{above}\n----\n{}", plan.trim_end())
            })
            .collect();
        settings.bind(|| insta::assert_snapshot!(chapter, plans.join("\n\n")));
    }
}

#[test]
fn there_are_enough_scenarios_and_each_says_what_it_shows() {
    let chapters = chapters();
    let scenarios: Vec<_> = chapters.iter().flat_map(|(_, text)| scenarios(text)).collect();
    assert!(scenarios.len() >= 241, "only {}", scenarios.len());
    for (name, text) in scenarios {
        assert!(text.starts_with("# "), "{name} does not say what it shows");
    }
}
