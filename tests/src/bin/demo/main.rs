//! The main job, live: jobs come, machines come, the cloud has no room, a new image is rolled out, idle machines go.
//!
//! `./demo` of the workspace builds and runs it.

#![expect(
    clippy::print_stdout,
    reason = "a program that shows something, and has nobody to give errors to"
)]

mod aws;
mod loopback;
mod openstack;
mod screen;
mod show;

use e2e::{directory, inside};
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let keep = arguments.iter().any(|argument| argument == "--keep");
    if directory().is_some() {
        e2e::enter();
        let is_given = |name: &str| arguments.iter().any(|argument| argument == name);
        if is_given("--openstack") {
            openstack::run(keep);
        } else if is_given("--aws") {
            aws::run(keep);
        } else {
            loopback::run(keep);
        }
        return ExitCode::SUCCESS;
    }
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let status = inside(&arguments);
    match status.code() {
        Some(0) => ExitCode::SUCCESS,
        Some(code) => ExitCode::from(u8::try_from(code).unwrap_or(1)),
        None => ExitCode::FAILURE,
    }
}
