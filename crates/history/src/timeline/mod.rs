//! Timelines: one lane per node, jobs above, refused launches as marks.

mod html;
mod jobs;
mod percentiles;
mod svg;
mod terminal;
mod time_format;

pub use jobs::JobBar;
pub use percentiles::{PhaseTimes, phase_times};
pub(crate) use percentiles::{ended_phases, start_of};
pub use terminal::terminal;

use crate::life::Life;
use crate::lives::{Cooling, Lives};
use crate::phase::Phase;
use std::collections::BTreeMap;

/// The selection that a timeline shows.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// The start, in milliseconds since 1970; by default, the first event.
    pub since: Option<u64>,
    /// The end; by default, now.
    pub until: Option<u64>,
    /// The nodes; by default, all.
    pub nodes: Vec<String>,
}

/// The lives of one node.
#[derive(Clone, Debug)]
pub struct NodeLane<'l> {
    /// The node.
    pub node: &'l str,
    /// Its lives, in order.
    pub lives: Vec<&'l Life>,
}

/// The data of a timeline.
#[derive(Clone, Debug)]
pub struct Timeline<'l> {
    /// The start, in milliseconds since 1970.
    pub from: u64,
    /// Its end.
    pub to: u64,
    /// The current time, until which open lives last.
    pub now: u64,
    /// The nodes, by name and number.
    pub lanes: Vec<NodeLane<'l>>,
    /// The jobs, ordered by the time at which they started waiting.
    pub jobs: Vec<JobBar>,
    /// Pools that cooled down.
    pub coolings: Vec<&'l Cooling>,
}

impl<'l> Timeline<'l> {
    /// Selects a part of the lives. `accounts` are the jobs in Slurm's accounting; other jobs come from the lives.
    #[must_use]
    pub fn new(lives: &'l Lives, accounts: Vec<JobBar>, selection: &Selection, now: u64) -> Self {
        let to = selection.until.unwrap_or(now);
        let first = lives.lives.iter().map(Life::begin).min();
        let from = selection.since.or(first).unwrap_or(to).min(to);
        let is_wanted = |node: &str| {
            selection.nodes.is_empty() || selection.nodes.iter().any(|wanted| wanted == node)
        };
        let mut lanes: BTreeMap<(&str, u64, &str), NodeLane<'l>> = BTreeMap::new();
        for life in &lives.lives {
            let end = life.end.as_ref().map_or(now, |end| end.at);
            let Some(node) = life.node.as_deref().filter(|node| is_wanted(node)) else { continue };
            if end >= from && life.begin() <= to {
                let lane = lanes.entry(by_number(node));
                lane.or_insert_with(|| NodeLane { node, lives: Vec::new() }).lives.push(life);
            }
        }
        let lanes: Vec<NodeLane<'l>> = lanes.into_values().collect();
        let jobs = jobs::bars(&lanes, accounts, (from, to), now);
        let in_time = |cooling: &&Cooling| (from..=to).contains(&cooling.at);
        let coolings = lives.coolings.iter().filter(in_time).collect();
        Self { from, to, now, lanes, jobs, coolings }
    }

    /// Renders a self-contained HTML page.
    #[must_use]
    pub fn to_html(&self, title: &str) -> String {
        html::page(self, title)
    }

    /// Renders an SVG image.
    #[must_use]
    pub fn to_svg(&self, title: &str) -> String {
        svg::picture(self, title)
    }

    /// All lives that are shown.
    pub fn lives(&self) -> impl Iterator<Item = &'l Life> {
        self.lanes.iter().flat_map(|lane| lane.lives.iter().copied())
    }
}

/// A sort key that puts `n2` before `n10`.
fn by_number(node: &str) -> (&str, u64, &str) {
    let prefix = node.trim_end_matches(|c: char| c.is_ascii_digit());
    let number = node.strip_prefix(prefix).and_then(|digits| digits.parse().ok());
    (prefix, number.unwrap_or_default(), node)
}

impl Phase {
    /// The colour of the phase: Okabe and Ito's palette, which is safe for colour blindness, with grey for idle time.
    #[must_use]
    pub fn colour(self) -> &'static str {
        match self {
            Self::Asked => "#f0e442",
            Self::Launched => "#e69f00",
            Self::Running => "#cc79a7",
            Self::Booting => "#56b4e9",
            Self::Busy => "#009e73",
            Self::Idle => "#c9d1d9",
        }
    }

    /// A short description of the phase.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Asked => "asked for, not accepted yet",
            Self::Launched => "accepted, the cloud makes the machine",
            Self::Running => "machine runs, Slurm has no address yet",
            Self::Booting => "Slurm has the address, slurmd not registered",
            Self::Busy => "runs jobs",
            Self::Idle => "registered, no job",
        }
    }
}

/// The colour of refusals and failures.
const RED: &str = "#d55e00";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_are_in_the_order_of_their_numbers() {
        let mut names = ["b1", "a10", "a2", "a02", "a"];
        names.sort_by_key(|name| by_number(name));
        assert_eq!(names, ["a", "a02", "a2", "a10", "b1"]);
    }
}
