//! Opens a page of `timeline --html` in a real browser and compares what it costs to draw with the targets: page FILE [PNG]

#![expect(
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a tool that prints what it measured"
)]

use e2e::Browser;
use std::fs::{File, canonicalize, metadata};
use std::io::Write as _;
use std::process::{Command, ExitCode, Stdio};

/// The targets, in hundredths of a megabyte and in seconds of CPU.
const MEGABYTES: u64 = 500;
const SECONDS: f64 = 2.0;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let page = canonicalize(arguments.next().unwrap()).unwrap();
    let mut browser = Browser::start(1280, 800);
    let before = browser.cpu_seconds();
    browser.open(&page);
    browser.settle();
    let seconds = browser.cpu_seconds() - before;
    let drawn = browser.evaluate("timeline.drawn()");
    let megabytes = metadata(&page).unwrap().len() / 10_000;
    let shown = drawn["shown"].as_array().map_or(0, Vec::len);
    println!("page      {}.{:02} MB", megabytes / 100, megabytes % 100);
    println!("drawn in  {seconds:.2} s of CPU");
    println!("lanes     {shown}, {} of them in view with {} spans", drawn["lanes"], drawn["spans"]);
    println!("requests  {}", browser.requests().len());
    if let Some(png) = arguments.next() {
        let decoder = Command::new("base64")
            .arg("-d")
            .stdin(Stdio::piped())
            .stdout(File::create(png).unwrap())
            .spawn();
        let mut decoder = decoder.unwrap();
        decoder.stdin.take().unwrap().write_all(browser.screenshot().as_bytes()).unwrap();
        assert!(decoder.wait().unwrap().success());
    }
    let met = megabytes <= MEGABYTES && seconds <= SECONDS;
    println!("targets   5 MB and 2 s: {}", if met { "met" } else { "MISSED" });
    if met { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
