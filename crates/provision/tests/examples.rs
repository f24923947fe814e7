//! The examples run, and print what they say.

use std::process::Command;

/// What an example prints. Cargo builds examples beside the folder of the tests.
fn output(example: &str) -> String {
    let test = std::env::current_exe().unwrap();
    let folder = test.parent().and_then(|deps| deps.parent()).unwrap();
    let output = Command::new(folder.join("examples").join(example)).output().unwrap();
    assert!(output.status.success(), "{example}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn three_nodes_are_started_in_memory() {
    insta::assert_snapshot!(output("start_three_nodes"));
}

#[test]
fn a_cloud_of_your_own_starts_as_many_machines_as_it_has() {
    insta::assert_snapshot!(output("own_cloud"));
}

#[test]
fn a_machine_that_somebody_terminated_is_found_by_the_reconcile_loop() {
    insta::assert_snapshot!(output("reconcile_loop"));
}
