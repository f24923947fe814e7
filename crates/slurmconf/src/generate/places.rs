//! The places of a group: each has to be as large as the node's line says.

use crate::error::{Problem, Result};
use crate::limits::Group;
use crate::model::GresList;
use crate::shapes::{MemoryPolicy, NodeShape, Shapes};
use std::collections::BTreeMap;

/// Checks that a machine in each place has all that the node's line promises: Slurm drains a node that has less.
pub(super) fn check(
    group: &Group,
    own: &NodeShape,
    (shapes, memory): (&Shapes, MemoryPolicy),
) -> Result<()> {
    let promised = Size::of(&group.shape, own, group.gres.as_deref(), memory);
    let known = Size::of(&group.shape, own, None, memory);
    for name in group.places.iter().filter_map(|place| place.shape.as_ref()) {
        let Some(shape) = shapes.get(name) else {
            let near = shapes.nearest(name);
            return Err(group.error(Problem::UnknownShape { name: name.clone(), near }));
        };
        let offered = Size::of(name, &shape, None, memory);
        if let Some(lack) = offered.lack(&promised, &known) {
            let (group_name, place) = (group.name.clone(), name.clone());
            return Err(group.error(Problem::SmallPlace { group: group_name, place, lack }));
        }
    }
    Ok(())
}

/// What Slurm compares when a node registers.
struct Size {
    cpus: u64,
    memory: u64,
    gres: BTreeMap<String, u64>,
}

impl Size {
    fn of(name: &str, shape: &NodeShape, gres: Option<&str>, memory: MemoryPolicy) -> Self {
        let parts = [shape.sockets, shape.cores_per_socket, shape.threads_per_core];
        let mut counts = BTreeMap::new();
        for gres in GresList::from(gres.unwrap_or(&shape.gres)).iter() {
            *counts.entry(gres.name.to_owned()).or_default() += gres.count;
        }
        let cpus = parts.into_iter().map(u64::from).product();
        Self { cpus, memory: memory.real_memory(name, shape), gres: counts }
    }

    /// What there is less of than promised, if anything. Not every cloud reports the GPUs of its shapes: where it does not for
    /// the node's own, as far as is `known`, it may not for this one.
    fn lack(&self, promised: &Self, known: &Self) -> Option<String> {
        if self.cpus < promised.cpus {
            return Some(format!("{} CPUs instead of {}", self.cpus, promised.cpus));
        }
        if self.memory < promised.memory {
            return Some(format!("{} MiB instead of {}", self.memory, promised.memory));
        }
        let of = |size: &Self, name: &str| size.gres.get(name).copied().unwrap_or_default();
        promised.gres.iter().find_map(|(name, count)| {
            let here = of(self, name);
            let lacks = of(known, name) >= *count && here < *count;
            lacks.then(|| format!("{here} {name} instead of {count}"))
        })
    }
}
