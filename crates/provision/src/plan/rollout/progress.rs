//! How far a rollout is, and when it is over.

use std::time::SystemTime;

/// How far a rollout is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RolloutProgress {
    /// Nodes that have the image and are in service.
    pub done: usize,
    /// Nodes that are being rebuilt, or are in the queue for it.
    pub under_way: usize,
    /// Nodes that did not come back, or not with the image.
    pub failed: usize,
    /// Nodes that are still to be begun.
    pub left: usize,
    /// Nodes that are not touched: powered down, held, on their way, or refused.
    pub apart: usize,
    /// True if failures have ended it.
    pub halted: bool,
    /// How many could be begun now.
    pub room: usize,
    /// Nothing is begun before that.
    pub pause: Option<SystemTime>,
    /// True if slurmctld or the cloud did not say how the nodes stand.
    pub blind: bool,
}

impl RolloutProgress {
    /// True if nothing more will happen; where no node was observed, no end is either.
    #[must_use]
    pub fn is_over(&self) -> bool {
        !self.blind && self.under_way == 0 && (self.left == 0 || self.halted)
    }

    /// True if nothing is left to remember. A node that failed is one that a timer would otherwise reboot for ever.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.is_over() && self.failed == 0
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Rollout, rollout_progress};
    use super::*;
    use crate::cooldown::Cooldowns;
    use crate::site::{Identity, Site};
    use crate::world::{Fleet, Roster, World};
    use cloud_core::ImageId;
    use slurmconf::Config;
    use std::collections::BTreeMap;

    #[test]
    fn a_moment_without_slurmctld_or_a_listing_is_not_the_end_of_a_rollout() {
        let config = Config::parse("NodeName=n[1-4]\nPartitionName=p Nodes=ALL\n").unwrap();
        let (site, conf) = (Site::new(Identity::cluster("c")), Roster::new(&config));
        let (cooldowns, none) = (Cooldowns::new(), BTreeMap::new());
        for (answers, complete) in [(true, true), (false, true), (true, false), (false, false)] {
            let fleet = Fleet::new(&site.identity, &conf, [], complete);
            let world = World {
                site: &site,
                conf: &conf,
                fleet: &fleet,
                slurm: answers.then_some(&none),
                jobs: None,
                cooldowns: &cooldowns,
                spending: None,
                now: SystemTime::UNIX_EPOCH,
            };
            let progress = rollout_progress(&Rollout::new(ImageId::new("new")), world).unwrap();
            assert_eq!((progress.left, progress.under_way), (0, 0), "{progress:?}");
            assert_eq!(progress.is_over(), answers && complete, "{answers} {complete}");
        }
        let left = RolloutProgress { left: 1, ..RolloutProgress::default() };
        assert!(!left.is_over());
    }

    #[test]
    fn a_rollout_that_halts_remembers_what_it_tried() {
        let done = RolloutProgress { done: 4, ..RolloutProgress::default() };
        assert!(done.is_done());
        assert!(!RolloutProgress { blind: true, ..done }.is_done(), "nothing was observed");
        let halted = RolloutProgress { left: 2, failed: 1, halted: true, ..done };
        let ended = RolloutProgress { failed: 1, ..done };
        for failed in [halted, ended] {
            assert!(failed.is_over() && !failed.is_done(), "{failed:?}");
        }
    }
}
