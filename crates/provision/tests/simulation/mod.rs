//! The whole of it, in virtual time, thousands of times over.
//!
//! Each seed makes a cluster, a cloud with faults and a Slurm with troubles, and lets it live:
//! random jobs, throttling, refusals, lost requests and lost answers, late addresses, late
//! failures, listings that lag by up to a minute, in any order and not whole, answers that come when
//! nobody waits for them any more, a slurmctld that crashes or does not answer, calls that come
//! twice, nodes stopped while they start, machines that vanish, are switched off or taken back by the
//! cloud, machines that are kept warm and an image that changes, clocks that jump by hours, a state
//! directory that is lost, restored or read-only, two controllers at once, and processes killed at any
//! of their waits. Then the troubles end, and all has to come right without a hand.
//!
//! A seed that fails prints itself. It runs again, alone and exactly alike, and tells its life, with
//! `SIMULATION_SEED=<seed> cargo test -p provision --test it -- --exact simulation::seeds_01_of_16`.

mod calls;
mod check;
mod claims;
mod disk;
mod env;
mod happening;
mod judge;
mod kill;
mod line;
mod machines;
mod planted;
mod slips;
mod story;
mod trouble;
mod warm;
mod wire;
mod world;

use env::Wrap;
use std::ops::Range;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

fn honest() -> Wrap {
    Wrap { cloud: |cloud| Arc::new(cloud), state: |state, _| Box::new(state), fault: None }
}

/// Lives through one seed.
fn simulate(seed: u64, wrap: &Wrap) -> Result<(), String> {
    runtime().block_on(world::run(seed, wrap))
}

fn all(seeds: Range<u64>) {
    let only = std::env::var("SIMULATION_SEED").ok().and_then(|seed| seed.parse().ok());
    if let Some(seed) = only {
        println!("{}", trace(seed).join("\n"));
    }
    let seeds = only.map_or(seeds, |seed: u64| seed..seed + 1);
    let failed = seeds.filter_map(|seed| Some((seed, simulate(seed, &honest()).err()?)));
    let failed: Vec<String> = failed.map(|(seed, what)| format!("seed {seed}: {what}")).collect();
    let again = "cargo test -p provision --test it -- --exact simulation::seeds_01_of_16";
    let failed = failed.join("\n");
    assert!(failed.is_empty(), "{failed}\nagain: SIMULATION_SEED=<seed> {again}");
}

/// One life, line by line.
fn trace(seed: u64) -> Vec<String> {
    runtime().block_on(story::trace(seed, &honest()))
}

fn runtime() -> tokio::runtime::Runtime {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_time().start_paused(true).build().unwrap()
}

/// All seeds, those of a run without `SIMULATION_SEEDS=all`, and the tests that share them.
const ALL: u64 = 20_000;
const SOME: u64 = 2_000;
const TESTS: u64 = 16;

/// The seeds of one of the tests: all, as many as `SIMULATION_SEEDS` says, or some. Those begin at `SIMULATION_BASE`, and
/// without that elsewhere every day.
fn share(test: u64) -> Range<u64> {
    let variable = |name| std::env::var(name).unwrap_or_default();
    let today = || {
        let days = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() / 86_400;
        days % (ALL / SOME) * SOME
    };
    let (base, many) = match variable("SIMULATION_SEEDS").as_str() {
        "all" => (0, ALL),
        "" => (variable("SIMULATION_BASE").parse().unwrap_or_else(|_| today()), SOME),
        many => (variable("SIMULATION_BASE").parse().unwrap_or(0), many.parse().unwrap()),
    };
    base + many * test / TESTS..base + many * (test + 1) / TESTS
}

macro_rules! seeds {
    ($($name:ident: $test:expr,)+) => {$(
        #[test]
        fn $name() {
            all(share($test));
        }
    )+};
}

seeds! {
    seeds_01_of_16: 0,
    seeds_02_of_16: 1,
    seeds_03_of_16: 2,
    seeds_04_of_16: 3,
    seeds_05_of_16: 4,
    seeds_06_of_16: 5,
    seeds_07_of_16: 6,
    seeds_08_of_16: 7,
    seeds_09_of_16: 8,
    seeds_10_of_16: 9,
    seeds_11_of_16: 10,
    seeds_12_of_16: 11,
    seeds_13_of_16: 12,
    seeds_14_of_16: 13,
    seeds_15_of_16: 14,
    seeds_16_of_16: 15,
}

/// The same seed lives the same life.
#[test]
fn a_seed_reproduces_itself() {
    for seed in 0..20 {
        let first = trace(seed);
        assert!(!first.is_empty());
        assert_eq!(first, trace(seed), "seed {seed}");
    }
}
