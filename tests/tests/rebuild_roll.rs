//! A new image for elastic nodes, a few at a time.

use e2e::{Cluster, alone};

const OLD: &str = "ocid1.image.oc1.phx.img000";

/// A cluster with all nodes up, on the old image.
fn cluster(series: &str, nodes: u32, resume_timeout: u32) -> Cluster {
    let cluster = Cluster::builder(series)
        .nodes(nodes)
        .suspend_time(600)
        .resume_timeout(resume_timeout)
        .config(&format!("image_id: {OLD}"))
        .start();
    let job = cluster.submit(&[&format!("--nodes={nodes}")], "srun hostname");
    cluster.wait_job(job, "COMPLETED");
    cluster
}

fn on_image(cluster: &Cluster, image: &str) -> usize {
    let machines = cluster.machines();
    machines.iter().filter(|machine| machine.image_id.as_deref() == Some(image)).count()
}

#[test]
fn a_node_that_does_not_come_back_stops_the_roll() {
    alone(|| {
        let cluster = cluster(e2e::USUAL, 3, 10);
        for number in 1..=3 {
            cluster.fate(&format!("vm-standard2-1-ad1-000{number}"), "never");
        }
        let rolled = cluster.run("rebuild", &["submit", "--image", "citc-ol9-new", "--batch", "1"]);
        assert_eq!(rolled.status.code(), Some(1), "{rolled:?}\n{}", cluster.story());
        assert_eq!(on_image(&cluster, OLD), 2, "the others are not touched\n{}", cluster.story());
    });
}
