//! Which nodes slurmctld stops, and which it spares.

use hostlist::Hostlist;
use slurmconf::{Config, NodeDef, SlurmVersion, SuspendTime};

#[test]
fn before_23_11_a_count_covers_all_items_before_it() {
    let nodes = "SuspendProgram=/s\nResumeProgram=/r\nSuspendTime=600\nNodeName=nid[1-30]\n";
    // What 22.05 surely spares, and what 23.11 does.
    let cases = [
        ("nid[1-3],nid[10-20]:4", "", "nid[1-3]"),
        ("nid[10-20]:4,nid[1-3]", "nid[1-3]", "nid[1-3]"),
        ("nid1,nid[2-3]:1,nid4,nid[5-6]:1,nid[7-8],nid9", "nid[7-9]", "nid[1,4,7-9]"),
        ("nid[10-20]:4", "", ""),
        ("nid[1-3]", "nid[1-3]", "nid[1-3]"),
    ];
    for (said, old, new) in cases {
        let config = Config::parse(&format!("{nodes}SuspendExcNodes={said}\n")).unwrap();
        let all = config.nodes.first().unwrap().names.clone();
        for (version, spared) in [(SlurmVersion::new(23, 2), old), (SlurmVersion::new(23, 11), new)]
        {
            let kept = all.difference(&config.suspendable(&all, version));
            assert_eq!(kept.to_string(), spared, "{said} in {version}");
        }
    }
}

#[test]
fn node_sets_exclude_their_nodes_from_suspension() {
    let nodes = "SuspendProgram=/s\nResumeProgram=/r\nSuspendTime=600\nNodeName=n[1-2] Features=big\n\
                 NodeName=n[3-4]\nNodeSet=large Feature=big\nNodeSet=few Nodes=n4\n";
    // What is stopped nevertheless; before 23.11 these are nodes that nobody knows.
    let cases = [("ALL", ""), ("large", "n[3-4]"), ("few,n1", "n[2-3]"), ("large:1,few", "n[1-3]")];
    for (said, stopped) in cases {
        let config = Config::parse(&format!("{nodes}SuspendExcNodes={said}\n")).unwrap();
        let all: Hostlist = "n[1-4]".parse().unwrap();
        let found = config.suspendable(&all, SlurmVersion::new(24, 11)).to_string();
        assert_eq!(found, stopped, "{said}");
        let plain = if said == "few,n1" { "n[2-4]" } else { "n[1-4]" };
        let found = config.suspendable(&all, SlurmVersion::new(22, 5)).to_string();
        assert_eq!(found, plain, "{said} in 22.05");
    }
}

#[test]
fn a_nodes_own_suspend_time_comes_first() {
    let programs = "SuspendProgram=/s\nResumeProgram=/r\n";
    // As 26.05 reads them: the node's, its partitions', the cluster's.
    let cases = [
        ("SuspendTime=600\nNodeName=n1 SuspendTime=INFINITE\nNodeName=n2\n", "n2", true),
        ("NodeName=n1 SuspendTime=60\nNodeName=n2\n", "n1", true),
        (
            "NodeName=n[1-2] SuspendTime=60\nPartitionName=p Nodes=ALL SuspendTime=INFINITE\n",
            "n[1-2]",
            true,
        ),
        (
            "NodeName=n1 SuspendTime=-1\nNodeName=n2\nPartitionName=p Nodes=ALL SuspendTime=60\n",
            "n2",
            true,
        ),
        ("NodeName=DEFAULT SuspendTime=60\nNodeName=n1\nNodeName=n2 SuspendTime=-1\n", "n1", true),
        ("NodeName=n[1-2] SuspendTime=INFINITE\n", "", false),
    ];
    let all: Hostlist = "n[1-2]".parse().unwrap();
    for (text, stopped, powers) in cases {
        let config = Config::parse(&format!("{programs}{text}")).unwrap();
        assert_eq!(config.has_power_saving(), powers, "{text}");
        let found = config.suspendable(&all, SlurmVersion::new(26, 5));
        assert_eq!(found.to_string(), stopped, "{text}");
    }
    let own: NodeDef = "NodeName=n1 CPUs=2 SuspendTime=010".parse().unwrap();
    assert_eq!((own.suspend_time, &*own.other), (Some(SuspendTime::Seconds(10)), &[][..]));
    assert_eq!(own.to_string(), "NodeName=n1 CPUs=2 SuspendTime=10");
    // Slurm before 26.05 refuses a line that has it.
    let none: NodeDef = "NodeName=n1 CPUs=2".parse().unwrap();
    assert_eq!(none.to_string(), "NodeName=n1 CPUs=2");
}
