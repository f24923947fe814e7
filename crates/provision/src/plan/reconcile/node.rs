//! One node compared.

use super::drain_full_pool::{Shut, in_hand};
use super::{Comparison, Found};
use crate::cause::Cause;
use crate::cooldown::Cooldown;
use crate::plan::reasons::{
    MISFIT, covered, is_drained_by_us, is_full, is_misfit, not_back, silent_cause,
};
use crate::plan::rebuild::configured;
use crate::plan::{
    FindingKind, Handling, MachineStep, Notification, SlurmStep, Step, Still, bring_up::ids, held,
    our_reason, stop::is_theirs, warm,
};
use crate::time::Utc;
use crate::world::Standing;
use cloud_core::{Instance, InstanceState};
use hostlist::NodeName;
use slurmctl::Node;
use std::net::IpAddr;
use std::time::Duration;

/// How long a node is left alone that did not come back from its rebuild.
const LEFT_BY_ROLLOUT: Duration = Duration::from_hours(24);

/// How long a node on its way up may be without a machine. A start at work holds its lock, and the node is left alone
/// then; but two controllers whose state directories are not shared do not see each other's locks, and the last of a
/// thousand launches, or an ambiguous one, takes minutes.
const STUCK: Duration = Duration::from_mins(5);

impl<'a> Comparison<'a> {
    pub(super) fn node(&mut self, node: &'a NodeName) {
        let world = self.world;
        let Standing { here, .. } = world.fleet.standing(node);
        let Some(def) = world.conf.get(node) else {
            self.not_in_conf(node, here);
            return;
        };
        // slurm.conf may be newer than slurmctld: that is reported elsewhere.
        let Some(known) = world.node(node) else {
            return;
        };
        if is_misfit(known) {
            let text = format!("{MISFIT}: {}", known.reason_text());
            self.report(Found { kind: FindingKind::Stuck, node, instances: here, text });
            return;
        }
        // Slurm waits for it, and says so itself if it does not come back.
        if known.state.is_reboot_requested() || known.state.is_reboot_issued() {
            return;
        }
        if def.is_cloud() && self.unfit(known, node, &here) {
            return;
        }
        if let Some(reason) = held(known) {
            self.report(Found { kind: FindingKind::Held, node, instances: here, text: reason });
            return;
        }
        if is_full(known) {
            self.kept_away(node, here);
            return;
        }
        if is_drained_by_us(known) {
            self.drained(known, node, here, def.is_cloud());
            return;
        }
        if let Some(reason) = covered(known) {
            let (instances, text) = (here.clone(), reason.to_owned());
            self.report(Found { kind: FindingKind::Held, node, instances, text });
        }
        if def.is_cloud() {
            self.elastic(known, node, here);
        } else {
            self.persistent(known, node, &here);
        }
    }

    /// A node that Slurm powers up and down.
    fn elastic(&mut self, known: &Node, node: &'a NodeName, here: Vec<&'a Instance>) {
        let state = &known.state;
        if state.is_powering_down() || state.is_power_down_requested() {
            return;
        }
        if here.iter().any(|instance| is_theirs(instance)) {
            if state.is_powered_down() && !state.is_powering_up() && !state.is_down() {
                self.make_way(known, node);
            }
            self.in_hand(node, here);
            return;
        }
        match (state.is_powered_down(), state.is_powering_up()) {
            (_, true) => self.powering_up(known, node, here),
            (true, false) if here.is_empty() => self.asleep(known, node),
            (true, false)
                if !state.is_down()
                    && here.iter().all(|one| warm::is_kept(node, one, self.world)) => {}
            (true, false) if here.iter().all(|one| warm::is_off(one)) => self.outdated(node, here),
            (true, false) => self.orphan(node, here, "running, but powered down in Slurm"),
            (false, false) => self.up(known, node, here),
        }
    }

    /// Stopped machines that no start of the node would use.
    fn outdated(&mut self, node: &'a NodeName, here: Vec<&'a Instance>) {
        let step = Step::Machine(MachineStep::Terminate { node: node.clone(), ids: ids(&here) });
        let text = "stopped, and not as a launch would make it now".to_owned();
        let found = Found { kind: FindingKind::Warm, node, instances: here, text };
        self.repair_if_seen(found, Duration::ZERO, step);
    }

