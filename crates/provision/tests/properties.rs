//! Whatever the world is like, plans are sound, the same twice, and touch nobody else's instances.

use crate::lint::lint;
use crate::random::Chance;
use cloud_core::InstanceId;
use hostlist::NodeName;
use proptest::prelude::*;
use provision::plan::{self, MachineStep, Notification, Plan, SlurmStep, Step};
use std::collections::BTreeSet;

/// Every planner's plan for this world and request.
fn plans(chance: &Chance, world: provision::World<'_>) -> Vec<Plan> {
    let nodes = chance.asked();
    let mut plans = vec![
        plan::start(&nodes, &chance.groups(), world),
        plan::stop(&nodes, world),
        plan::stop_now(&nodes, world),
        plan::stop_all(world),
        plan::failed(&nodes, world),
        plan::rebuild(&chance.targets(), chance.options(), world),
        plan::deploy(None, world),
        plan::deploy(Some(&nodes), world),
        plan::reconcile(&chance.sightings(), world).0,
    ];
    plans.extend(plan::rollout(&chance.rollout(), world));
    let document = crate::random::document();
    let groups = chance.groups_to_resize();
    plans.push(plan::resize(&chance.resize(&document, &groups), world));
    let cluster = chance.cluster();
    plans.extend(plan::finish(&chance.finish(&document, &cluster), world));
    plans
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn every_plan_is_sound_and_the_same_twice(chance in crate::random::chance()) {
        chance.look(|world| {
            let all = plans(&chance, world);
            prop_assert!(all.len() >= 10);
            prop_assert_eq!(&all, &plans(&chance, world));
            let ours: BTreeSet<&InstanceId> = chance.ours();
            let nobodys: BTreeSet<InstanceId> = chance.nobodys();
            for plan in &all {
                let violations = lint(plan, world);
                prop_assert!(violations.is_empty(), "{violations:?} in\n{plan}");
                for step in plan.steps() {
                    let mild = matches!(
                        step,
                        Step::Machine(MachineStep::Rebuild { .. } | MachineStep::Reboot { .. })
                    );
                    for id in step.instances() {
                        let named = nobodys.contains(id) && mild;
                        prop_assert!(ours.contains(id) || named, "{id} in\n{plan}");
                    }
                }
                prop_assert!(!plan.to_string().lines().any(|line| line.ends_with(' ')));
                serde_json::to_value(plan).unwrap();
            }
            Ok(())
        })?;
    }

    #[test]
    fn every_asked_node_has_an_outcome(chance in crate::random::chance()) {
        chance.look(|world| {
            let nodes = chance.asked();
            let named = |plan: &Plan| plan.steps().flat_map(Step::nodes).cloned().collect();
            for plan in [
                plan::start(&nodes, &chance.groups(), world),
                plan::stop(&nodes, world),
                plan::failed(&nodes, world),
            ] {
                let named: BTreeSet<_> = named(&plan);
                let asked: BTreeSet<_> = nodes.iter().cloned().collect();
                prop_assert_eq!(&named, &asked, "{}", plan);
            }
            Ok(())
        })?;
    }

    /// Two runs are needed before anything is ended, and complete listings.
    #[test]
    fn nothing_is_ended_at_first_sight(chance in crate::random::chance()) {
        chance.look(|world| {
            let (plan, seen) = plan::reconcile(&plan::Sightings::default(), world);
            let asleep = |node: &NodeName| {
                world.node(node).is_some_and(|known| known.state.is_powered_down())
                    && !world.is_busy(node)
            };
            for step in plan.steps() {
                let mild = match step.notification() {
                    Some(Notification::ReturnToService) => true,
                    Some(Notification::Drain { .. }) => step.nodes().iter().all(asleep),
                    _ => matches!(step, Step::Slurm(SlurmStep::SetAddress { .. })),
                };
                prop_assert!(mild, "{plan}");
            }
            if !world.fleet.is_complete() || world.slurm.is_none() {
                prop_assert!(plan.is_idle() && seen.is_empty());
            }
            Ok(())
        })?;
    }

    /// However often it was seen, and whatever became of its machine.
    #[test]
    fn reconciliation_does_nothing_to_a_node_that_slurm_reboots(chance in crate::random::chance()) {
        chance.look(|world| {
            let (plan, _) = plan::reconcile(&chance.sightings(), world);
            for node in plan.steps().flat_map(Step::nodes) {
                let known = world.node(node);
                let reboots = known.is_some_and(|known| known.state.is_reboot_issued());
                prop_assert!(!reboots, "{plan}");
            }
            Ok(())
        })?;
    }

    #[test]
    fn hosts_keep_every_other_byte_and_settle(old in proptest::collection::vec(any::<u8>(), 0..200), chance in crate::random::chance()) {
        chance.look(|world| {
            let machines = plan::machines(world);
            let Ok(new) = plan::hosts(&old, &machines, None) else {
                return Ok(());
            };
            prop_assert!(new.starts_with(&old));
            prop_assert_eq!(plan::hosts(&new, &machines, None), Ok(new.clone()));
            let without = plan::hosts(&new, &[], None).unwrap();
            prop_assert!(without == old || without.strip_suffix(b"\n") == Some(&old[..]));
            Ok(())
        })?;
    }
}
