//! Machines that have failed their health check, or that the cloud takes away: drained, and replaced when no job runs.

use super::{Comparison, Found};
use crate::plan::reasons::{
    failed_check, is_for_replacement, replacement_cause, replacement_reason,
};
use crate::plan::{FindingKind, Handling, Notification, ReportStep, Step, Still, stop::is_theirs};
use crate::site::{Place, Pool};
use cloud_core::Instance;
use hostlist::NodeName;
use slurmctl::{Node, Reason};
use std::collections::BTreeSet;
use std::time::Duration;

/// A place that has yielded two bad machines within this time is avoided.
const BAD: Duration = Duration::from_hours(24);

impl<'a> Comparison<'a> {
    /// Drains a node whose machine has failed its check, and lets Slurm replace the machine of one that is drained for
    /// that; false for any other node.
    pub(super) fn unfit(
        &mut self,
        known: &Node,
        node: &'a NodeName,
        here: &[&'a Instance],
    ) -> bool {
        let replaces = is_for_replacement(known);
        let failed = failed_check(known, &self.world.site.policies.health_reasons);
        // Whoever maintains the node, or has its machine in hand, is not done yet.
        if !(replaces || failed.is_some()) || known.state.is_in_maintenance() {
            return false;
        }
        if here.iter().any(|instance| is_theirs(instance)) {
            self.in_hand(node, here.to_vec());
            return true;
        }
        let Some(why) = failed.filter(|_| !replaces) else {
            self.replace(known, node, here);
            return true;
        };
        let (seen, why) = (why.to_owned(), if why.is_empty() { "failed" } else { why });
        let reason = replacement_reason(&format!("failed its health check: {why}"));
        let text = why.to_owned();
        let found = Found { kind: FindingKind::Unfit, node, instances: here.to_vec(), text };
        self.repair(found, Step::notify([node.clone()], Notification::Condemn { seen, reason }));
        if let [one] = here {
            self.note_bad(node, one);
        }
        true
    }

    /// Drained until its machine is replaced: as soon as no job runs there, Slurm is told that the machine is off.
    fn replace(&mut self, known: &Node, node: &'a NodeName, here: &[&'a Instance]) {
        let state = &known.state;
        let text = known.reason_text().to_owned();
        let found = Found { kind: FindingKind::Unfit, node, instances: here.to_vec(), text };
        if state.is_powering_down() || state.is_power_down_requested() {
            return;
        }
        if state.is_powered_down() && !state.is_powering_up() {
            // What is left of the machine is found when the node is as any other.
            let step = Step::notify([node.clone()], Notification::Undrain);
            return self.repair(found, step);
        }
        if self.world.is_busy(node) {
            return self.note(found, Handling::Watched);
        }
        let (cause, reason) = (replacement_cause(known), Reason::new(&found.text));
        let what = Notification::ReturnToSlurm { still: Still::Condemned, cause, reason };
        self.repair(found, Step::notify([node.clone()], what));
    }

    /// Remembers where the bad machine came from; the second such place in a day is avoided for a time.
    fn note_bad(&mut self, node: &NodeName, instance: &Instance) {
        let world = self.world;
        let Some(pool) = self.pool_of(node, instance) else {
            return;
        };
        let earlier = self.bad.get(&pool).copied().or_else(|| world.cooldowns.last_bad(&pool));
        let again =
            earlier.is_some_and(|at| world.now.duration_since(at).unwrap_or_default() < BAD);
        self.bad.insert(pool.clone(), world.now);
        let until = world.now.checked_add(world.site.policies.cooldown).filter(|_| again);
        self.notes.push(Step::Report(ReportStep::NoteBad { node: node.clone(), pool, until }));
    }

    /// The pool of the node's places that the instance is from; none if that cannot be said.
    fn pool_of(&self, node: &NodeName, instance: &Instance) -> Option<Pool> {
        let places = self.world.site.places(self.world.conf.get(node)?)?;
        let fitting = places.iter().filter(|place| may_be_from(place, instance));
        let pools: BTreeSet<Pool> = fitting.map(Place::pool).collect();
        let mut pools = pools.into_iter();
        pools.next().filter(|_| pools.next().is_none())
    }
}

/// True if a launch in the place makes such instances, as far as the cloud shows what they are.
fn may_be_from(place: &Place, instance: &Instance) -> bool {
    let shape = instance.shape.as_ref().is_none_or(|shape| is_shape_of(place, shape.as_str()));
    let zone = place.zone.is_none() || place.zone == instance.zone;
    shape && zone && place.preemptible == instance.preemptible
}

/// True if the shape is the place's. The cloud shows a flexible shape without its size.
fn is_shape_of(place: &Place, shape: &str) -> bool {
    let size = place.shape.as_str().strip_prefix(shape);
    let flexible = || shape.to_ascii_lowercase().ends_with(".flex");
    size.is_some_and(|size| size.is_empty() || (size.starts_with('.') && flexible()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use cloud_core::{InstanceId, InstanceName, InstanceState, ShapeName, Zone};

    #[test]
    fn a_machine_is_from_the_place_with_its_whole_shape_zone_and_kind() {
        let place = |shape: &str, preemptible| Place {
            shape: ShapeName::new(shape),
            zone: Some(Zone::new("AD-1")),
            subnet: None,
            preemptible,
            patience: None,
        };
        let machine = |shape: Option<&str>, zone: &str, preemptible| {
            let (id, name) = (InstanceId::new("i-1"), InstanceName::new("n1"));
            let mut machine = Instance::new(id, name, InstanceState::Running);
            machine.shape = shape.map(ShapeName::new);
            (machine.zone, machine.preemptible) = (Some(Zone::new(zone)), preemptible);
            machine
        };
        let one = machine(Some("VM.Standard2.1"), "AD-1", false);
        assert!(may_be_from(&place("VM.Standard2.1", false), &one));
        assert!(!may_be_from(&place("VM.Standard2.16", false), &one));
        assert!(!may_be_from(&place("VM.Standard2.1", true), &one));
        assert!(!may_be_from(&place("VM.Standard2.1", false), &machine(None, "AD-2", false)));
        assert!(may_be_from(&place("VM.Standard2.1", true), &machine(None, "AD-1", true)));
        let flexible = machine(Some("VM.Standard.E4.Flex"), "AD-1", false);
        assert!(may_be_from(&place("VM.Standard.E4.Flex.16.256", false), &flexible));
        assert!(!may_be_from(&place("VM.Standard.E4.Flexible.1", false), &flexible));
    }
}
