//! Any text is a startnode.yaml, a limits.yaml, a shapes.yaml, a prices.yaml or a hosts file, or an error.
#![no_main]

use bins::config::Settings;
use history::cost::Prices;
use libfuzzer_sys::fuzz_target;
use slurmconf::{Limits, Shapes};

fuzz_target!(|text: &str| {
    let _ = Settings::read("startnode.yaml", text);
    let _ = Limits::read("limits.yaml", text);
    let _ = Prices::read("prices.yaml", text);
    if let Ok(hosts) = provision::plan::hosts(text.as_bytes(), &[], None) {
        assert_eq!(provision::plan::hosts(&hosts, &[], None).as_ref(), Ok(&hosts));
    }
    let _ = Shapes::default().read("shapes.yaml", text);
});
