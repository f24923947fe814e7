//! Machines boot, register with slurmctld, and are missed.

use crate::simulation::world::Sim;
use cloud_core::{Instance, InstanceState};
use hostlist::NodeName;
use slurmctl::memory::Registration;
use std::collections::BTreeSet;
use tokio::time::Instant;

impl Sim {
    /// Machines that run register, and those that do not are missed. True if others are on their
    /// way, or have not been heard.
    pub(crate) fn machines(&mut self, all: &[Instance]) -> bool {
        let mut up = BTreeSet::new();
        let mut watched = false;
        for instance in all.iter().filter(|instance| self.env.owns(instance)) {
            watched |= match instance.state {
                InstanceState::Pending => true,
                InstanceState::Running => !self.registered.contains_key(instance.id.as_str()),
                InstanceState::Stopping
                | InstanceState::Terminating
                | InstanceState::Stopped
                | InstanceState::Terminated
                | InstanceState::Failed
                | InstanceState::Other(_) => false,
            };
            let running = instance.state == InstanceState::Running;
            let (Some(address), true) = (instance.address, running) else {
                continue;
            };
            let id = instance.id.as_str().to_owned();
            let boots = self.env.cloud.boots(&instance.id).unwrap_or(0);
            let node = NodeName::new(instance.tags.get("node").unwrap()).unwrap();
            up.insert(id.clone());
            if self.registered.get(&id).is_some_and(|(_, known)| *known == boots) {
                continue;
            }
            let now = Instant::now();
            let booted = *self.booted.entry((id.clone(), boots)).or_insert(now);
            match self.env.slurm.register(&node, &address.to_string(), booted) {
                Registration::Unheard => {}
                Registration::Accepted => {
                    self.known.insert(id.clone(), node.clone());
                    self.registered.insert(id, (node, boots));
                }
                Registration::OldBoot | Registration::StaysDown => {
                    self.registered.insert(id, (node, boots));
                }
            }
        }
        let gone: Vec<String> =
            self.registered.keys().filter(|id| !up.contains(*id)).cloned().collect();
        for id in gone {
            if let Some((node, _)) = self.registered.remove(&id)
                && !self.registered.values().any(|(other, _)| *other == node)
            {
                self.env.slurm.lost(&node);
            }
        }
        self.known.retain(|id, _| up.contains(id));
        self.env.judge.knows(self.known.clone());
        watched
    }
}
