//! The whole of it, in virtual time, thousands of times over.
//!
//! Each seed makes a cluster, a cloud with faults and a Slurm with troubles, and lets it live:
//! random jobs, throttling, refusals, lost requests and lost answers, late addresses, late
//! failures, listings that lag and flap, a slurmctld that crashes or does not answer, calls that
//! come twice, nodes stopped while they start, machines that vanish or are switched off, a state
//! directory that is lost, and processes killed at any of their waits. Then the troubles end, and
//! all has to come right without a hand.
//!
//! A seed that fails prints itself. It runs again, alone and exactly alike, and tells its life, with
//! `SIMULATION_SEED=<seed> cargo test -p provision --test it -- --exact simulation::seeds_from_0`.

mod check;
mod env;
mod happening;
mod judge;
mod kill;
mod line;
mod planted;
mod slips;
mod wire;
mod world;

use env::Wrap;
use std::ops::Range;
use std::sync::Arc;

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
    for seed in seeds {
        if let Err(what) = simulate(seed, &honest()) {
            let again = "cargo test -p provision --test it -- --exact simulation::seeds_from_0";
            panic!("seed {seed}: {what}\nagain: SIMULATION_SEED={seed} {again}");
        }
    }
}

/// One life, line by line.
fn trace(seed: u64) -> Vec<String> {
    runtime().block_on(world::trace(seed, &honest()))
}

fn runtime() -> tokio::runtime::Runtime {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_time().start_paused(true).build().unwrap()
}

macro_rules! seeds {
    ($($name:ident: $seeds:expr,)+) => {$(
        #[test]
        fn $name() {
            all($seeds);
        }
    )+};
}

seeds! {
    seeds_from_0: 0..1_250,
    seeds_from_1250: 1_250..2_500,
    seeds_from_2500: 2_500..3_750,
    seeds_from_3750: 3_750..5_000,
    seeds_from_5000: 5_000..6_250,
    seeds_from_6250: 6_250..7_500,
    seeds_from_7500: 7_500..8_750,
    seeds_from_8750: 8_750..10_000,
    seeds_from_10000: 10_000..11_250,
    seeds_from_11250: 11_250..12_500,
    seeds_from_12500: 12_500..13_750,
    seeds_from_13750: 13_750..15_000,
    seeds_from_15000: 15_000..16_250,
    seeds_from_16250: 16_250..17_500,
    seeds_from_17500: 17_500..18_750,
    seeds_from_18750: 18_750..20_000,
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
