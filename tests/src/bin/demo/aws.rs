//! The demo in AWS: moto's server behind a proxy.

use crate::show::{Show, Totals};
use e2e::{Aws, Cluster, USUAL};
use std::time::Instant;

pub(crate) fn run(keep: bool) {
    println!("moto's server starts, which takes some seconds");
    let begun = Instant::now();
    let cluster = Cluster::builder(USUAL).limits("t3.small: 8\n").suspend_time(600).start_on_aws();
    let version = cluster.release().version();
    let mut show = Show::new(cluster, begun);
    let [old, new] = ["image-1", "image-2"].map(|name| show.cluster.site().image(name).to_owned());
    show.screen.name_image(&old, "image-1");
    show.screen.name_image(&new, "image-2");
    show.screen.say(&format!(
        "A cluster of 8 possible nodes: slurmctld {version}, EC2's API by moto, no instances"
    ));
    show.three_jobs();
    full_zone(&mut show);
    show.reconcile();
    show.new_image("citc-slurm-compute-image-2", &new);
    if keep {
        show.stay();
    }
    show.idle_nodes_go();
    show.leave_pictures("demo-aws");
    let cloud = show.cluster.site();
    let requests = cloud.proxy().counts().values().sum();
    let totals = Totals { started: cloud.instances().len(), requests: ("API requests", requests) };
    show.summary(&totals);
}

fn full_zone(show: &mut Show<Aws>) {
    let room = show.cluster.live().len();
    show.cluster.site().set_room(Some("eu-west-1a"), Some(room));
    show.screen.say(
        "Zone eu-west-1a is full: InsufficientInstanceCapacity. A job of 8 nodes gets its eighth elsewhere",
    );
    let job = show.submit("eight", 8, "srun sleep 2 && srun hostname");
    show.tell_of(job, "capacity");
    show.cluster.site().set_room(None, None);
}
