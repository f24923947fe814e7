//! A cloud that lists instances without their addresses, as OCI does.

use crate::common::run;
use crate::common::{Bed, conf, groups, names, node};
use cloud_core::memory::MemoryCloudSettings;
use provision::plan::FindingKind;
use slurmctl::{Controller as _, NodeAddress};

fn bed(nodes: &str) -> Bed {
    let mut settings = MemoryCloudSettings::default();
    settings.shows_addresses = false;
    Bed::with(nodes, settings)
}

#[tokio::test(start_paused = true)]
async fn a_wrong_address_is_seen_where_listings_have_none() {
    let bed = bed("n1");
    let (_, request) = bed.job(1).await;
    let report = bed.run(async |run| run::start(run, &names("n1"), &groups(&request)).await).await;
    assert!(report.is_success(), "{report:?}");
    let right = bed.slurm.node("n1").unwrap().address;
    let wrong = NodeAddress::new(node("n1"), "192.0.2.1".parse().unwrap());
    bed.slurm.set_addresses(&[wrong]).await.unwrap();
    let (plan, _) = bed.run(async |run| run::preview_reconcile(run).await).await;
    let found = plan.findings.iter().any(|found| found.kind == FindingKind::WrongAddress);
    assert!(found, "{plan}");
    bed.run(async |run| run::reconcile(run).await).await;
    assert_eq!(bed.slurm.node("n1").unwrap().address, right);
}

#[tokio::test(start_paused = true)]
async fn hosts_are_complete_where_listings_have_no_addresses() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("hosts");
    std::fs::write(&path, "127.0.0.1 localhost\n").unwrap();
    let mut bed = bed("n1");
    bed.config = conf("NodeName=n1 CPUs=2 Features=shape=small,ad=1 State=UNKNOWN");
    bed.files.hosts = Some(path.clone());
    let report = bed.run(async |run| run::deploy(run, None).await).await;
    assert!(report.is_success(), "{report:?}");
    let address = bed.live()[0].address.unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.contains(&format!("{address} n1")), "{text}");
}
