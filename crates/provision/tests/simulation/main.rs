//! The whole of it, in virtual time, thousands of times over.

mod check;
mod env;
mod kill;
mod world;

use env::Wrap;
use std::ops::Range;

fn honest() -> Wrap {
    Wrap { cloud: |cloud| Box::new(cloud), slurm: |slurm| Box::new(slurm) }
}

fn simulate(seed: u64, wrap: &Wrap) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(world::run(seed, wrap))
}

fn all(seeds: Range<u64>) {
    let only = std::env::var("SIMULATION_SEED").ok().and_then(|seed| seed.parse().ok());
    let seeds = only.map_or(seeds, |seed: u64| seed..seed + 1);
    for seed in seeds {
        if let Err(what) = simulate(seed, &honest()) {
            panic!("seed {seed}: {what}\nagain: SIMULATION_SEED={seed} cargo test -p provision --test simulation");
        }
    }
}

#[test]
fn seeds_0() {
    all(0..2000);
}