    /// A node that slurm.conf does not have. What slurmctld still has may be in use all the same: the
    /// file may be newer, or was read at a bad moment, or the node was made without one.
    fn not_in_conf(&mut self, node: &'a NodeName, here: Vec<&'a Instance>) {
        let known = self.world.node(node);
        let asleep = known.is_none_or(|known| known.state.is_powered_down());
        if here.iter().any(|instance| is_theirs(instance)) {
            self.in_hand(node, here);
        } else if asleep && !self.world.is_busy(node) && !here.is_empty() {
            self.orphan(node, here, "running, but not in slurm.conf");
        } else {
            let text = "not in slurm.conf, and slurmctld has it".to_owned();
            self.report(Found { kind: FindingKind::Unapplied, node, instances: here, text });
        }
    }

    /// An instance that somebody rescues, or has paused or put on a shelf: theirs, and the node with
    /// it, until it is in a state that we know.
    pub(super) fn in_hand(&mut self, node: &'a NodeName, here: Vec<&'a Instance>) {
        let text = in_hand(&here).unwrap_or_default();
        self.report(Found { kind: FindingKind::Held, node, instances: here, text });
    }

    /// A node that slurmctld has yet to take up.
    pub(super) fn missing(&mut self, node: &'a NodeName) {
        let instances = self.world.fleet.standing(node).here;
        let text = "in slurm.conf, and slurmctld does not have it".to_owned();
        self.report(Found { kind: FindingKind::Unapplied, node, instances, text });
    }

    /// Drained by us: whoever did it holds the node's lock, or has died. It takes jobs again if it
    /// could run one, now or when it is started. An elastic node also does if its machine is gone or
    /// broken: then it is lost, and is returned to Slurm when it is seen again.
    fn drained(&mut self, known: &Node, node: &'a NodeName, here: Vec<&'a Instance>, cloud: bool) {
        let step = Step::notify([node.clone()], Notification::Undrain);
        let state = &known.state;
        let moves = state.is_powering_up() || state.is_powering_down();
        let well = match here[..] {
            [] => state.is_powered_down() || (cloud && !moves),
            [one] => (is_usable(one) && state.is_up()) || (cloud && !moves && !is_theirs(one)),
            _ => false,
        };
        let text = known.reason_text().to_owned();
        let found = Found { kind: FindingKind::Drained, node, instances: here, text };
        if well {
            self.repair_if_seen(found, Duration::ZERO, step);
        } else {
            self.report(found);
        }
    }

    fn orphan(&mut self, node: &'a NodeName, here: Vec<&'a Instance>, text: &str) {
        if here.is_empty() {
            return;
        }
        let step = Step::Machine(MachineStep::Terminate { node: node.clone(), ids: ids(&here) });
        let text = text.to_owned();
        let found = Found { kind: FindingKind::Orphan, node, instances: here, text };
        self.repair_if_seen(found, Duration::ZERO, step);
    }

    /// Powered down and without an instance: well, unless it is also down.
    fn asleep(&mut self, known: &Node, node: &'a NodeName) {
        if !known.state.is_down() {
            self.make_way(known, node);
            return;
        }
        let found = |kind, text| Found { kind, node, instances: Vec::new(), text };
        let step = Step::notify([node.clone()], Notification::ReturnToService);
        // A rest that was over before it was set down is an old one: somebody has resumed it since.
        let since = known.reason.as_ref().and_then(|reason| reason.at);
        let now = self.world.now;
        let is_of_now =
            |rest: &&Cooldown| rest.lasts(now) || since.is_none_or(|since| since <= rest.opened);
        match self.world.cooldowns.resting(node).filter(is_of_now) {
            Some(rest) if rest.lasts(now) => {
                let text = format!("until {}", Utc(rest.until));
                self.report(found(FindingKind::Resting, text));
            }
            Some(rest) => {
                self.repair(found(FindingKind::Rested, rest.cause.words().to_owned()), step);
            }
            // Whoever is called for it may not have come to it yet.
            None => {
                let text = known.reason_text().to_owned();
                self.repair_if_seen(found(FindingKind::Down, text), Duration::ZERO, step);
            }
        }
    }

