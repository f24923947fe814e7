//! Checks that the generated nodes and partitions fit the rest of slurm.conf.

use super::MarkedFile;
use crate::site::Site;
use cloud_core::Description;
use hostlist::Hostlist;
use slurmconf::{Cluster, Config, NodeDef, PartitionDef};
use std::collections::BTreeSet;

/// The new partitions that slurm.conf also defines outside the markers, with which slurmctld would not start.
#[must_use]
pub fn duplicate_partitions(
    cluster: &Cluster,
    marked: &MarkedFile,
    config: &Config,
) -> BTreeSet<String> {
    twice(&cluster.partitions, &marked.parsed(), config)
}

/// The new partitions that are also defined outside the section, which now has those of `section`.
fn twice(new: &[PartitionDef], section: &Config, all: &Config) -> BTreeSet<String> {
    let count =
        |config: &Config, name: &str| config.partitions.iter().filter(|it| it.name == name).count();
    let names = new.iter().map(|partition| &partition.name);
    names.filter(|name| count(all, name) > count(section, name)).cloned().collect()
}

/// A warning about generic resources that `GresTypes` lacks.
#[must_use]
pub fn missing_gres(cluster: &Cluster, config: &Config) -> Option<String> {
    let line = gres_types(cluster, config)?;
    Some(format!(
        "slurm.conf does not name the generic resources of the nodes, and Slurm ignores them: set {line}, and give the nodes \
         the gres.conf of finish --print-gres"
    ))
}

