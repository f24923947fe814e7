//! Any text is a startnode.yaml, a limits.yaml or a shapes.yaml, or an error.
#![no_main]

use bins::config::Settings;
use libfuzzer_sys::fuzz_target;
use slurmconf::{Limits, Shapes};

fuzz_target!(|text: &str| {
    let _ = Settings::read("startnode.yaml", text);
    let _ = Limits::read("limits.yaml", text);
    let _ = Shapes::default().read("shapes.yaml", text);
});
