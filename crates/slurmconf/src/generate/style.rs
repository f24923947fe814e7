//! How generated lines look.

use super::Cluster;
use crate::model::NodeDef;
use std::fmt::{self, Write as _};

/// How lines are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Style {
    /// One line for all nodes that are alike, which slurmctld reads far faster.
    #[default]
    Folded,
    /// One line a node, to the byte as Cluster in the Cloud writes it, with `ad=None` where there is no domain.
    Citc,
    /// As StackHPC's Ansible role: each group with a feature `nodegroup_…`, and a node set of that name, which
    /// partitions are made of.
    NodeGroups,
}

impl fmt::Display for Cluster {
    /// Writes all lines, each with its newline.
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
    /// Each group's nodes, and then its set.
    fn node_groups(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut written = None;
        for node in &self.nodes {
            let group = node.features.as_ref().and_then(|features| features.iter().next());
            if written.is_some() && written != group {
                self.node_set(f, written)?;
            }
            if let Some(label) = group.and_then(|group| group.strip_prefix("nodegroup_"))
                && written != group
            {
                writeln!(f, "# nodegroup: {label}")?;
            }
            writeln!(f, "{node}")?;
            written = group;
        }
        self.node_set(f, written)
    }

    fn node_set(&self, f: &mut fmt::Formatter<'_>, name: Option<&str>) -> fmt::Result {
        let set = self.node_sets.iter().find(|set| Some(set.name.as_str()) == name);
        set.map_or(Ok(()), |set| writeln!(f, "{set}"))
    }
}

/// One line a node, in CitC's columns.
fn citc(f: &mut fmt::Formatter<'_>, node: &NodeDef) -> fmt::Result {
    let text = |value: Option<String>| value.unwrap_or_default();
    let mut rest = format!(
        " State={:<7} SocketsPerBoard={} CoresPerSocket={:<3} ThreadsPerCore={} RealMemory={:<10} Gres=\"{}\" \
         Features=\"{}\"",
        text(node.state.as_ref().map(ToString::to_string)),
        node.sockets_per_board.unwrap_or(1),
        node.cores_per_socket.unwrap_or(1),
        node.threads_per_core.unwrap_or(1),
        node.real_memory.unwrap_or(1),
        text(node.gres.as_ref().map(ToString::to_string)),
        text(node.features.as_ref().map(ToString::to_string)),
    );
    if let Some(weight) = node.weight {
        let _ = write!(rest, " Weight={weight}");
    }
    rest.push('\n');
    let mut done = Ok(());
    node.names.for_each(|name| {
        done =
            done.and_then(|()| write!(f, "NodeName={name:<40}")).and_then(|()| f.write_str(&rest));
    });
    done
}
