//! Nodes and features that only slurmctld knows.

use crate::world::Roster;
use hostlist::NodeName;
use slurmconf::{Config, Features, NodeDef};
use slurmctl::{Controller, Node, StateFlag};
use std::collections::BTreeSet;

/// Adds features and nodes that were set or created with scontrol. Returns true if there were any. For named nodes,
/// slurmctld is queried only if one has no features.
pub async fn fill_from_slurmctld(
    config: &mut Config,
    slurm: &dyn Controller,
    names: Option<&[NodeName]>,
) -> bool {
    let roster = Roster::new(config);
    let featureless = |name: &NodeName| {
        roster.get(name).and_then(|def| def.features.as_ref()).is_none_or(Features::is_empty)
    };
    let all = names.map_or_else(|| roster.nodes(), <[NodeName]>::to_vec);
    let wanted: BTreeSet<NodeName> = all.into_iter().filter(featureless).collect();
    if wanted.is_empty() && names.is_some() {
        return false;
    }
    // Without slurmctld, only slurm.conf counts.
    let known = slurm.nodes(None).await.unwrap_or_default();
    let is_wanted = |node: &&Node| {
        wanted.contains(&node.name) || names.is_none() && roster.get(&node.name).is_none()
    };
    let found = known.iter().filter(is_wanted);
    let more: Vec<NodeDef> = found.filter_map(|node| definition(node, &roster)).collect();
    let some = !more.is_empty();
    // The first line of a node counts.
    config.nodes.splice(..0, more);
    some
}

/// The definition of a node with slurmctld's features.
fn definition(node: &Node, roster: &Roster<'_>) -> Option<NodeDef> {
    let configured = roster.get(&node.name);
    // A node that was removed from slurm.conf must not start again; one that was created at run time was never in it.
    if node.features.is_empty() || configured.is_none() && !node.state.has(&StateFlag::DynamicNorm)
    {
        return None;
    }
    let made = || NodeDef {
        state: node.state.is_cloud().then_some(slurmconf::ConfiguredState::Cloud),
        ..NodeDef::default()
    };
    let mut def = configured.cloned().unwrap_or_else(made);
    // These lists are as long as the list of names.
    (def.addr, def.hostname, def.port) = (None, None, None);
    def.names = std::iter::once(&node.name).collect();
    def.features = Some(Features::from(node.features.join(",").as_str()));
    Some(def)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_has_the_features_that_scontrol_gave_it() {
        let text = "NodeName=n[1-2] NodeAddr=a[1-2] CPUs=4 State=CLOUD\n";
        let config = Config::parse(text).unwrap();
        let roster = Roster::new(&config);
        let node = |name: &str, features: &[&str]| {
            let mut node = Node::new(NodeName::new(name).unwrap(), "IDLE+CLOUD".into());
            node.features = features.iter().map(|it| (*it).to_owned()).collect();
            node
        };
        assert_eq!(definition(&node("n1", &[]), &roster), None);
        let def = definition(&node("n2", &["shape=VM.S", "ad=1"]), &roster).unwrap();
        assert_eq!(
            (def.names.to_string(), def.cpus, def.addr.clone()),
            ("n2".into(), Some(4), None)
        );
        assert_eq!(def.features.as_ref().unwrap().value("shape"), Some("VM.S"));
        let mut dynamic = node("dynamic7", &["shape=VM.S"]);
        assert_eq!(definition(&dynamic, &roster), None, "slurm.conf has lost it");
        dynamic.state = "IDLE+CLOUD+DYNAMIC_NORM".into();
        let made = definition(&dynamic, &roster).unwrap();
        assert!(made.is_cloud() && made.names.to_string() == "dynamic7", "{made:?}");
    }
}
