//! Styles of generated lines.

use super::Cluster;
use crate::{
    document::encoded,
    model::{NodeDef, NodeSet},
};
use std::{
    collections::HashMap,
    fmt::{self, Write as _},
};

/// The style of generated lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Style {
    /// One line for all identical nodes, which slurmctld reads much faster.
    #[default]
    Folded,
    /// One line per node, exactly as Cluster in the Cloud writes it, with `ad=None` without a domain.
    Citc,
    /// StackHPC's Ansible role: each group has a feature `nodegroup_…` and a node set of that name, of which partitions
    /// consist.
    NodeGroups,
}

impl fmt::Display for Cluster {
    /// Writes all lines, each with a newline.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.style {
            Style::Citc => self.nodes.iter().try_for_each(|node| citc(f, node))?,
            Style::Folded => self.nodes.iter().try_for_each(|node| writeln!(f, "{node}"))?,
            Style::NodeGroups => self.node_groups(f)?,
        }
        self.partitions.iter().try_for_each(|partition| writeln!(f, "{partition}"))
    }
}

impl Cluster {
    /// Writes the nodes of each group, then its node set.
    fn node_groups(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sets = self.node_sets.iter().map(|set| (set.name.as_str(), set)).collect();
        let mut written = None;
        for node in &self.nodes {
            let group = node.features.as_ref().and_then(|features| features.iter().next());
            if written.is_some() && written != group {
                node_set(f, &sets, written)?;
            }
            if let Some(label) = group.and_then(|group| group.strip_prefix("nodegroup_"))
                && written != group
            {
                writeln!(f, "# nodegroup: {label}")?;
            }
            writeln!(f, "{node}")?;
            written = group;
        }
        node_set(f, &sets, written)
    }
}

fn node_set(
    f: &mut fmt::Formatter<'_>,
    sets: &HashMap<&str, &NodeSet>,
    name: Option<&str>,
) -> fmt::Result {
    let set = name.and_then(|name| sets.get(name));
    set.map_or(Ok(()), |set| writeln!(f, "{set}"))
}

/// The attributes that CitC has columns for.
const COLUMNS: [&str; 7] = [
    "State",
    "SocketsPerBoard",
    "CoresPerSocket",
    "ThreadsPerCore",
    "RealMemory",
    "Gres",
    "Features",
];

/// Writes one line per node in CitC's columns, followed by other attributes.
fn citc(f: &mut fmt::Formatter<'_>, node: &NodeDef) -> fmt::Result {
    let attributes = node.attributes();
    let column = |key: &str| {
        let found = attributes.iter().find(|(known, _)| *known == key);
        found.map(|(_, value)| value.as_str()).unwrap_or_default()
    };
    let mut rest = String::new();
    write!(
        rest,
        " State={:<7} SocketsPerBoard={} CoresPerSocket={:<3} ThreadsPerCore={} RealMemory={:<10} \
         Gres=\"{}\" Features=\"{}\"",
        column("State"),
        column("SocketsPerBoard"),
        column("CoresPerSocket"),
        column("ThreadsPerCore"),
        column("RealMemory"),
        column("Gres"),
        column("Features"),
    )?;
    let own = node.own();
    let is_own = |key: &str| own.iter().any(|(known, _)| *known == key);
    let more = attributes.iter().filter(|(key, _)| !COLUMNS.contains(key) && !is_own(key));
    for (key, value) in more {
        write!(rest, " {key}={}", encoded(value))?;
    }
    let mut done = Ok(());
    let mut position = 0;
    node.names.for_each(|name| {
        done = done.and_then(|()| {
            write!(f, "NodeName={name:<40}{rest}")?;
            for (key, values) in &own {
                let value = values.get(position).or(values.first());
                write!(f, " {key}={}", encoded(value.map(String::as_str).unwrap_or_default()))?;
            }
            f.write_str("\n")
        });
        position += 1;
    });
    done
}
