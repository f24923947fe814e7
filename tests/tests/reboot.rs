//! `scontrol reboot` on the node and from the controller, and what a job with `--reboot` does.

#![expect(clippy::panic, clippy::unwrap_used, reason = "helpers of tests")]

use e2e::{Builder, Cluster, alone};
use std::fs;

const NODE: &str = "vm-standard2-1-ad1-0001";

/// A cluster with one node up.
fn cluster(builder: Builder) -> Cluster {
    let cluster = builder.nodes(1).suspend_time(600).start();
    let job = cluster.submit(&["--nodes=1"], "srun hostname");
    cluster.wait_job(job, "COMPLETED");
    cluster
}

fn boots(cluster: &Cluster) -> Option<u64> {
    let machines = cluster.machines();
    let [machine] = &machines[..] else { panic!("not one machine\n{}", cluster.story()) };
    cluster.cloud().boots(&machine.id)
}

fn reboots(builder: Builder) {
    let cluster = cluster(builder);
    let before = cluster.machines().remove(0);
    assert_eq!(boots(&cluster), Some(1));
    cluster.scontrol(&format!("reboot ASAP nextstate=RESUME {NODE}"));
    cluster.until("the machine has booted again", || boots(&cluster) == Some(2));
    cluster.until("the node is back", || {
        let node = cluster.node(NODE);
        node.contains("State=IDLE+CLOUD ") && !node.contains("REBOOT")
    });
    let job = cluster.submit(&["--nodes=1"], "srun hostname");
    cluster.wait_job(job, "COMPLETED");
    let after = cluster.machines().remove(0);
    assert_eq!((after.id, after.image_id), (before.id, before.image_id), "the same machine");
    assert_eq!(boots(&cluster), Some(2), "once is enough");
}

const OLD: &str = "ocid1.image.oc1.phx.img000";
const NEW: &str = "ocid1.image.oc1.phx.new";

/// 22.05 asks `ResumeProgram` to reboot; later releases run the job and ask nobody.
fn job_with_reboot(series: &str) {
    let cluster = cluster(Cluster::builder(series).config(&format!("image_id: {OLD}")));
    let job = cluster.submit(&["--nodes=1", "--reboot"], "srun hostname");
    cluster.wait_job(job, "COMPLETED");
    let expected = if cluster.release().is_old() { 2 } else { 1 };
    assert_eq!(boots(&cluster), Some(expected), "{}", cluster.story());
    // What a job's reboot gives a node is for the configuration to say.
    let config = cluster.dir().join("etc/startnode.yaml");
    let text = fs::read_to_string(&config).unwrap();
    fs::write(&config, text.replace(OLD, NEW)).unwrap();
    if cluster.release().is_old() {
        let _ = cluster.well("rebuild", &["submit", "--jobs", "main"]);
        let rebuilt = || cluster.machines().iter().all(|it| it.image_id.as_deref() == Some(NEW));
        cluster.until("the machine has the new image", rebuilt);
        assert_eq!(boots(&cluster), Some(expected + 1), "{}", cluster.story());
        let job = cluster.submit(&["--nodes=1"], "srun hostname");
        cluster.wait_job(job, "COMPLETED");
        return;
    }
    let refused = cluster.run("rebuild", &["submit", "--jobs", "main", "--image", "citc-ol9-new"]);
    let words = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success(), "{words}");
    assert!(words.contains("elastic") || words.contains("CLOUD"), "it says why: {words}");
    assert_eq!(boots(&cluster), Some(expected), "nothing was done");
}

macro_rules! on_all {
    ($($name:ident: $call:expr;)*) => {$(
        #[test]
        fn $name() {
            alone(|| $call);
        }
    )*};
}

on_all! {
    on_the_node_on_22_05: reboots(Cluster::builder("22.05").reboot_on_the_node());
    on_the_node_on_24_11: reboots(Cluster::builder("24.11").reboot_on_the_node());
    on_the_node_on_26_05: reboots(Cluster::builder("26.05").reboot_on_the_node());
    from_the_controller_on_22_05: reboots(Cluster::builder("22.05"));
    from_the_controller_on_24_11: reboots(Cluster::builder("24.11"));
    from_the_controller_on_26_05: reboots(Cluster::builder("26.05"));
    a_job_with_reboot_on_22_05: job_with_reboot("22.05");
    a_job_with_reboot_on_24_11: job_with_reboot("24.11");
    a_job_with_reboot_on_26_05: job_with_reboot("26.05");
}
