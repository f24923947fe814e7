//! Whether what the limits make fits into the rest of slurm.conf.

use super::inputs::Inputs;
use crate::config::Cloud;
use crate::context::Context;
use crate::trouble::Trouble;
use hostlist::Hostlist;
use slurmconf::{Cluster, Config, Markers, NodeDef, PartitionDef};
use std::collections::BTreeSet;

/// Refuses partitions that slurm.conf has elsewhere: slurmctld would not start with both.
pub(super) fn partitions(inputs: &Inputs, context: &Context) -> Result<(), Trouble> {
    let section = inputs.marked.document.section(Markers::NODES).unwrap_or_default();
    // What cannot be read is written anew.
    let ours = Config::parse(&section).unwrap_or_default();
    let twice = twice(&inputs.cluster.partitions, &ours, &context.slurm.config);
    if twice.is_empty() {
        return Ok(());
    }
    let names = twice.into_iter().collect::<Vec<_>>().join(", ");
    let (limits, conf) = (inputs.limits.display(), context.slurm.path.display());
    Err(Trouble::new(format!(
        "{limits} and {conf} both make the partition {names}: take its line out of {conf}, or of the file that is included \
         there and has it, or give it another name in one of them"
    )))
}

/// The new partitions that also stand outside the section, which has those of `ours` now.
fn twice(new: &[PartitionDef], ours: &Config, all: &Config) -> BTreeSet<String> {
    let count =
        |config: &Config, name: &str| config.partitions.iter().filter(|it| it.name == name).count();
    let names = new.iter().map(|partition| &partition.name);
    names.filter(|name| count(all, name) > count(ours, name)).cloned().collect()
}

/// What to do about generic resources that Slurm would not know, if there are such.
pub(super) fn gres(cluster: &Cluster, config: &Config) -> Option<String> {
    let line = gres_types(cluster, config)?;
    Some(format!(
        "Slurm leaves out the generic resources of the nodes, as slurm.conf does not name them; set {line}, and \
         give the nodes the gres.conf of finish --print-gres"
    ))
}

/// The line that names what slurm.conf names already and what the nodes need, if it lacks any of that.
pub(super) fn gres_types(cluster: &Cluster, config: &Config) -> Option<String> {
    let known: Vec<&str> = config.get_all("GresTypes").flat_map(|types| types.split(',')).collect();
    let needed = cluster.gres_types();
    let lacks = |name: &str| !known.iter().any(|known| known.trim().eq_ignore_ascii_case(name));
    if !needed.split(',').any(|name| !name.is_empty() && lacks(name)) {
        return None;
    }
    let mut all: BTreeSet<&str> = known.iter().map(|name| name.trim()).collect();
    all.extend(needed.split(','));
    all.remove("");
    Some(format!("GresTypes={}", all.into_iter().collect::<Vec<_>>().join(",")))
}

/// What to do about nodes that are always there from now on: nobody starts them.
pub(super) fn unstarted(cluster: &Cluster, config: &Config) -> Option<String> {
    let known = config.index();
    let is_new = |name: &String| known.get(name).is_none_or(|node| node.line.is_cloud());
    let new: Hostlist = cluster.persistent_nodes().iter().filter(is_new).collect();
    let told = || {
        format!(
            "{new} are to be there always, and finish starts no machines: run resize in its place, unless another tool makes them"
        )
    };
    (!new.is_empty()).then(told)
}

/// What to do about nodes that can never start: Oracle's cloud launches no machine outside an availability domain, nor one
/// whose name its DNS would not take.
pub(super) fn unstartable(nodes: &[NodeDef], context: &Context) -> Option<String> {
    match &context.settings.cloud {
        Cloud::Oracle(oracle) => without_zone(nodes, &context.site).or_else(|| {
            oracle.hostname_label.then(|| without_host_name(nodes, &context.site)).flatten()
        }),
        Cloud::OpenStack(_) => None,
    }
}

/// The same of nodes that are machines of ours and whose names are no host names.
fn without_host_name(nodes: &[NodeDef], site: &provision::Site) -> Option<String> {
    let ours = nodes.iter().filter(|node| site.places(node).is_some());
    let names = ours.flat_map(|node| node.names.iter());
    let nodes: Hostlist = names.filter(|name| !cloud_oci::is_host_name(name.as_str())).collect();
    (!nodes.is_empty()).then(|| {
        format!(
            "{nodes} can never start: on Oracle's cloud the name of a node is the host name of its machine, at most 63 letters, \
             digits and hyphens, the first a letter; call the group otherwise, or set hostname_label: false"
        )
    })
}

/// The same of nodes none of whose places has a zone.
fn without_zone(nodes: &[NodeDef], site: &provision::Site) -> Option<String> {
    let lacks = |node: &&NodeDef| {
        site.places(node).is_some_and(|places| places.iter().all(|place| place.zone.is_none()))
    };
    let nodes: Hostlist = nodes.iter().filter(lacks).flat_map(|node| node.names.iter()).collect();
    (!nodes.is_empty()).then(|| {
        format!(
            "{nodes} can never start: on Oracle's cloud a machine has to be in an availability domain; in limits.yaml, give \
             the group `zone: '1'`, or write shape, availability domain and count: `VM.Standard2.1: {{1: 4}}`"
        )
    })
}

