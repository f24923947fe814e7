//! Nodes that are to go, unless Slurm wants them again.

use super::engine::Engine;
use super::failure::Failure;
use super::tell::Taken;
use super::tools::Tools;
use super::work::{Phase, Work};
use crate::cause::Cause;
use crate::plan::{Why, is_wanted_again};
use crate::report::Outcome;
use hostlist::NodeName;
use std::time::Duration;
use tokio::time::Instant;

/// How long Slurm's word counts that a node is to go.
const LAST_WORD: Duration = Duration::from_secs(2);

impl Work {
    /// True if Slurm has yet to say that it does not want the node again: while the cloud was slow
    /// to answer, the node may have come up, and run a job.
    pub(super) fn needs_word(&self) -> bool {
        let fresh = |at: Instant| Instant::now().saturating_duration_since(at) < LAST_WORD;
        self.confirms && !self.confirmed.is_some_and(fresh)
    }
}

impl Engine<'_> {
    /// Slurm has said whether it wants a node again that is to go.
    pub(super) fn confirmed(&mut self, node: &NodeName, wanted: bool) {
        let Some(work) = self.works.get_mut(node) else {
            return;
        };
        (work.unheard, work.confirmed) = (false, Some(Instant::now()));
        if wanted && matches!(work.phase, Phase::Remove { .. }) {
            let words = Why::WantedAgain.to_string();
            work.failure = Some(Failure::new(Cause::Conflict, words));
            work.goes(Phase::Over(Outcome::Nothing));
        }
    }

    /// Slurm does not say: what it wanted to go goes. What we found by ourselves stays until it does.
    pub(super) fn unconfirmed(&mut self, nodes: &[NodeName]) {
        for node in nodes {
            self.confirmed(node, false);
            let Some(work) = self.works.get_mut(node) else {
                continue;
            };
            work.confirms = false;
            if !work.sweeps && matches!(work.phase, Phase::Remove { .. }) {
                let words = "slurmctld does not say whether it wants it again";
                work.failure = Some(Failure::new(Cause::Slurm, words));
                work.goes(Phase::Over(Outcome::Failed));
            }
        }
    }
}

/// Those of the nodes that Slurm wants again.
pub(super) async fn wanted_again(tools: &Tools<'_>, nodes: &[NodeName]) -> slurmctl::Result<Taken> {
    let known = tools.slurm.nodes(Some(&nodes.iter().collect())).await?;
    let wanted = known.into_iter().filter(|node| is_wanted_again(&node.state));
    Ok(Taken { nodes: wanted.map(|node| node.name).collect(), ..Taken::default() })
}
