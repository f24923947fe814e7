//! Any text is a log of events; lives, metrics, a timeline and costs follow from the lines that can be read.
#![no_main]

use history::cost::{self, Owner, Prices};
use history::timeline::{Selection, Timeline, terminal};
use history::{Event, Lives, Tally, metrics};
use libfuzzer_sys::fuzz_target;
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// Some time in 2026.
const NOW: u64 = 1_790_000_000_000;

static PRICES: LazyLock<Prices> = LazyLock::new(|| {
    Prices::read("prices.yaml", "currency: USD\nshapes: {a: 1, s: 0.5}\n").expect("prices")
});

fuzz_target!(|text: &str| {
    let events: Vec<Event> =
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let mut lives = Lives::of(&events);
    let timeline = Timeline::new(&lives, Vec::new(), &Selection::default(), NOW);
    timeline.to_svg("fuzz");
    terminal(&timeline, 80, &|_, text| text.to_owned());
    let machines = cost::machines(&lives, NOW, |_| 2, |_| None);
    let runs = cost::runs(&lives, NOW, |_| Owner::default());
    cost::attribute(&machines, &runs, &(0..NOW), &PRICES);
    let mut tally = Tally::default();
    events.iter().for_each(|event| tally.add(event));
    metrics(&tally, &BTreeMap::new());
    let ended = lives.take_ended().len();
    assert!(ended + lives.all_open().count() <= events.len());
});