/// The `GresTypes` line with all types that slurm.conf names and the nodes need, if any is missing.
#[must_use]
pub fn gres_types(cluster: &Cluster, config: &Config) -> Option<String> {
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

/// A warning about new persistent nodes, which `finish` does not start.
#[must_use]
pub fn unstarted(cluster: &Cluster, config: &Config) -> Option<String> {
    let known = config.index();
    let is_new = |name: &String| known.get(name).is_none_or(|node| node.is_cloud());
    let new: Hostlist = cluster.persistent_nodes().iter().filter(is_new).collect();
    (!new.is_empty()).then(|| {
        format!(
            "{new}: new persistent nodes, and finish starts no machines; run resize instead, unless another tool starts them"
        )
    })
}

/// An error about nodes that the cloud can never launch.
#[must_use]
pub fn unlaunchable(nodes: &[NodeDef], site: &Site, cloud: &Description) -> Option<String> {
    let zoneless = || without_zone(nodes, site, cloud).filter(|_| cloud.needs_zone);
    zoneless().or_else(|| without_host_name(nodes, site, cloud.is_host_name?))
}

/// An error about nodes of this cluster whose names are not valid host names.
fn without_host_name(
    nodes: &[NodeDef],
    site: &Site,
    is_host_name: fn(&str) -> bool,
) -> Option<String> {
    let section = nodes.iter().filter(|node| site.places(node).is_some());
    let names = section.flat_map(|node| node.names.iter());
    let nodes: Hostlist = names.filter(|name| !is_host_name(name.as_str())).collect();
    (!nodes.is_empty()).then(|| {
        format!(
            "{nodes} can never start: the name of a node is the host name of its machine, at most 63 letters, digits and \
             hyphens, the first a letter; rename the group, or set hostname_label: false"
        )
    })
}

/// An error about nodes without a zone on a cloud that requires one.
fn without_zone(nodes: &[NodeDef], site: &Site, cloud: &Description) -> Option<String> {
    let lacks = |node: &&NodeDef| {
        site.places(node).is_some_and(|places| places.iter().all(|place| place.zone.is_none()))
    };
    let nodes: Hostlist = nodes.iter().filter(lacks).flat_map(|node| node.names.iter()).collect();
    (!nodes.is_empty()).then(|| {
        let term = cloud.zone_term;
        format!(
            "{nodes} can never start: this cloud launches no machine whose node names no {term}; in limits.yaml, give the \
             group `zone: '1'`, or write shape, {term} and count: `VM.Standard2.1: {{1: 4}}`"
        )
    })
}

/// An error about a default partition that the limits do not generate.
#[must_use]
pub fn default_partition(wanted: Option<&str>, cluster: &Cluster) -> Option<String> {
    let names: Vec<&str> = cluster.partitions.iter().map(|it| it.name.as_str()).collect();
    let wanted = wanted.filter(|wanted| !names.contains(wanted))?;
    let there = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    Some(format!("--default-partition {wanted}: limits.yaml has no such partition, only {there}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use slurmconf::{Limits, Memory, NodeShape, Shapes, generate};

    fn config(text: &str) -> Config {
        Config::parse(text).unwrap()
    }

    #[test]
    fn a_partition_outside_the_markers_is_a_duplicate() {
        let new = [PartitionDef::new("compute"), PartitionDef::new("gpu")];
        let compute = "PartitionName=compute Nodes=ALL\n";
        let none = BTreeSet::new();
        assert_eq!(twice(&new, &config(""), &config("")), none);
        assert_eq!(
            twice(&new, &config(compute), &config(compute)),
            none,
            "it was in the section before"
        );
        let found = twice(&new, &config(""), &config(compute));
        assert_eq!(found, BTreeSet::from(["compute".to_owned()]));
    }

    #[test]
    fn the_examples_have_each_partition_once() {
        let conf = config(include_str!("../../../../examples/slurm.conf"));
        let text = include_str!("../../../../examples/openstack/limits.yaml");
        let mut shapes = Shapes::new();
        for name in ["m1.large", "g1.a100"] {
            shapes.insert(name, NodeShape::new(4, Memory::Nominal(8192)));
        }
        let limits = Limits::read("limits.yaml", text).unwrap();
        let cluster = generate(&limits, &shapes, &slurmconf::GenerateOptions::default()).unwrap();
        assert_eq!(cluster.partitions.len(), 2);
        assert_eq!(twice(&cluster.partitions, &config(""), &conf), BTreeSet::new());
    }

    #[test]
    fn persistent_nodes_that_nobody_starts_are_reported() {
        let limits = Limits::read("limits.yaml", "g: {shape: VM.Standard2.1, min: 2, max: 4}\n");
        let cluster = generate(
            &limits.unwrap(),
            &slurm_testbed::shapes(),
            &slurmconf::GenerateOptions::default(),
        )
        .unwrap();
        let text = unstarted(&cluster, &config("NodeName=g-0001 Features=shape=S\n")).unwrap();
        assert!(text.starts_with("g-0002: new persistent nodes"), "{text}");
        assert_eq!(unstarted(&cluster, &config("NodeName=g-[0001-0002]\n")), None);
        let elastic = config("NodeName=g-[0001-0004] State=CLOUD\n");
        let text = unstarted(&cluster, &elastic).unwrap();
        assert!(text.starts_with("g-[0001-0002]: new persistent nodes"), "{text}");
    }

    #[test]
    fn nodes_without_a_zone_are_unlaunchable() {
        let cloud = Description::new("a cloud");
        let mut site = Site::new(crate::Identity::cluster("c1"));
        let nodes = config(
            "NodeName=a[1-2] Features=shape=S,ad=None\nNodeName=b1 Features=shape=S,ad=1\nNodeName=login\n",
        );
        let text = without_zone(&nodes.nodes, &site, &cloud).unwrap();
        assert!(text.starts_with("a[1-2] can never start"), "{text}");
        assert!(text.contains("zone: '1'") && text.contains("{1: 4}"), "{text}");
        let zone = Some(cloud_core::Zone::new("AD-2"));
        site.fallback = vec![crate::Fallback { zone, ..Default::default() }];
        assert_eq!(without_zone(&nodes.nodes, &site, &cloud), None, "there is another place");
    }

    #[test]
    fn nodes_whose_names_are_no_host_names_are_unlaunchable() {
        let site = Site::new(crate::Identity::cluster("c1"));
        let is_host_name =
            |name: &str| name.starts_with(|c: char| c.is_ascii_alphabetic()) && !name.contains('_');
        let text = |line: &str| without_host_name(&config(line).nodes, &site, is_host_name);
        let words = text("NodeName=gpu_big-[1-2],n1 Features=shape=S,ad=1\n").unwrap();
        assert!(words.starts_with("gpu_big-[1-2] can never start"), "{words}");
        assert!(words.contains("hostname_label: false"), "{words}");
        assert!(text("NodeName=1st Features=shape=S,ad=1\n").is_some());
        assert_eq!(text("NodeName=gpu-big-1 Features=shape=S,ad=1\n"), None);
        assert_eq!(text("NodeName=login_1\n"), None, "no machine of the cluster");
    }

    #[test]
    fn generic_resources_that_slurm_does_not_know_are_reported() {
        let cluster = |limits: &str| {
            let limits = Limits::read("limits.yaml", limits).unwrap();
            generate(&limits, &slurm_testbed::shapes(), &slurmconf::GenerateOptions::default())
                .unwrap()
        };
        let gpu = cluster("g: {shape: VM.Standard2.1, max: 1, gres: 'gpu:a100:2'}\n");
        let text = |conf: &str| missing_gres(&gpu, &config(conf));
        assert!(text("").unwrap().contains("set GresTypes=gpu,"));
        assert!(text("GresTypes=craynetwork\n").unwrap().contains("GresTypes=craynetwork,gpu,"));
        assert_eq!(text("GresTypes=license,gpu\n"), None);
        assert_eq!(missing_gres(&cluster("VM.Standard2.1: 1\n"), &config("")), None);
    }
}
