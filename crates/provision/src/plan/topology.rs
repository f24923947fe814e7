//! Where machines are, as Slurm's topology: a tree of zones and of what the clouds show inside of them.

use super::{Begin, FileStep, Notification, Plan, Reload, Stage, Step, WrittenFile};
use crate::interruption::location_of;
use crate::world::World;
use cloud_core::{Instance, InstanceState};
use hostlist::{Hostlist, NodeName};
use slurmconf::SlurmVersion;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// The name that Slurm gives to the topology of topology.conf.
const NAME: &str = "default";

/// The switch above all others.
const ROOT: &str = "elastic";

/// The switch of nodes whose machine is nowhere that we know.
const UNPLACED: &str = "unplaced";

/// What is added to a switch that has nodes and other switches, as Slurm's have only one of both.
const OTHER: &str = "other";

/// The longest name of a unit that is kept whole: ids differ by their ends.
const LONGEST: usize = 24;

/// The switches above each node, the widest first and without the root. A node that is not here is in no place that we know.
type Places = BTreeMap<NodeName, Vec<String>>;

/// Adds to a plan what brings Slurm's topology up to date.
///
/// Before 25.05 that is topology.conf and a reconfigure. It changes when the machine of a node in service is elsewhere than
/// the file says: nodes that are powered down stay where they were. From 25.05 on the file has all nodes in one place, to
/// which Slurm returns them when they are powered down, and those in service are moved from there.
#[must_use]
pub(crate) fn with_topology(
    plan: Plan,
    before: &[u8],
    version: SlurmVersion,
    world: World<'_>,
) -> Plan {
    if world.slurm.is_none() || !world.fleet.is_complete() {
        return plan;
    }
    let (nodes, placed) = (world.conf.nodes(), placed(world));
    let moves = version.moves_nodes_in_topologies();
    let wanted = if moves { Places::new() } else { kept(before, &nodes, &placed, world) };
    let text = topology_conf(&nodes, &wanted).into_bytes();
    let plan = if text == before { plan } else { written(plan, before, text) };
    if !moves {
        return plan;
    }
    let mut by_place: BTreeMap<String, Vec<NodeName>> = BTreeMap::new();
    for (node, switches) in placed {
        let place = place_of(&switches);
        let known = world.node(&node).and_then(|known| known.topology.as_deref());
        if !known.unwrap_or_default().split(',').any(|known| known == place) {
            by_place.entry(place).or_default().push(node);
        }
    }
    let step = |(place, nodes)| Step::notify(nodes, Notification::SetTopology(place));
    plan.stage(Stage::new("places", by_place.into_iter().map(step).collect()).begun(Begin::Always))
}

/// The place of a machine that has just come up, for releases that move nodes. The machine itself has reported nothing yet.
pub(crate) fn place_at_start(instance: &Instance, version: SlurmVersion) -> Option<String> {
    let switches = switches(instance, &[]);
    let moves = version.moves_nodes_in_topologies() && !switches.is_empty();
    moves.then(|| place_of(&switches))
}

/// The place below these switches, as Slurm takes it.
fn place_of(switches: &[String]) -> String {
    format!("{NAME}:{ROOT}:{}", switches.join(":"))
}

fn written(plan: Plan, before: &[u8], text: Vec<u8>) -> Plan {
    let (which, before, drops) = (WrittenFile::Topology, before.to_vec(), Vec::new());
    let summary = "places of nodes".to_owned();
    let write = Step::File(FileStep::Write { which, before, text, summary, drops });
    let reload = Step::notify([], Notification::Reload(Reload::Reconfigure));
    plan.stage(Stage::new("topology", vec![write]).begun(Begin::Always))
        .stage(Stage::new("reload", vec![reload]).begun(Begin::Always))
}

/// The places of nodes in service with one machine that runs.
fn placed(world: World<'_>) -> Places {
    let place = |node: NodeName| {
        let known = world.node(&node).filter(|known| known.state.is_up())?;
        let [one] = world.fleet.standing(&node).here[..] else { return None };
        let switches = switches(one, &location_of(known));
        let runs = one.state == InstanceState::Running && !switches.is_empty();
        runs.then_some((node, switches))
    };
    world.conf.nodes().into_iter().filter_map(place).collect()
}

/// The switches above a machine. What the machine itself has told is finer than what the cloud lists.
fn switches(instance: &Instance, reported: &[String]) -> Vec<String> {
    let inside = if reported.is_empty() { &instance.location } else { reported }.to_vec();
    let zone = instance.zone.iter().map(ToString::to_string);
    let mut above = String::new();
    let switch = |unit: String| {
        if !above.is_empty() {
            above.push('.');
        }
        above.push_str(&word(&unit));
        above.clone()
    };
    zone.chain(inside).map(switch).collect()
}

/// A unit as a part of a switch's name.
fn word(unit: &str) -> String {
    let plain =
        |c: char| if c.is_ascii_alphanumeric() || c == '-' { c.to_ascii_lowercase() } else { '_' };
    let over = unit.chars().count().saturating_sub(LONGEST);
    unit.chars().skip(over).map(plain).collect()
}

