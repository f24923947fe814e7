//! A life, told line by line.

use crate::simulation::env::Wrap;
use crate::simulation::world::Sim;
use std::time::Duration;

/// A life, line by line: what was asked of the cloud, what programs noted, and how it ended.
pub(crate) async fn trace(seed: u64, wrap: &Wrap) -> Vec<String> {
    let mut sim = Sim::new(seed, wrap).await;
    sim.story = Some(Vec::new());
    sim.env.judge.seen().story = Some(Vec::new());
    let ended = sim.live().await;
    let asked = sim.env.cloud.history().into_iter();
    let told = sim.env.judge.seen().story.take().unwrap_or_default();
    let mut lines: Vec<(u64, String)> = asked
        .map(|event| (u64::try_from(event.at.as_millis()).unwrap(), format!("{event:?}")))
        .chain(told)
        .chain(sim.story.unwrap_or_default())
        .collect();
    lines.sort_by_key(|(at, _)| *at);
    lines.push((u64::MAX, format!("{ended:?}")));
    lines
        .into_iter()
        .map(|(at, line)| format!("{:.3} {line}", Duration::from_millis(at).as_secs_f64()))
        .collect()
}
