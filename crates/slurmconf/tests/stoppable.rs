//! Which nodes slurmctld stops, and which it spares.

use hostlist::Hostlist;
use slurmconf::{Config, SlurmVersion};

#[test]
fn nodes_before_a_count_were_spared_where_slurm_counts_them_too() {
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
            let kept = all.difference(&config.stoppable(&all, version));
            assert_eq!(kept.to_string(), spared, "{said} in {version}");
        }
    }
}

#[test]
fn nodes_that_a_node_set_spares_counted_as_stopped() {
    let nodes = "SuspendProgram=/s\nResumeProgram=/r\nSuspendTime=600\nNodeName=n[1-2] Features=big\n\
                 NodeName=n[3-4]\nNodeSet=large Feature=big\nNodeSet=few Nodes=n4\n";
    // What is stopped nevertheless; before 23.11 these are nodes that nobody knows.
    let cases = [("ALL", ""), ("large", "n[3-4]"), ("few,n1", "n[2-3]"), ("large:1,few", "n[1-3]")];
    for (said, stopped) in cases {
        let config = Config::parse(&format!("{nodes}SuspendExcNodes={said}\n")).unwrap();
        let all: Hostlist = "n[1-4]".parse().unwrap();
        let found = config.stoppable(&all, SlurmVersion::new(24, 11)).to_string();
        assert_eq!(found, stopped, "{said}");
        let plain = if said == "few,n1" { "n[2-4]" } else { "n[1-4]" };
        let found = config.stoppable(&all, SlurmVersion::new(22, 5)).to_string();
        assert_eq!(found, plain, "{said} in 22.05");
    }
}
