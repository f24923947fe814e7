//! Which nodes that are always there slurmctld would stop, by what others wrote.

use provision::plan::node_section;
use slurmconf::{Cluster, Config, Document, Limits, SlurmVersion, generate};

const POWER: &str = "SuspendProgram=/s\nResumeProgram=/r\nSuspendTime=600\n";

/// A cluster of these nodes, which are always there, in a partition of their own.
fn cluster(nodes: &str) -> Cluster {
    let limits = Limits::read("limits.yaml", "VM.Standard2.1: 1").unwrap();
    let mut cluster =
        generate(&limits, &slurm_testbed::shapes(), &slurmconf::GenerateOptions::default())
            .unwrap();
    cluster.nodes = vec![format!("NodeName={nodes} Features=big State=UNKNOWN").parse().unwrap()];
    cluster.node_sets.clear();
    cluster.partitions = vec![format!("PartitionName=main Nodes={nodes}").parse().unwrap()];
    cluster
}

/// The section for `n[1-3]` below what others wrote.
fn section(others: &str, version: SlurmVersion) -> slurmconf::Result<String> {
    section_below(&format!("{POWER}{others}"), version)
}

fn section_below(text: &str, version: SlurmVersion) -> slurmconf::Result<String> {
    let text = format!("{text}# STARTNODES\n# ENDNODES\n");
    let config = Config::parse(&text).unwrap();
    node_section(&cluster("n[1-3]"), &Document::parse(text), &config, version)
}

#[test]
fn nodes_with_a_count_behind_them_stay_spared() {
    let others = "NodeName=login[1-2]\nSuspendExcNodes=n[1-3],login[1-2]:1\n";
    assert!(section(others, SlurmVersion::new(24, 11)).is_ok());
    let refused = section(others, SlurmVersion::new(22, 5)).unwrap_err().to_string();
    assert!(refused.contains("n[1-3],login[1-2]:1,n[1-3] instead"), "{refused}");
    let mended = "NodeName=login[1-2]\nSuspendExcNodes=n[1-3],login[1-2]:1,n[1-3]\n";
    assert!(section(mended, SlurmVersion::new(22, 5)).is_ok());
}

#[test]
fn nodes_that_a_node_set_spares_are_accepted() {
    for said in ["NodeSet=large Feature=big\nSuspendExcNodes=large\n", "SuspendExcNodes=ALL\n"] {
        assert!(section(said, SlurmVersion::new(24, 11)).is_ok(), "{said}");
        assert!(section(said, SlurmVersion::new(22, 5)).is_err(), "{said}");
    }
}

#[test]
fn nodes_that_a_default_line_above_spares_are_accepted() {
    let version = SlurmVersion::new(24, 11);
    let others = "NodeName=login1\nSuspendExcNodes=login1\n";
    for default in ["PartitionName=DEFAULT", "NodeName=DEFAULT"] {
        let said = format!("{others}{default} SuspendTime=INFINITE\n");
        assert!(section(&said, version).is_ok(), "{said}");
        let again = format!("{said}{default} SuspendTime=60\n");
        assert!(section(&again, version).is_err(), "{again}");
    }
    let below = format!(
        "{POWER}{others}# STARTNODES\n# ENDNODES\nPartitionName=DEFAULT SuspendTime=INFINITE\n"
    );
    let (config, document) = (Config::parse(&below).unwrap(), Document::parse(below));
    assert!(node_section(&cluster("n[1-3]"), &document, &config, version).is_err());
}

/// Whoever switches power saving on later does not come by `finish` again.
#[test]
fn nodes_are_spared_before_power_saving_is_on_for_a_partition_of_others() {
    let version = SlurmVersion::new(24, 11);
    for (parts, ours) in [("login", true), ("main", false), ("login,main", false)] {
        let others = "NodeName=login1\nPartitionName=login Nodes=login1\n";
        let text = format!("{others}SuspendExcParts={parts}\n");
        for text in [text.clone(), format!("{POWER}{text}")] {
            let section = section_below(&text, version).unwrap();
            assert_eq!(section.contains("SuspendExcNodes=n[1-3]"), ours, "{text}{section}");
        }
    }
}