/// The places that the file is to have: those of nodes in service, and those that the others had.
fn kept(before: &[u8], nodes: &[NodeName], placed: &Places, world: World<'_>) -> Places {
    let old = places(&String::from_utf8_lossy(before));
    let in_service = |node: &NodeName| world.node(node).is_some_and(|known| known.state.is_up());
    let place = |node: &NodeName| {
        let known = if in_service(node) { placed.get(node) } else { old.get(node) };
        Some((node.clone(), known?.clone()))
    };
    nodes.iter().filter_map(place).collect()
}

/// The places of nodes in a topology.conf of ours.
fn places(text: &str) -> Places {
    let mut places = Places::new();
    for line in text.lines() {
        let field = |key: &str| {
            let mut words = line.split(' ');
            words.find_map(|word| word.strip_prefix(key)?.strip_prefix('='))
        };
        let (Some(name), Some(nodes)) = (field("SwitchName"), field("Nodes")) else { continue };
        let nodes = nodes.parse::<Hostlist>().ok().and_then(|nodes| nodes.node_names().ok());
        if name == UNPLACED {
            continue;
        }
        let mut units: Vec<&str> = name.split('.').collect();
        if units.last() == Some(&OTHER) {
            units.pop();
        }
        let switch = |end: usize| units.get(..=end).unwrap_or_default().join(".");
        let switches: Vec<String> = (0..units.len()).map(switch).collect();
        places.extend(nodes.unwrap_or_default().into_iter().map(|node| (node, switches.clone())));
    }
    places
}

/// The text of topology.conf; nodes without a place are in one of their own.
pub(crate) fn topology_conf(nodes: &[NodeName], places: &Places) -> String {
    let mut above: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for switches in places.values() {
        for pair in switches.windows(2) {
            if let [outer, inner] = pair {
                above.entry(outer).or_default().insert(inner.clone());
            }
        }
    }
    let mut leaves: BTreeMap<String, Hostlist> = BTreeMap::new();
    let mut top: BTreeSet<String> = BTreeSet::new();
    for node in nodes {
        let switches = places.get(node).map(Vec::as_slice).unwrap_or_default();
        let leaf = switches.last().map_or(UNPLACED, String::as_str);
        let shared = above.contains_key(leaf);
        let name = if shared { format!("{leaf}.{OTHER}") } else { leaf.to_owned() };
        if shared {
            above.entry(leaf).or_default().insert(name.clone());
        }
        leaves.entry(name).or_default().push(node.as_str());
        top.insert(switches.first().map_or(UNPLACED, String::as_str).to_owned());
    }
    let mut text = "# Written by slurm-elastic: where machines are.\n".to_owned();
    for (name, nodes) in &leaves {
        let _ = writeln!(text, "SwitchName={name} Nodes={nodes}");
    }
    let list = |names: &BTreeSet<String>| names.iter().cloned().collect::<Vec<_>>().join(",");
    for (name, inner) in above.iter().rev() {
        let _ = writeln!(text, "SwitchName={name} Switches={}", list(inner));
    }
    let _ = writeln!(text, "SwitchName={ROOT} Switches={}", list(&top));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(list: &str) -> Vec<NodeName> {
        list.parse::<Hostlist>().unwrap().node_names().unwrap()
    }

    fn at(list: &str, switches: &[&str]) -> Places {
        let switches: Vec<String> = switches.iter().map(|&it| it.to_owned()).collect();
        names(list).into_iter().map(|node| (node, switches.clone())).collect()
    }

    #[test]
    fn a_file_has_every_node_once_and_reads_back() {
        let mut all = at("n[1-2]", &["ad1", "ad1.fd-1"]);
        all.extend(at("n3", &["ad1", "ad1.fd-2"]));
        all.extend(at("n4", &["ad1"]));
        let text = topology_conf(&names("n[1-5]"), &all);
        assert_eq!(
            text,
            "# Written by slurm-elastic: where machines are.\n\
             SwitchName=ad1.fd-1 Nodes=n[1-2]\n\
             SwitchName=ad1.fd-2 Nodes=n3\n\
             SwitchName=ad1.other Nodes=n4\n\
             SwitchName=unplaced Nodes=n5\n\
             SwitchName=ad1 Switches=ad1.fd-1,ad1.fd-2,ad1.other\n\
             SwitchName=elastic Switches=ad1,unplaced\n"
        );
        assert_eq!(places(&text), all);
    }

    #[test]
    fn a_cluster_without_machines_has_one_switch_below_the_root() {
        let text = topology_conf(&names("n[1-3]"), &Places::new());
        let expected = "SwitchName=unplaced Nodes=n[1-3]\nSwitchName=elastic Switches=unplaced\n";
        assert!(text.ends_with(expected), "{text}");
    }

    #[test]
    fn an_id_is_known_by_its_end_and_has_no_marks_of_slurms() {
        assert_eq!(word("Uocm:PHX-AD-1"), "uocm_phx-ad-1");
        assert_eq!(word("first.second.third.iad.anuwcljrabcdefghijkl"), "iad_anuwcljrabcdefghijkl");
    }
}
