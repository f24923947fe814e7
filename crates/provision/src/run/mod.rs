//! Runs: observe, plan, act, observe again, and report.
//!
//! [`execute()`], [`rebuild()`] and [`reconcile()`] lock their nodes, observe the cloud and Slurm once, plan, carry out the plan, and
//! repeat this for nodes that another process had locked. [`preview`] and its like observe and plan, and change nothing. The failure of one node is a line in the [`Report`] and never stops the others.

mod locks;
mod node_set;
mod observe;
mod pass;
mod rebuild;
mod reconcile;
mod remember;
mod reported;
mod request;
mod rollout;
mod start;
mod stop;
mod telemetry;

pub use observe::Observation;
pub(crate) use rebuild::notify_not_rebuilt;
pub use rebuild::{preview_rebuild, rebuild, rebuild_targets};
#[cfg(fuzzing)]
pub(crate) use reconcile::read as read_sightings;
pub use reconcile::{preview_reconcile, reconcile};
pub use reported::newly_reported;
pub use request::{RequestError, RunRequest, StopReason, execute, preview};

use crate::exec::LAST_ANSWERS;
use crate::report::Report;
use crate::site::Site;
use crate::state::EventKind;
use crate::tools::Tools;
use crate::world::Roster;
use std::time::Duration;
use tokio::time::Instant;

/// The input of every run: tools, site and slurm.conf.
#[derive(Clone, Debug)]
pub struct Run<'a> {
    /// The ports for effects.
    pub tools: Tools<'a>,
    /// The operator's policies.
    pub site: &'a Site,
    /// The nodes of slurm.conf.
    pub conf: &'a Roster<'a>,
}

impl Run<'_> {
    /// The deadline of the run, less a margin for the last responses.
    fn deadline(&self, begun: Instant) -> Instant {
        begun + usable(self.site.policies.deadline)
    }

    fn log_start(&self, what: &str) -> Instant {
        self.tools.note(&self.tools.event(EventKind::Begun).because(what));
        Instant::now()
    }

    fn log_end(&self, mut report: Report, begun: Instant) -> Report {
        report.took = Instant::now().saturating_duration_since(begun);
        let failed = report.nodes.values().filter(|node| !node.outcome.is_success()).count();
        let mut words =
            format!("{}: {} nodes, {failed} failed", report.operation, report.nodes.len());
        // Nodes that were not observed are not counted.
        for failure in &report.failures {
            words = format!("{words}; {failure}");
        }
        self.tools.note(&self.tools.event(EventKind::Ended).because(words));
        report
    }
}

/// The usable part of the time, less a margin. Most of a short time is usable, so that nodes can start at all.
fn usable(deadline: Duration) -> Duration {
    deadline.saturating_sub(LAST_ANSWERS.min(deadline / 3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_deadline_leaves_time_to_start_a_node() {
        let seconds = Duration::from_secs;
        assert_eq!(usable(seconds(300)), seconds(290));
        assert_eq!(usable(seconds(30)), seconds(20));
        assert_eq!(usable(seconds(9)), seconds(6));
    }
}