    /// Keeps jobs away from a node that cannot be had for now, where they can have others.
    fn make_way(&mut self, known: &Node, node: &'a NodeName) {
        let Some(Shut { text, reason }) = self.full.get(node).cloned() else {
            return;
        };
        if known.state.has_drain() || self.world.is_busy(node) {
            return;
        }
        self.drains.entry(reason).or_default().push(node.clone());
        let found = Found { kind: FindingKind::Full, node, instances: Vec::new(), text };
        self.note(found, Handling::Repaired);
    }

    /// Drained because it could not be had: until it can, or until there is no other either.
    fn kept_away(&mut self, node: &'a NodeName, here: Vec<&'a Instance>) {
        let may_be_had = here.iter().any(|instance| !is_theirs(instance));
        if let Some(shut) = self.full.get(node).filter(|_| !may_be_had) {
            let text = shut.text.clone();
            self.report(Found { kind: FindingKind::Resting, node, instances: here, text });
        } else {
            let text = "may be had again".to_owned();
            let step = Step::notify([node.clone()], Notification::Undrain);
            self.repair(Found { kind: FindingKind::Rested, node, instances: here, text }, step);
        }
    }

    /// On its way up: a start is at work, or has died.
    fn powering_up(&mut self, known: &Node, node: &'a NodeName, here: Vec<&'a Instance>) {
        match here[..] {
            [one] if is_usable(one) => self.address(known, node, one),
            _ if usable(&here) > 1 => self.duplicate(node, here),
            _ => {
                self.lost(FindingKind::Stuck, node, here);
            }
        }
    }

    fn up(&mut self, known: &Node, node: &'a NodeName, here: Vec<&'a Instance>) {
        match usable(&here) {
            // Whoever answers is there, whatever became of its tags.
            0 if known.state.is_up() => {
                let text = "answers, and has no instance that works".to_owned();
                self.report(Found { kind: FindingKind::Ghost, node, instances: here, text });
            }
            0 => self.lost(FindingKind::Ghost, node, here),
            1 => {
                let (usable, broken): (Vec<_>, Vec<_>) =
                    here.into_iter().partition(|instance| is_usable(instance));
                if !broken.is_empty() {
                    self.broken(node, broken);
                } else if let [one] = usable[..] {
                    // Slurm may look for it where it is not.
                    if known.state.is_down() && !is_misplaced(known, one) {
                        self.silent(known, node, usable);
                        return;
                    }
                    self.address(known, node, one);
                    self.image(node, one);
                }
            }
            _ => self.duplicate(node, here),
        }
    }

    /// A node that will not come up: it is returned to Slurm, which calls our stop for what is left.
    fn lost(&mut self, kind: FindingKind, node: &'a NodeName, here: Vec<&'a Instance>) {
        let patience =
            if kind == FindingKind::Stuck { self.patience(node, &here) } else { Duration::ZERO };
        let text = match here[..] {
            [] => "no instance".to_owned(),
            [one, ..] => format!("its instance is {}", one.state),
        };
        let still = if kind == FindingKind::Ghost { Still::Silent } else { Still::Awaited };
        let (cause, reason) = (Cause::NotFound, our_reason(&text));
        let what = Notification::ReturnToSlurm { still, cause, reason };
        let step = Step::notify([node.clone()], what);
        self.repair_if_seen(Found { kind, node, instances: here, text }, patience, step);
    }

    /// How long a start may be at work on a node: what is to go before a launch takes its time, and after the deadline
    /// no start is at work. Without a machine, Slurm would give up before that, and the job wait in vain.
    fn patience(&self, node: &NodeName, here: &[&Instance]) -> Duration {
        let deadline = self.world.site.policies.deadline;
        let bare = here.is_empty() && self.world.fleet.standing(node).leaving.is_empty();
        if bare { STUCK.min(deadline) } else { deadline }
    }

