//! Comparing nodes one by one. Each pair of lines is compared only once.

use super::{Change, NodeChange, Values, compare, entry};
use crate::model::{Config, NodeDef};
use std::collections::HashMap;

/// A node and the position of its attributes.
pub(super) struct Node {
    pub(super) name: String,
    /// The index of its line.
    line: usize,
    /// Its index among the names of the line.
    position: usize,
}

/// The nodes of one configuration.
#[derive(Default)]
pub(super) struct Side {
    pub(super) nodes: Vec<Node>,
    /// Lines without duplicates.
    lines: Vec<Line>,
}

impl Side {
    pub(super) fn new(config: &Config) -> Self {
        let mut side = Self::default();
        let mut known = HashMap::new();
        for node in &config.nodes {
            let line = *known.entry(node.attributes()).or_insert_with(|| {
                side.lines.push(Line::new(node));
                side.lines.len() - 1
            });
            let mut position = 0;
            node.names.for_each(|name| {
                side.nodes.push(Node { name: name.to_owned(), line, position });
                position += 1;
            });
        }
        side
    }
}

/// Attributes that are not compared as written: those with a value for each node, and the topology.
const APART: [&str; 9] = [
    "NodeAddr",
    "NodeHostname",
    "Port",
    "CPUs",
    "Boards",
    "Sockets",
    "SocketsPerBoard",
    "CoresPerSocket",
    "ThreadsPerCore",
];

/// The attributes of a line: those of all nodes, and those with a value for each node.
struct Line {
    shared: Values,
    own: Vec<(&'static str, Vec<String>)>,
}

/// The changes found so far.
pub(super) struct Altered<'a> {
    pub(super) changes: Vec<NodeChange>,
    by_change: HashMap<Change, usize>,
    old: &'a [Line],
    new: &'a [Line],
    /// The differences between two lines.
    shared: HashMap<(usize, usize), Vec<Change>>,
}

impl<'a> Altered<'a> {
    pub(super) fn new(old: &'a Side, new: &'a Side) -> Self {
        let (by_change, shared) = (HashMap::new(), HashMap::new());
        Self { changes: Vec::new(), by_change, old: &old.lines, new: &new.lines, shared }
    }

    pub(super) fn compare(&mut self, before: &Node, after: &Node) {
        let (Some(old), Some(new)) = (self.old.get(before.line), self.new.get(after.line)) else {
            return;
        };
        let lines = (before.line, after.line);
        let shared = self.shared.entry(lines).or_insert_with(|| compare(&old.shared, &new.shared));
        let mut changes = shared.clone();
        if !(old.own.is_empty() && new.own.is_empty()) {
            changes.extend(compare(&old.own(before), &new.own(after)));
        }
        for change in changes {
            let index = *self.by_change.entry(change.clone()).or_insert(self.changes.len());
            if let Some(alike) = self.changes.get_mut(index) {
                alike.nodes.push(&after.name);
            } else {
                let nodes = [&after.name].into_iter().collect();
                self.changes.push(NodeChange { nodes, change });
            }
        }
    }
}

impl Line {
    fn new(node: &NodeDef) -> Self {
        let own = node.own();
        let mut shared = Values::new();
        // An empty value is like none.
        let set = node.attributes().into_iter().filter(|(_, value)| !value.is_empty());
        shared.extend(
            set.filter(|(key, _)| !APART.contains(key)).map(|(key, value)| entry(key, value)),
        );
        let topology = node.topology();
        shared.extend([
            entry("Boards", topology.boards.to_string()),
            entry("Sockets", topology.sockets.to_string()),
            entry("CoresPerSocket", topology.cores_per_socket.to_string()),
            entry("ThreadsPerCore", topology.threads_per_core.to_string()),
            entry("CPUs", topology.cpus.to_string()),
        ]);
        // Slurm's defaults.
        for (key, value) in [("State", "UNKNOWN"), ("Weight", "1"), ("RealMemory", "1")] {
            let (lower, value) = entry(key, value.to_owned());
            shared.entry(lower).or_insert(value);
        }
        Self { shared, own }
    }

    /// The values of one node; a list of one value is for all nodes.
    fn own(&self, node: &Node) -> Values {
        let value = |values: &Vec<String>| values.get(node.position).or(values.first()).cloned();
        let known = self.own.iter().filter_map(|(key, values)| Some(entry(key, value(values)?)));
        known.collect()
    }
}
