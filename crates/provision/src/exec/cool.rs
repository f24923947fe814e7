//! Pools that said no.

use super::engine::Engine;
use crate::cause::Cause;
use crate::cooldown::{Cooldown, Cooldowns, Gate};
use crate::site::Pool;
use crate::state::{EventKind, cooldowns};
use hostlist::NodeName;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// How long refusals of one pool are one: what is written for each waits for a disk.
const MOMENT: Duration = Duration::from_secs(5);

impl Engine<'_> {
    /// Closes a pool at once, for all nodes of this run and for other runs.
    pub(super) fn cool(&mut self, pool: &Pool, cause: Cause) {
        let (now, pause) = (self.tools.now(), self.site.policies.cooldown);
        let is_new = |known: &Cooldown| {
            let age = now.duration_since(known.opened);
            known.probed.is_none() && age.is_ok_and(|age| age < MOMENT)
        };
        if let Gate::Cooling(known) = self.cooldowns.gate(pool, now)
            && known.cause == cause
            && is_new(&known)
        {
            return;
        }
        self.change_cooldowns(|all| all.close(pool.clone(), cause, now, pause));
        let event = self.tools.event(EventKind::Cooling);
        self.tools.note(&event.because(format!("{pool}: {}", cause.words())));
    }

    /// Lets those of the nodes rest that failed by themselves, so that Slurm does not give the same ones to
    /// the next job: reconciliation keeps them away where there are others.
    pub(super) fn rest(&mut self, nodes: &BTreeSet<NodeName>) {
        let (now, pause) = (self.tools.now(), self.site.policies.cooldown);
        let cause = |node: &NodeName| Some(self.works.get(node)?.failure.as_ref()?.cause);
        let failed = nodes.iter().filter_map(|node| Some((node.clone(), cause(node)?)));
        let own: Vec<(NodeName, Cause)> = failed.filter(|(_, cause)| is_own(*cause)).collect();
        if own.is_empty() || pause.is_zero() {
            return;
        }
        self.change_cooldowns(|all| {
            for (node, cause) in &own {
                all.rest(node.clone(), *cause, now, pause);
            }
        });
    }

    /// Opens the pools that the node was trying: one of them has given it a machine.
    pub(super) fn opens_probes(&mut self, node: &NodeName) {
        for pool in self.probes_of(node) {
            self.change_cooldowns(|all| all.open(&pool));
        }
    }

    /// Lets others try the pools that the node was trying: it will not hear from them any more.
    pub(super) fn ends_probes(&mut self, node: &NodeName) {
        for pool in self.probes_of(node) {
            self.change_cooldowns(|all| all.end_probe(&pool));
        }
    }

    fn probes_of(&mut self, node: &NodeName) -> Vec<Pool> {
        let (own, others) =
            std::mem::take(&mut self.probing).into_iter().partition(|(_, prober)| prober == node);
        self.probing = others;
        let own: BTreeMap<Pool, NodeName> = own;
        own.into_keys().collect()
    }

    /// Changes the cool-downs here and where other runs see them.
    pub(super) fn change_cooldowns(&mut self, change: impl Fn(&mut Cooldowns)) {
        change(&mut self.cooldowns);
        if !cooldowns::change(self.tools.state, change) {
            self.passed.warnings.insert("the cool-downs could not be stored".to_owned());
        }
    }
}

/// True if another node may well come up where this one did not. What the cloud has for nobody at the moment
/// is no node's own, and what we refuse, reconciliation sees by itself.
fn is_own(cause: Cause) -> bool {
    match cause {
        Cause::Timeout | Cause::Conflict | Cause::Invalid | Cause::NotFound => true,
        Cause::Capacity
        | Cause::Quota
        | Cause::Throttled
        | Cause::Unavailable
        | Cause::Ambiguous
        | Cause::Unauthenticated
        | Cause::Forbidden
        | Cause::Protocol
        | Cause::Cooling
        | Cause::JobIncomplete
        | Cause::Refused
        | Cause::Slurm
        | Cause::Cancelled => false,
    }
}