    /// Down because it does not answer, with an instance that runs. One that did not come back from a
    /// rebuild is left for a day: the rollout counts it, and somebody may want to look at it.
    fn silent(&mut self, known: &Node, node: &'a NodeName, here: Vec<&'a Instance>) {
        let text = down(known);
        let found = Found { kind: FindingKind::Stuck, node, instances: here, text };
        let patience = if not_back(known) { LEFT_BY_ROLLOUT } else { Duration::ZERO };
        let (still, cause) = (Still::Awaited, silent_cause(known));
        let reason = our_reason(&found.text);
        let what = Notification::ReturnToSlurm { still, cause, reason };
        let step = Step::notify([node.clone()], what);
        self.repair_if_seen(found, patience, step);
    }

    fn broken(&mut self, node: &'a NodeName, broken: Vec<&'a Instance>) {
        let failed = broken.iter().all(|instance| instance.state == InstanceState::Failed);
        let step = Step::Machine(MachineStep::Terminate { node: node.clone(), ids: ids(&broken) });
        let text = "beside one that works".to_owned();
        let found = Found { kind: FindingKind::Broken, node, instances: broken, text };
        if failed {
            self.repair_if_seen(found, Duration::ZERO, step);
        } else {
            self.report(Found { kind: FindingKind::Duplicate, ..found });
        }
    }

    fn duplicate(&mut self, node: &'a NodeName, here: Vec<&'a Instance>) {
        let text = format!("{} instances", here.len());
        self.report(Found { kind: FindingKind::Duplicate, node, instances: here, text });
    }

    /// A persistent node: what is wrong with it is reported, and its address is corrected.
    fn persistent(&mut self, known: &Node, node: &'a NodeName, here: &[&'a Instance]) {
        match *here {
            // It may well be no machine of this cloud.
            [] if self.world.wanted(node).is_err() || self.world.fleet.named(node).is_some() => {}
            [one] if is_usable(one) => {
                if known.state.is_down() {
                    let text = down(known);
                    self.report(Found {
                        kind: FindingKind::Stuck,
                        node,
                        instances: vec![one],
                        text,
                    });
                }
                self.address(known, node, one);
                self.image(node, one);
            }
            [] | [_] => {
                let text = "no instance that works".to_owned();
                self.report(Found {
                    kind: FindingKind::Ghost,
                    node,
                    instances: here.to_vec(),
                    text,
                });
            }
            _ => self.duplicate(node, here.to_vec()),
        }
    }

    /// Slurm's address against the instance's. Where the node answers, Slurm knows better; a name
    /// for an address means that nobody has reported one yet, or that DNS does.
    fn address(&mut self, known: &Node, node: &'a NodeName, one: &'a Instance) {
        let Some(address) = one.address else {
            return;
        };
        if known.address.parse::<IpAddr>() == Ok(address) || known.state.is_up() {
            return;
        }
        let text = format!("{} in Slurm, {address} in the cloud", known.address);
        let found = Found { kind: FindingKind::WrongAddress, node, instances: vec![one], text };
        self.repair(found, Step::Slurm(SlurmStep::SetAddress { node: node.clone(), address }));
    }

    /// A node keeps its image until somebody rolls another out.
    fn image(&mut self, node: &'a NodeName, one: &'a Instance) {
        let (Ok(configured), Some(image)) = (configured(node, self.world), &one.image) else {
            return;
        };
        if *image != configured {
            let text = format!("{image}, configured is {configured}");
            self.report(Found { kind: FindingKind::WrongImage, node, instances: vec![one], text });
        }
    }
}

fn down(known: &Node) -> String {
    let reason = known.reason_text();
    if reason.is_empty() { "down".to_owned() } else { format!("down, {reason}") }
}

/// True if Slurm has another address than the instance.
fn is_misplaced(known: &Node, one: &Instance) -> bool {
    let reported = known.address.parse::<IpAddr>().ok();
    reported.zip(one.address).is_some_and(|(reported, address)| reported != address)
}

/// True if the instance could be the node, now or soon.
fn is_usable(instance: &Instance) -> bool {
    match instance.state {
        InstanceState::Pending | InstanceState::Running | InstanceState::Other(_) => true,
        InstanceState::Stopping
        | InstanceState::Stopped
        | InstanceState::Terminating
        | InstanceState::Terminated
        | InstanceState::Failed => false,
    }
}

fn usable(instances: &[&Instance]) -> usize {
    instances.iter().filter(|instance| is_usable(instance)).count()
}
