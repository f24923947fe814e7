//! The machines that are there, for other tools: an inventory, and our block in /etc/hosts.

use crate::world::{Fleet, Roster, World};
use cloud_core::{Instance, InstanceState};
use hostlist::NodeName;
use serde_json::{Map, Value, json};
use std::fmt::Write as _;
use std::net::IpAddr;

/// A machine that is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    /// Its node.
    pub node: NodeName,
    /// Its address.
    pub address: IpAddr,
    /// Its instance.
    pub instance: String,
    /// The image on it, if the cloud shows it.
    pub image: Option<String>,
}

/// The machines of slurm.conf that run and have an address, by number.
///
/// A node with several instances is left out: nobody can say which of them it is.
#[must_use]
pub fn machines(world: World<'_>) -> Vec<Machine> {
    let nodes = world.conf.nodes();
    nodes.into_iter().filter_map(|node| machine(node, world.fleet)).collect()
}

fn machine(node: NodeName, fleet: &Fleet) -> Option<Machine> {
    let [one] = fleet.standing(&node).here[..] else {
        return None;
    };
    let Instance { state: InstanceState::Running, address: Some(address), .. } = one else {
        return None;
    };
    let image = one.image.as_ref().map(ToString::to_string);
    Some(Machine { node, address: *address, instance: one.id.to_string(), image })
}

/// The machines of each partition, by name.
fn partitions<'a>(machines: &'a [Machine], conf: &Roster<'_>) -> Vec<(String, Vec<&'a Machine>)> {
    let all = conf.config().partitions.iter().filter(|partition| partition.name != "DEFAULT");
    let members = |name: &str| {
        let nodes = conf.partition(name).unwrap_or_default();
        machines.iter().filter(|machine| nodes.contains(machine.node.as_str())).collect()
    };
    all.map(|partition| (partition.name.clone(), members(&partition.name))).collect()
}

/// An inventory as Ansible reads it from a file: a group for each partition.
#[must_use]
pub fn inventory_ini(machines: &[Machine], conf: &Roster<'_>) -> String {
    let mut text = String::from("[compute]\n");
    for Machine { node, address, instance, image } in machines {
        let image = image.as_ref().map(|id| format!(" image_id={id}")).unwrap_or_default();
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{node} ansible_host={address} instance_id={instance}{image}");
    }
    for (partition, members) in partitions(machines, conf) {
        let _ = writeln!(text, "\n[partition_{partition}]");
        for machine in members {
            let _ = writeln!(text, "{}", machine.node);
        }
    }
    text
}

fn names<'a>(members: &[&'a Machine]) -> Vec<&'a str> {
    members.iter().map(|machine| machine.node.as_str()).collect()
}

/// The inventory as Ansible reads it from a program.
#[must_use]
pub fn inventory_json(machines: &[Machine], conf: &Roster<'_>) -> Value {
    let mut variables = Map::new();
    for Machine { node, address, instance, image } in machines {
        let mut values = json!({"ansible_host": address.to_string(), "instance_id": instance});
        if let (Some(image), Value::Object(values)) = (image, &mut values) {
            values.insert("image_id".to_owned(), json!(image));
        }
        variables.insert(node.to_string(), values);
    }
    let everyone: Vec<&Machine> = machines.iter().collect();
    let mut groups = Map::new();
    groups.insert("_meta".to_owned(), json!({"hostvars": variables}));
    groups.insert("compute".to_owned(), json!({"hosts": names(&everyone)}));
    for (partition, members) in partitions(machines, conf) {
        groups.insert(format!("partition_{partition}"), json!({"hosts": names(&members)}));
    }
    Value::Object(groups)
}
