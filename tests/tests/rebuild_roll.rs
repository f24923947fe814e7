//! A new image for elastic nodes, a few at a time, while jobs run.

use cloud_sim::{Fault, Rule};
use e2e::{Cluster, on_each_release};

const OLD: &str = "ocid1.image.oc1.phx.img000";
const NEW: &str = "ocid1.image.oc1.phx.new";

/// A cluster with all nodes up, on the old image.
fn cluster(series: &str, nodes: usize) -> Cluster {
    let cluster = Cluster::builder(series)
        .nodes(nodes)
        .suspend_time(600)
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

fn rolls(series: &str) {
    let cluster = cluster(series, 8);
    assert_eq!(on_image(&cluster, OLD), 8);
    let run = |_| cluster.submit(&["--nodes=2", "--exclusive"], "srun sleep 2 && srun hostname");
    let jobs: Vec<u32> = (0..8).map(run).collect();
    cluster.until("jobs run", || jobs.iter().any(|job| cluster.job(*job, "JobState") == "RUNNING"));
    let printed = cluster
        .well("rebuild", &["submit", "--image", "citc-ol9-new", "--batch", "4", "--canary", "1"]);
    assert_eq!(on_image(&cluster, NEW), 8, "{printed}\n{}", cluster.story());
    assert_eq!(cluster.machines().len(), 8);
    for job in jobs {
        cluster.wait_job(job, "COMPLETED");
        assert_eq!(cluster.job(job, "Restarts"), "0", "no job was disturbed");
        assert_eq!(cluster.hosts(job).len(), 2);
    }
    // All have it: nothing is done.
    let boots = || -> Vec<_> {
        cluster.machines().iter().map(|machine| cluster.cloud().boots(&machine.id)).collect()
    };
    let before = boots();
    let _ = cluster.well("rebuild", &["submit", "--image", "citc-ol9-new"]);
    assert_eq!(boots(), before);
    let last = cluster.submit(&["--nodes=8"], "srun hostname");
    cluster.wait_job(last, "COMPLETED");
    assert_eq!(cluster.hosts(last).len(), 8);
}

fn stops(series: &str) {
    let cluster = cluster(series, 3);
    cluster.set("ResumeTimeout", 40);
    for number in 1..=3 {
        cluster.fate(&format!("vm-standard2-1-ad1-000{number}"), "never");
    }
    let rolled = cluster.run("rebuild", &["submit", "--image", "citc-ol9-new", "--batch", "1"]);
    assert_eq!(rolled.status.code(), Some(1), "{rolled:?}\n{}", cluster.story());
    assert_eq!(on_image(&cluster, OLD), 2, "the others are not touched\n{}", cluster.story());
}

/// The cloud refuses: the roll knows at once, and does not wait until Slurm has given the node up.
fn stops_at_once(series: &str) {
    let cluster = cluster(series, 2);
    let refused = Fault::answer(400, "InvalidParameter", "no such image");
    cluster.cloud().add_fault(&Rule::always("UpdateInstance", refused));
    let rolled = cluster.run("rebuild", &["submit", "--image", "citc-ol9-new", "--batch", "1"]);
    assert_eq!(rolled.status.code(), Some(1), "{rolled:?}\n{}", cluster.story());
    let reasons = cluster.ask("scontrol", &["show", "node", "-o"]);
    assert!(!reasons.contains("timed out"), "{rolled:?}\n{}", cluster.story());
    assert_eq!(reasons.matches("not rebuilt: ").count(), 1, "{reasons}");
    assert_eq!(on_image(&cluster, OLD), 2);
}

on_each_release! {
    a_cloud_that_refuses_stops_the_roll: stops_at_once;
    eight_nodes: rolls;
    a_node_that_does_not_come_back_stops_the_roll: stops;
}
