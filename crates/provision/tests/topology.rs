//! Slurm's topology: told with the address of a node that has started, and kept by reconcile.

use crate::common::run;
use crate::common::{Bed, names};
use provision::{Files, Outcome};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use slurmconf::SlurmVersion;
use slurmctl::memory::{MemorySlurm, MemorySlurmSettings};
use std::fs;
use std::path::Path;

fn bed(version: SlurmVersion, topology: &Path) -> Bed {
    let mut bed = Bed::new("n[1-3]");
    let mut settings = MemorySlurmSettings::cloud(&"n[1-3]".parse().unwrap());
    settings.version = version;
    bed.slurm = MemorySlurm::new(settings);
    bed.files = Files { topology: Some(topology.to_owned()), ..Files::default() };
    bed
}

async fn started(bed: &Bed) -> Vec<Option<String>> {
    let report = bed.run(async |run| run::start(run, &names("n[1-2]"), &[]).await).await;
    assert_eq!(report.with(Outcome::Up).count(), 2, "{report:?}");
    assert!(report.warnings.is_empty(), "{report:?}");
    ["n1", "n2", "n3"].map(|name| bed.slurm.node(name).unwrap().topology).into()
}

#[tokio::test(start_paused = true)]
async fn a_node_is_in_its_place_as_soon_as_it_has_started() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("topology.conf");
    let place = Some("default:elastic:zone-1".to_owned());
    let bed = bed(SlurmVersion::new(26, 5), &path);
    assert_eq!(started(&bed).await, [place.clone(), place, None]);
}

#[tokio::test(start_paused = true)]
async fn a_start_tells_no_place_to_releases_that_cannot_move_nodes() {
    let directory = tempfile::tempdir().unwrap();
    let bed = bed(SlurmVersion::new(24, 11), &directory.path().join("topology.conf"));
    assert_eq!(started(&bed).await, [None, None, None]);
}

#[tokio::test(start_paused = true)]
async fn a_start_tells_no_place_without_a_topology_file() {
    let directory = tempfile::tempdir().unwrap();
    let mut bed = bed(SlurmVersion::new(26, 5), &directory.path().join("topology.conf"));
    bed.files = Files::default();
    assert_eq!(started(&bed).await, [None, None, None]);
}

#[tokio::test(start_paused = true)]
async fn a_fifo_and_an_endless_file_in_place_of_the_topology_are_errors() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("topology.conf");
    let bed = bed(SlurmVersion::new(26, 5), &path);
    let failures = async || {
        let report = bed.run(async |run| run::reconcile(run).await).await;
        report.failures.into_iter().filter(|text| text.contains("topology.conf")).count()
    };
    assert_eq!(failures().await, 0, "there is none yet");
    fs::remove_file(&path).unwrap();
    mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    assert_eq!(failures().await, 1, "a FIFO");
    fs::remove_file(&path).unwrap();
    fs::File::create(&path).unwrap().set_len(1 << 40).unwrap();
    assert_eq!(failures().await, 1, "a file without end");
}
