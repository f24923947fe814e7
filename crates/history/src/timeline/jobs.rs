//! Jobs of a timeline.

use super::NodeLane;
use crate::life::Life;
use std::collections::BTreeMap;

/// The bar of a job: it waits, then runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobBar {
    /// The job.
    pub id: u32,
    /// Its name and owner, if known.
    pub label: String,
    /// Time at which it started waiting for nodes, in milliseconds since 1970.
    pub waits: u64,
    /// Time at which it started running; none if it has not, or if unknown.
    pub runs: Option<u64>,
    /// Time of its end; none while it runs, or if unknown.
    pub ends: Option<u64>,
    /// Its nodes.
    pub nodes: Vec<String>,
    /// Its final state, as Slurm spells it.
    pub state: Option<String>,
}

/// The bars of the jobs in this period: from Slurm's accounting, or else from the log of events.
pub(super) fn bars(
    lanes: &[NodeLane<'_>],
    accounts: Vec<JobBar>,
    (from, to): (u64, u64),
    now: u64,
) -> Vec<JobBar> {
    let mut bars: BTreeMap<u32, JobBar> = BTreeMap::new();
    for lane in lanes {
        for life in &lane.lives {
            add_life(&mut bars, lane.node, life);
        }
    }
    let shown = |bar: &JobBar| bar.waits <= to && bar.ends.unwrap_or(now) >= from;
    let is_here = |bar: &JobBar| {
        bars.contains_key(&bar.id)
            || lanes.iter().any(|lane| bar.nodes.iter().any(|node| node == lane.node))
    };
    let accounts: Vec<JobBar> = accounts.into_iter().filter(|bar| is_here(bar)).collect();
    for bar in accounts {
        bars.insert(bar.id, bar);
    }
    let mut bars: Vec<JobBar> = bars.into_values().filter(shown).collect();
    bars.sort_by_key(|bar| (bar.waits, bar.id));
    bars
}

/// Derives a bar from the log. A job waits from the first request for one of its nodes, and runs while the log has it on a
/// node.
fn add_life(bars: &mut BTreeMap<u32, JobBar>, node: &str, life: &Life) {
    let mut bar = |job: u32, waits: u64| {
        let bar = bars.entry(job).or_insert_with(|| JobBar { id: job, waits, ..JobBar::default() });
        bar.waits = bar.waits.min(waits);
        if !bar.nodes.iter().any(|known| known == node) {
            bar.nodes.push(node.to_owned());
        }
    };
    for job in &life.jobs {
        bar(*job, life.begin());
    }
    for work in &life.work {
        work.jobs.iter().for_each(|job| bar(*job, work.from));
    }
    for work in &life.work {
        for job in &work.jobs {
            if let Some(bar) = bars.get_mut(job) {
                let first = bar.runs.is_none();
                bar.runs = Some(bar.runs.map_or(work.from, |runs| runs.min(work.from)));
                bar.ends = match (bar.ends, work.to) {
                    (Some(known), Some(to)) => Some(known.max(to)),
                    (None, to) if first => to,
                    (None, _) | (_, None) => None,
                };
            }
        }
    }
}
