//! A finish that ends before it is done, and what the next one makes of it.

use crate::common::Bed;
use crate::common::run;
use provision::Cancel;
use provision::Report;
use provision::plan::Finish;
use slurmconf::{Cluster, Config, Document, GenerateOptions, Limits, SlurmVersion, generate};
use slurmctl::memory::{MemorySlurm, MemorySlurmSettings, NodeSpec};
use std::path::Path;
use std::time::Duration;

fn cluster(limits: &str) -> Cluster {
    let limits = Limits::read("limits.yaml", limits).unwrap();
    generate(&limits, &slurm_testbed::shapes(), &GenerateOptions::default()).unwrap()
}

fn specs(cluster: &Cluster) -> Vec<NodeSpec> {
    let names = cluster.nodes.iter().flat_map(|def| def.names.node_names().unwrap());
    names.map(NodeSpec::cloud).collect()
}

/// A cluster with the nodes of these limits, and its slurm.conf in a folder.
fn bed(folder: &Path, limits: &str) -> (Bed, String) {
    let cluster = cluster(limits);
    let text = format!("# STARTNODES\n{cluster}# ENDNODES\nPartitionName=main Nodes=ALL\n");
    let path = folder.join("slurm.conf");
    std::fs::write(&path, &text).unwrap();
    let mut settings = MemorySlurmSettings::cloud(&"n1".parse().unwrap());
    settings.nodes = specs(&cluster);
    let mut bed = Bed::new("n1");
    bed.slurm = MemorySlurm::new(settings);
    bed.config = Config::parse(&text).unwrap();
    bed.files.slurm_conf = Some(path);
    (bed, text)
}

async fn finish(bed: &Bed, text: &str, limits: &str, unapplied: bool) -> Report {
    let (cluster, document) = (cluster(limits), Document::parse(text));
    bed.slurm.set_conf_nodes(specs(&cluster));
    let version = SlurmVersion::new(24, 11);
    let (document, cluster, patience) = (&document, &cluster, Duration::ZERO);
    let (force, reload) = (false, true);
    let request = Finish { document, cluster, version, force, reload, unapplied, patience };
    bed.run(async |run| run::finish(run, &request).await).await.unwrap()
}

/// Whoever sees the difference, and says no.
#[tokio::test(start_paused = true)]
async fn a_finish_that_is_cancelled_before_it_begins_writes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    for limits in [
        "VM.Standard2.1: 2",
        "VM.Standard2.2: 1",
        "'VM.Standard2.1': {shape: VM.Standard2.1, max: 1, weight: 7}",
    ] {
        let (mut bed, text) = bed(folder.path(), "VM.Standard2.1: 1");
        let (signal, cancel) = Cancel::new();
        bed.cancel = cancel;
        signal.cancel();
        let report = finish(&bed, &text, limits, false).await;
        assert_eq!(report.exit_code(), 1, "{limits}: {report:?}");
        let now = std::fs::read_to_string(folder.path().join("slurm.conf")).unwrap();
        assert_eq!(now, text, "{limits}");
        assert_eq!(bed.slurm.all_nodes().len(), 1, "{limits}");
    }
}

/// slurmctld says which nodes it has, and not with which lines.
#[tokio::test(start_paused = true)]
async fn lines_that_a_killed_run_wrote_are_told_by_the_next() {
    let folder = tempfile::tempdir().unwrap();
    let limits = "VM.Standard2.1: 1";
    let (bed, text) = bed(folder.path(), limits);
    let known = finish(&bed, &text, limits, false).await;
    assert!(known.is_success() && !known.slurm_reloaded, "{known:?}");
    let caught_up = finish(&bed, &text, limits, true).await;
    assert!(caught_up.is_success() && caught_up.slurm_reloaded, "{caught_up:?}");
    bed.slurm.set_unreachable(true);
    let down = finish(&bed, &text, limits, true).await;
    assert!(
        down.is_success() && !down.slurm_reloaded,
        "it will read them when it starts: {down:?}"
    );
}