/// Refuses a default partition that the limits do not make: it would be nobody's.
pub(super) fn default_partition(wanted: Option<&str>, cluster: &Cluster) -> Result<(), Trouble> {
    let names: Vec<&str> = cluster.partitions.iter().map(|it| it.name.as_str()).collect();
    let Some(wanted) = wanted.filter(|wanted| !names.contains(wanted)) else { return Ok(()) };
    let there = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    Err(Trouble::new(format!(
        "--default-partition {wanted}: the limits make no such partition; they make {there}"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;
    use slurmconf::{Flavor, GenerateOptions, Limits, Shapes, generate};

    fn config(text: &str) -> Config {
        Config::parse(text).unwrap()
    }

    #[test]
    fn a_partition_that_stood_elsewhere_ended_slurmctld() {
        let new = [PartitionDef::new("compute"), PartitionDef::new("gpu")];
        let compute = "PartitionName=compute Nodes=ALL\n";
        let none = BTreeSet::new();
        assert_eq!(twice(&new, &config(""), &config("")), none);
        assert_eq!(twice(&new, &config(compute), &config(compute)), none, "it was ours before");
        let found = twice(&new, &config(""), &config(compute));
        assert_eq!(found, BTreeSet::from(["compute".to_owned()]));
    }

    #[test]
    fn the_examples_made_one_partition_twice() {
        let conf = config(include_str!("../../../../examples/slurm.conf"));
        let text = include_str!("../../../../examples/openstack/limits.yaml");
        let mut shapes = Shapes::new();
        for name in ["m1.large", "g1.a100"] {
            let arch = "x86_64".to_owned();
            let flavor = Flavor { vcpus: 4, memory: 8192, gres: String::new(), arch };
            shapes.insert(name, flavor);
        }
        let limits = Limits::read("limits.yaml", text).unwrap();
        let cluster = generate(&limits, &shapes, &GenerateOptions::default()).unwrap();
        assert_eq!(cluster.partitions.len(), 2);
        assert_eq!(twice(&cluster.partitions, &config(""), &conf), BTreeSet::new());
    }

    #[test]
    fn nodes_that_are_always_there_were_written_and_never_started() {
        let limits = Limits::read("limits.yaml", "g: {shape: VM.Standard2.1, min: 2, max: 4}\n");
        let cluster =
            generate(&limits.unwrap(), &Shapes::oci(), &GenerateOptions::default()).unwrap();
        let told = unstarted(&cluster, &config("NodeName=g-0001 Features=shape=S\n")).unwrap();
        assert!(told.starts_with("g-0002 are to be there always"), "{told}");
        assert_eq!(unstarted(&cluster, &config("NodeName=g-[0001-0002]\n")), None);
        let elastic = config("NodeName=g-[0001-0004] State=CLOUD\n");
        let told = unstarted(&cluster, &elastic).unwrap();
        assert!(told.starts_with("g-[0001-0002] are to be there always"), "{told}");
    }

    #[test]
    fn nodes_without_an_availability_domain_were_made_and_never_came() {
        let mut site = provision::Site::new(provision::Identity::cluster("c1"));
        let nodes = config(
            "NodeName=a[1-2] Features=shape=S,ad=None\nNodeName=b1 Features=shape=S,ad=1\nNodeName=login\n",
        );
        let told = without_zone(&nodes.nodes, &site).unwrap();
        assert!(told.starts_with("a[1-2] can never start"), "{told}");
        assert!(told.contains("zone: '1'") && told.contains("{1: 4}"), "{told}");
        let zone = Some(cloud_core::Zone::new("AD-2"));
        site.fallback = vec![provision::Fallback { zone, ..Default::default() }];
        assert_eq!(without_zone(&nodes.nodes, &site), None, "there is another place");
    }

    #[test]
    fn nodes_whose_names_are_no_host_names_were_made_and_never_came() {
        let site = provision::Site::new(provision::Identity::cluster("c1"));
        let told = |line: &str| without_host_name(&config(line).nodes, &site);
        let words = told("NodeName=gpu_big-[1-2],n1 Features=shape=S,ad=1\n").unwrap();
        assert!(words.starts_with("gpu_big-[1-2] can never start"), "{words}");
        assert!(words.contains("hostname_label: false"), "{words}");
        assert!(told("NodeName=1st Features=shape=S,ad=1\n").is_some());
        assert_eq!(told("NodeName=gpu-big-1 Features=shape=S,ad=1\n"), None);
        assert_eq!(told("NodeName=login_1\n"), None, "no machine of ours");
    }

    #[test]
    fn generic_resources_were_made_that_slurm_does_not_know() {
        let cluster = |limits: &str| {
            let limits = Limits::read("limits.yaml", limits).unwrap();
            generate(&limits, &Shapes::oci(), &GenerateOptions::default()).unwrap()
        };
        let gpu = cluster("g: {shape: VM.Standard2.1, max: 1, gres: 'gpu:a100:2'}\n");
        let told = |conf: &str| gres(&gpu, &config(conf));
        assert!(told("").unwrap().contains("set GresTypes=gpu,"));
        assert!(told("GresTypes=craynetwork\n").unwrap().contains("GresTypes=craynetwork,gpu,"));
        assert_eq!(told("GresTypes=license,gpu\n"), None);
        assert_eq!(gres(&cluster("VM.Standard2.1: 1\n"), &config("")), None);
    }
}
