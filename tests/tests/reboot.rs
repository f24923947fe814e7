//! `scontrol reboot` on the node and from the controller, and what a job with `--reboot` does.

use e2e::{Builder, Cluster, on_each_release};

const NODE: &str = "vm-standard2-1-ad1-0001";

/// A cluster with one node up.
fn cluster(builder: Builder) -> Cluster {
    let cluster = builder.nodes(1).suspend_time(600).start();
    let job = cluster.submit(&["--nodes=1"], "srun hostname");
    cluster.wait_job(job, "COMPLETED");
    cluster
}

fn boots(cluster: &Cluster) -> u64 {
    let machines = cluster.machines();
    let [machine] = &machines[..] else { panic!("not one machine\n{}", cluster.story()) };
    cluster.cloud().boots(&machine.id)
}

fn reboots(builder: Builder) {
    let cluster = cluster(builder);
    let before = cluster.machines().remove(0);
    assert_eq!(boots(&cluster), 1);
    cluster.scontrol(&format!("reboot ASAP nextstate=RESUME {NODE}"));
    cluster.until("the machine has booted again", || boots(&cluster) == 2);
    cluster.until("the node is back", || {
        let node = cluster.node(NODE);
        node.contains("State=IDLE+CLOUD ") && !node.contains("REBOOT")
    });
    let job = cluster.submit(&["--nodes=1"], "srun hostname");
    cluster.wait_job(job, "COMPLETED");
    let after = cluster.machines().remove(0);
    assert_eq!((after.id, after.image_id), (before.id, before.image_id), "the same machine");
    assert_eq!(boots(&cluster), 2, "once is enough");
}

const OLD: &str = "ocid1.image.oc1.phx.img000";
const NEW: &str = "ocid1.image.oc1.phx.new";

/// 22.05 asks `ResumeProgram` to reboot; later releases run the job and ask nobody.
fn job_with_reboot(builder: Builder) {
    let cluster = cluster(builder.config(&format!("image_id: {OLD}")));
    let job = cluster.submit(&["--nodes=1", "--reboot"], "srun hostname");
    cluster.wait_job(job, "COMPLETED");
    let expected = if cluster.release().is_old() { 2 } else { 1 };
    assert_eq!(boots(&cluster), expected, "{}", cluster.story());
    // What a job's reboot gives a node is for the configuration to say.
    cluster.configure("image_id", NEW);
    if cluster.release().is_old() {
        let _ = cluster.well("rebuild", &["submit", "--jobs", "main"]);
        let rebuilt = || cluster.machines().iter().all(|it| it.image_id.as_deref() == Some(NEW));
        cluster.until("the machine has booted the new image", || {
            rebuilt() && boots(&cluster) == expected + 1
        });
        let job = cluster.submit(&["--nodes=1"], "srun hostname");
        cluster.wait_job(job, "COMPLETED");
        assert_eq!(boots(&cluster), expected + 1, "once is enough");
        return;
    }
    let refused = cluster.run("rebuild", &["submit", "--jobs", "main", "--image", "citc-ol9-new"]);
    let words = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success(), "{words}");
    assert!(words.contains("elastic") || words.contains("CLOUD"), "it says why: {words}");
    assert_eq!(boots(&cluster), expected, "nothing was done");
}

/// A node that is off is started as for any job, and has booted by that.
fn job_with_reboot_of_a_node_that_is_off(series: &str) {
    let cluster = Cluster::builder(series).nodes(1).suspend_time(600).start();
    let job = cluster.submit(&["--nodes=1", "--reboot"], "srun hostname");
    cluster.wait_job(job, "COMPLETED");
    assert_eq!(cluster.hosts(job).into_iter().collect::<Vec<_>>(), [NODE], "{}", cluster.story());
    assert_eq!(boots(&cluster), 1, "{}", cluster.story());
    assert_eq!(cluster.cloud().instances().len(), 1, "one machine, once");
}

on_each_release! {
    on_the_node: |series| reboots(Cluster::builder(series).reboot_on_the_node());
    from_the_controller: |series| reboots(Cluster::builder(series));
    a_job_with_reboot: |series| job_with_reboot(Cluster::builder(series));
    a_job_with_reboot_where_nodes_reboot_themselves:
        |series| job_with_reboot(Cluster::builder(series).reboot_on_the_node());
    a_job_with_reboot_of_a_node_that_is_off: job_with_reboot_of_a_node_that_is_off;
}
