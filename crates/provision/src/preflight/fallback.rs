//! Checks that machines of fallback shapes have all that slurm.conf says of their nodes.

use super::Check;
use crate::site::Fallback;
use hostlist::Hostlist;
use slurmconf::{GresList, MemoryPolicy, NodeDef, Shapes};
use std::collections::{BTreeMap, BTreeSet};

/// Fallback shapes that are too small for nodes that may get them.
///
/// Slurm drains a node that registers with less than its line says, and reconcile does not return it to service because the
/// reason is Slurm's.
pub(super) fn too_small(
    nodes: &[NodeDef],
    fallback: &[Fallback],
    (shapes, policy): (&Shapes, MemoryPolicy),
) -> Vec<Check> {
    let names: BTreeSet<&str> =
        fallback.iter().filter_map(|other| other.shape.as_deref()).collect();
    // An unknown shape is reported elsewhere.
    let known = names.into_iter().filter_map(|name| Some((name, shapes.get(name)?)));
    let check = |(name, shape): (&str, slurmconf::NodeShape)| {
        let offered = Size::of(&shape, policy.real_memory(name, &shape));
        let mut small = Hostlist::new();
        // A group with places of its own does not use these.
        let uses = |node: &&NodeDef| {
            node.features.as_ref().is_none_or(|features| features.places().is_empty())
        };
        for node in nodes.iter().filter(uses).filter(|node| offered.is_less_than(node, shapes)) {
            small.append(&node.names);
        }
        let Size { cpus, memory, .. } = offered;
        (!small.is_empty()).then(|| {
            Check::fail(format!(
                "fallback: {name} ({cpus} CPUs, {memory} MiB) has less than slurm.conf is to say of {small}, and Slurm drains a \
                 node that has less than its line says: name a shape of at least that size, or zones alone"
            ))
        })
    };
    known.filter_map(check).collect()
}

/// The properties that Slurm compares when a node registers.
struct Size {
    cpus: u64,
    memory: u64,
    gres: BTreeMap<String, u64>,
}

impl Size {
    fn of(shape: &slurmconf::NodeShape, memory: u64) -> Self {
        let parts = [shape.sockets, shape.cores_per_socket, shape.threads_per_core];
        let gres = counts(&GresList::from(shape.gres.as_str()));
        Self { cpus: parts.into_iter().map(u64::from).product(), memory, gres }
    }

    /// True if a node would have less than its line says.
    fn is_less_than(&self, node: &NodeDef, shapes: &Shapes) -> bool {
        let Some(own) = node.shape().and_then(|name| shapes.get(name)) else { return false };
        let own = Self::of(&own, node.real_memory.unwrap_or_default());
        let promised = node.gres.as_ref().map(counts).unwrap_or_default();
        let lacks = |(name, count): (&String, &u64)| {
            let of = |size: &Self| size.gres.get(name).copied().unwrap_or_default();
            // Not every cloud reports the GPUs of its shapes: one that does not for the node's shape may not for this one.
            of(&own) >= *count && of(self) < *count
        };
        self.cpus < own.cpus || self.memory < own.memory || promised.iter().any(lacks)
    }
}

/// The count of each resource, regardless of type.
fn counts(list: &GresList) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for gres in list.iter() {
        *counts.entry(gres.name.to_owned()).or_default() += gres.count;
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;
    use slurmconf::{GenerateOptions, Limits, Memory, NodeShape, generate};

    /// The nodes for which a shape is too small.
    fn small(limits: &str, shapes: &Shapes, fallback: &[Fallback]) -> usize {
        let limits = Limits::read("limits.yaml", limits).unwrap();
        let cluster = generate(&limits, shapes, &GenerateOptions::default()).unwrap();
        too_small(&cluster.nodes, fallback, (shapes, MemoryPolicy::default())).len()
    }

    fn to(shape: &str) -> [Fallback; 1] {
        [Fallback { shape: Some(shape.to_owned()), ..Fallback::default() }]
    }

    #[test]
    fn a_fallback_shape_is_as_large_as_the_node() {
        let large = "VM.Standard.E4.Flex.16.256: {1: 4}";
        let both = format!("VM.Standard2.1: {{1: 1}}\n{large}");
        for (limits, shape, wrong) in [
            (large, "VM.Standard.E4.Flex.1.16", true),
            (large, "VM.Standard.E4.Flex.16.255", true),
            (large, "VM.Standard.E4.Flex.16.256", false),
            (large, "VM.Standard.E5.Flex.16.256", false),
            (&both, "VM.Standard.E4.Flex.1.16", true),
            ("VM.Standard2.1: {1: 4}", "VM.Standard.E4.Flex.1.16", false),
            // Reported elsewhere.
            (large, "VM.Nosuch", false),
            ("VM.GPU2.1: {1: 1}", "VM.Standard2.24", true),
        ] {
            assert_eq!(
                small(limits, &slurm_testbed::shapes(), &to(shape)),
                usize::from(wrong),
                "{shape}"
            );
        }
    }

    #[test]
    fn cards_that_no_flavor_tells_of_are_not_missed() {
        for (gres, wrong) in [("gpu:4", true), ("", false)] {
            let mut shapes = Shapes::new();
            for (name, gres) in [("g1.a100", gres), ("m1.xlarge", "")] {
                let shape = NodeShape::new(8, Memory::Nominal(64_000));
                shapes.insert(name, NodeShape { gres: gres.to_owned(), ..shape });
            }
            let limits = "gpu: {shape: g1.a100, max: 8, gres: 'gpu:a100:4'}";
            assert_eq!(small(limits, &shapes, &to("m1.xlarge")), usize::from(wrong), "{gres}");
        }
    }

    /// The fallback shapes of an example, also in its comments.
    fn shapes_named(example: &str) -> Vec<&str> {
        let behind = example.split("shape: ").skip(1);
        behind
            .filter_map(|text| text.split(|c: char| !(c.is_alphanumeric() || c == '.')).next())
            .collect()
    }

    #[test]
    fn the_example_names_fallback_shapes_that_are_large_enough() {
        let limits = include_str!("../../../../examples/oci/limits.yaml");
        let settings = include_str!("../../../../examples/oci/startnode.yaml");
        let shapes = shapes_named(settings);
        assert!(!shapes.is_empty(), "the example shows how to name a shape");
        for shape in shapes {
            assert!(slurm_testbed::shapes().get(shape).is_some(), "{shape}");
            assert_eq!(small(limits, &slurm_testbed::shapes(), &to(shape)), 0, "{shape}");
        }
        assert_eq!(small(limits, &slurm_testbed::shapes(), &to("VM.Standard2.1")), 1, "too small");
    }
}
