//! The demo in a real OpenStack.

use crate::show::{Show, Totals};
use e2e::{Cluster, OpenStack, USUAL};
use std::time::Instant;

pub(crate) fn run(keep: bool) {
    println!("Keystone, Nova, Neutron, Glance and Placement start, which takes half a minute");
    let begun = Instant::now();
    let cluster =
        Cluster::builder(USUAL).limits("m1.tiny: 8\n").suspend_time(600).start_on_openstack();
    let version = cluster.release().version();
    let mut show = Show::new(cluster, begun);
    let [old, new] = ["image-1", "image-2"].map(|name| show.cluster.site().image(name));
    show.screen.name_image(&old, "image-1");
    show.screen.name_image(&new, "image-2");
    show.screen.say(&format!(
        "A cluster of 8 possible nodes: slurmctld {version}, a real OpenStack, no servers"
    ));
    show.three_jobs();
    quota(&mut show);
    show.reconcile();
    show.new_image("image-2", &new);
    if keep {
        show.stay();
    }
    show.idle_nodes_go();
    show.leave_pictures("demo-openstack");
    let cloud = show.cluster.site();
    let requests = u64::try_from(cloud.requests()).unwrap_or_default();
    let totals = Totals { started: cloud.ever(), requests: ("requests to Nova", requests) };
    show.summary(&totals);
}

/// There is one zone here, so that what a full one is elsewhere is a quota.
fn quota(show: &mut Show<OpenStack>) {
    let servers = show.cluster.live().len();
    show.cluster.site().set_quota(servers);
    show.screen.say(&format!(
        "The quota is {servers} servers: a job of 8 nodes waits, until an operator raises it"
    ));
    let job = show.submit("eight", 8, "srun sleep 2 && srun hostname");
    show.watch(|cluster| cluster.log("elastic.log").contains("quota"));
    show.screen.say("The quota is 100 servers");
    show.cluster.site().set_quota(100);
    show.tell_of(job, "quota");
}
