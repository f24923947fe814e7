//! `scontrol update` of a node.

use super::{
    node::{NodeRecord, Power, Reboot, Seconds},
    world::{World, unknown_node},
};
use crate::{
    Error, ErrorKind, NodeAction, Reason,
    update::{Update, refuse_all},
};
use hostlist::{Hostlist, NodeName};
use slurmconf::SlurmVersion;

impl World {
    /// Changes each known node, as [`Scontrol`](crate::Scontrol) does by repeating the call without unknown names.
    pub(super) fn set_state(
        &mut self,
        nodes: &Hostlist,
        to: NodeAction,
        reason: Option<&Reason>,
        now: Seconds,
    ) -> Result<(), Error> {
        refuse_all(nodes)?;
        let tried = format!("scontrol update nodename={nodes} state={to}");
        if reason.is_none() && matches!(to, NodeAction::Down | NodeAction::Drain) {
            return Err(Error::new(ErrorKind::Refused, tried).because("You must specify a reason"));
        }
        let (mut refused, mut unknown) = (false, false);
        for name in nodes {
            let Some(node) = self.node(&name) else {
                unknown = true;
                continue;
            };
            if let Some(reason) = reason {
                node.set_reason(reason.as_str(), now);
            }
            refused |= !allowed(node, to);
            if allowed(node, to) {
                let name = node.name().clone();
                self.notify_watcher(&name, to);
                self.change(&name, to, now);
            }
        }
        self.dirty = true;
        if unknown {
            return Err(unknown_node(&tried));
        }
        if refused {
            return Err(Error::new(ErrorKind::Refused, tried)
                .because("Invalid node state transition requested"));
        }
        Ok(())
    }

    /// Sets the addresses and ids of each known node.
    pub(super) fn set_addresses(&mut self, update: &Update<'_>, tried: &str) -> Result<(), Error> {
        let (batch, places, ids) = match update {
            Update::Addresses { batch, ids } => (&batch[..], true, *ids),
            Update::Ids(items) => (&items[..], false, true),
            Update::State { .. } | Update::Reboot { .. } | Update::Topology { .. } => {
                (&[][..], false, false)
            }
        };
        let mut unknown = false;
        for item in batch {
            let Some(node) = self.node(item.node.as_str()) else {
                unknown = true;
                continue;
            };
            if places {
                node.address = item.address.to_string();
                // slurmctld can reach it now.
                if node.is_reached() && node.missed.take().is_some() {
                    node.not_responding &= node.lost.is_some();
                }
            }
            if let Some(hostname) = item.hostname.as_ref().filter(|_| places) {
                node.hostname = hostname.to_string();
            }
            if places && item.comment.is_some() {
                node.comment.clone_from(&item.comment);
            }
            if ids {
                node.instance_id.clone_from(&item.instance_id);
            }
        }
        self.dirty = true;
        if unknown { Err(unknown_node(tried)) } else { Ok(()) }
    }

    /// Moves nodes in the topology; releases before 25.05 cannot.
    pub(super) fn set_topology(&mut self, nodes: &Hostlist, place: &str) -> Result<(), Error> {
        let tried = "scontrol update topology";
        if !self.settings.version.moves_nodes_in_topologies() {
            return Err(Error::new(ErrorKind::Refused, tried).because("invalid option: topology"));
        }
        let mut unknown = false;
        for name in nodes {
            match self.node(&name) {
                Some(node) => node.topology = Some(place.to_owned()),
                None => unknown = true,
            }
        }
        if unknown { Err(unknown_node(tried)) } else { Ok(()) }
    }

    fn change(&mut self, name: &NodeName, to: NodeAction, now: Seconds) {
        let resets = self.settings.version.resets_addresses();
        let keeps_reason = self.settings.keeps_reasons();
        let asks_again = self.settings.version < SlurmVersion::new(26, 5);
        let Some(node) = self.node(name.as_str()) else { return };
        let kills = match to {
            NodeAction::PowerDownForce => power_down(node, true),
            NodeAction::PowerDown => power_down(node, false),
            NodeAction::PowerDownAsap => {
                node.drain = true;
                node.reason.get_or_insert_with(|| ("POWER_DOWN_ASAP".to_owned(), now));
                power_down(node, false)
            }
            NodeAction::PowerUp => {
                power_up(node);
                false
            }
            NodeAction::Down => {
                node.down = true;
                true
            }
            NodeAction::Drain => {
                node.drain = true;
                // A job that waits for the node to boot is requeued.
                matches!(node.power, Power::ComingUp { .. } | Power::Down)
            }
            NodeAction::Undrain | NodeAction::Resume => {
                node.drain = false;
                if to == NodeAction::Resume {
                    resume(node, resets, now);
                }
                return_to_service(node, keeps_reason, asks_again);
                false
            }
        };
        if kills {
            self.kill_jobs(name, now);
        }
    }
}

/// False for a resume of a node that is neither down, drained nor powering down, which Slurm refuses.
fn allowed(node: &NodeRecord, to: NodeAction) -> bool {
    let going = matches!(node.power, Power::GoingDown { .. });
    to != NodeAction::Resume
        || going
        || node.down
        || node.drain
        || node.reboot == Some(Reboot::Requested)
}

/// Requests a power-down; true if jobs are requeued.
fn power_down(node: &mut NodeRecord, force: bool) -> bool {
    if node.reboot.take().is_some() {
        node.down = false;
        node.reason = None;
    }
    match node.power {
        Power::GoingDown { .. } => return false,
        // `SuspendProgram` runs again.
        Power::Down if node.jobs.is_empty() || force => node.power = Power::Up,
        Power::ComingUp { .. } if force || node.down => node.power = Power::Up,
        Power::ComingUp { .. } | Power::Down | Power::Up => {}
    }
    node.wants_down = true;
    force
}

fn power_up(node: &mut NodeRecord) {
    match node.power {
        // `ResumeProgram` runs again.
        Power::ComingUp { .. } => {
            node.power = Power::Down;
            node.wants_up = true;
        }
        Power::Down => node.wants_up = true,
        Power::Up | Power::GoingDown { .. } => {}
    }
}

/// Clears what a return to service clears in this release.
fn return_to_service(node: &mut NodeRecord, keeps_reason: bool, asks_again: bool) {
    if !keeps_reason && !node.down && !node.drain {
        node.reason = None;
    }
    // The node has to register again.
    node.not_responding |= asks_again && node.power != Power::Up;
}

fn resume(node: &mut NodeRecord, resets_address: bool, now: Seconds) {
    node.reboot = None;
    if matches!(node.power, Power::GoingDown { .. }) {
        node.switch_off(resets_address);
    }
    if node.down {
        node.down = false;
        node.last_busy = (node.power != Power::Down).then_some(now);
    }
}
