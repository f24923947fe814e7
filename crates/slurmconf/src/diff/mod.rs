//! The differences between two configurations, and what slurmctld needs to apply them.

mod lines;
mod nodes;

use crate::{model::Config, version::SlurmVersion};
use hostlist::Hostlist;
use nodes::{Altered, Node, Side};
use std::collections::{BTreeMap, HashMap, HashSet};

/// The differences between two configurations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Nodes that only the new configuration has.
    pub added: Hostlist,
    /// Nodes that only the old configuration has.
    pub removed: Hostlist,
    /// Changed attributes of nodes that both have.
    pub altered: Vec<NodeChange>,
    /// Changed parameters.
    pub parameters: Vec<Change>,
    /// Changed partitions, node sets, power actions and similar lines; the value is the whole line.
    pub partitions: Vec<Change>,
}

/// A changed value.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Change {
    /// The key.
    pub key: String,
    /// The old value, if any.
    pub old: Option<String>,
    /// The new value, if any.
    pub new: Option<String>,
}

/// A changed attribute of some nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeChange {
    /// The nodes with this change.
    pub nodes: Hostlist,
    /// The change of the attribute.
    pub change: Change,
}

/// What slurmctld needs to apply a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Action {
    /// Nothing changed.
    Nothing,
    /// `scontrol reconfigure`
    Reconfigure,
    /// A restart.
    Restart,
}

/// Parameters that a reconfigure does not apply, according to scontrol's manual.
const RESTART: [&str; 13] = [
    "authtype",
    // The old names of SlurmctldHost, which Slurm still reads.
    "backupaddr",
    "backupcontroller",
    "clustername",
    "controladdr",
    "controlmachine",
    "plugindir",
    "selecttype",
    "slurmctldhost",
    "slurmctldport",
    "slurmdport",
    "slurmuser",
    "statesavelocation",
];

/// Node attributes that 22.05 applies at a reconfigure; all others need a restart there.
const LIVE: [&str; 3] = ["features", "weight", "reason"];

impl Changes {
    /// True if nothing changed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// What a slurmctld of this version needs to apply the changes. Before 23.11 a reconfigure with another set of nodes
    /// kills it.
    #[must_use]
    pub fn action(&self, version: SlurmVersion) -> Action {
        if self.is_empty() {
            return Action::Nothing;
        }
        let among = |keys: &[&str], key: &str| keys.contains(&key.to_ascii_lowercase().as_str());
        let parameters = self.parameters.iter().any(|change| among(&RESTART, &change.key));
        let nodes = !self.added.is_empty()
            || !self.removed.is_empty()
            || self.altered.iter().any(|altered| !among(&LIVE, &altered.change.key));
        if parameters || (nodes && !version.reconfigures_nodes()) {
            return Action::Restart;
        }
        Action::Reconfigure
    }
}

/// Compares the meaning of two configurations: order, folding and spelling make no difference.
///
/// ```
/// use slurmconf::{Action, Config, SlurmVersion, diff};
///
/// let old = Config::parse("NodeName=n[1-2] CPUs=2\nSuspendTime=600\n")?;
/// let new = Config::parse("NodeName=n[1-3] CPUs=2\nSuspendTime=600\n")?;
/// let changes = diff(&old, &new);
/// assert_eq!(changes.added.to_string(), "n3");
/// assert_eq!(changes.action(SlurmVersion::new(22, 5)), Action::Restart);
/// assert_eq!(changes.action(SlurmVersion::new(24, 11)), Action::Reconfigure);
/// # Ok::<(), slurmconf::Error>(())
/// ```
#[must_use]
pub fn diff(old: &Config, new: &Config) -> Changes {
    let (before, after) = (Side::new(old), Side::new(new));
    let was: HashMap<&str, &Node> =
        before.nodes.iter().map(|node| (node.name.as_str(), node)).collect();
    let is: HashSet<&str> = after.nodes.iter().map(|node| node.name.as_str()).collect();
    let mut added = Hostlist::new();
    let mut altered = Altered::new(&before, &after);
    for node in &after.nodes {
        match was.get(node.name.as_str()) {
            None => added.push(&node.name),
            Some(known) => altered.compare(known, node),
        }
    }
    let removed =
        before.nodes.iter().map(|node| node.name.as_str()).filter(|name| !is.contains(name));
    Changes {
        added,
        removed: removed.collect(),
        altered: altered.changes,
        parameters: compare(&parameters(old), &parameters(new)),
        partitions: lines::changes(old, new),
    }
}

/// The key as written and the value, by the key to compare.
type Values = BTreeMap<String, (String, String)>;

fn entry(key: &str, value: String) -> (String, (String, String)) {
    (key.to_ascii_lowercase(), (key.to_owned(), value))
}

fn parameters(config: &Config) -> Values {
    let mut all = Values::new();
    for parameter in &config.parameters {
        let (lower, value) = entry(&parameter.key, parameter.value.clone());
        match all.get_mut(&lower) {
            // The one parameter that may be repeated: backup controllers.
            Some(first) if lower == "slurmctldhost" => first.1 = format!("{},{}", first.1, value.1),
            Some(_) | None => {
                all.insert(lower, value);
            }
        }
    }
    all
}

fn compare(old: &Values, new: &Values) -> Vec<Change> {
    let mut keys: Vec<&String> = old.keys().chain(new.keys()).collect();
    keys.sort_unstable();
    keys.dedup();
    let value =
        |values: &Values, key| values.get(key).map(|(_, value): &(_, String)| value.clone());
    let name = |key| new.get(key).or(old.get(key)).map(|(name, _): &(String, _)| name.clone());
    keys.into_iter()
        .filter_map(|key| {
            let (old, new) = (value(old, key), value(new, key));
            (old != new).then(|| Change { key: name(key).unwrap_or_default(), old, new })
        })
        .collect()
}
