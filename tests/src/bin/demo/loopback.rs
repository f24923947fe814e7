//! The demo in the loopback cloud.

use crate::show::{Show, Totals};
use cloud_sim::Capacity;
use e2e::{Cluster, Loopback, USUAL};
use std::fs;
use std::time::Instant;

const OLD: &str = "ocid1.image.oc1.phx.img000";
const NEW: &str = "ocid1.image.oc1.phx.new";

#[expect(clippy::expect_used, reason = "a demo without its prices is none")]
pub(crate) fn run(keep: bool) {
    let begun = Instant::now();
    let cluster = Cluster::builder(USUAL)
        .nodes(8)
        .suspend_time(600)
        // Slow enough to watch.
        .cloud(|cloud| (cloud.timing.provision, cloud.timing.terminate) = (2.0, 1.5))
        .config("fallback: [{zone: 2}]")
        .config(&format!("image_id: {OLD}"))
        .config("budget: {per_day: 100, per_month: 1000}")
        .start();
    let prices = "currency: USD\nshapes: {VM.Standard2.1: 0.06}\n";
    fs::write(cluster.dir().join("etc/prices.yaml"), prices).expect("a directory of ours");
    let version = cluster.release().version();
    let mut show = Show::new(cluster, begun);
    show.screen.name_image(OLD, "img000");
    show.screen.name_image(NEW, "new");
    show.screen.say(&format!(
        "A cluster of 8 possible nodes: slurmctld {version}, a loopback cloud, no machines"
    ));
    show.three_jobs();
    full_zone(&mut show);
    show.reconcile();
    show.new_image("citc-ol9-new", NEW);
    if keep {
        show.stay();
    }
    show.idle_nodes_go();
    show.leave_pictures("demo");
    let cloud = show.cluster.cloud();
    let (started, requests) = (cloud.instances().len(), cloud.counts().values().sum());
    show.summary(&Totals { started, requests: ("API requests", requests) });
}

fn full_zone(show: &mut Show<Loopback>) {
    let room = u64::try_from(show.cluster.live().len()).unwrap_or_default();
    let availability_domain = Some("Uocm:PHX-AD-1".to_owned());
    let full = Capacity { availability_domain, shape: None, instances: room, fails_later: false };
    show.cluster.cloud().set_capacity(&[full]);
    show.screen.say(
        "Zone AD-1 is full: \"Out of host capacity\". A job of 8 nodes gets its eighth elsewhere",
    );
    let job = show.submit("eight", 8, "srun sleep 2 && srun hostname");
    show.tell_of(job, "capacity");
    show.cluster.cloud().set_capacity(&[]);
}
