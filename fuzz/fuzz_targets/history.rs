//! Any text is a log of events; the lives of nodes follow from the lines that can be read.
#![no_main]

use history::{Event, Lives};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let events: Vec<Event> =
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let mut lives = Lives::of(&events);
    let ended = lives.take_ended().len();
    assert!(ended + lives.all_open().count() <= events.len());
});
