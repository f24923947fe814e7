//! What a job with `--reboot` does.

#![expect(clippy::panic, reason = "helpers of tests")]

use e2e::{Cluster, alone};

/// A cluster with one node up.
fn cluster(series: &str) -> Cluster {
    let cluster = Cluster::builder(series).nodes(1).suspend_time(600).start();
    let job = cluster.submit(&["--nodes=1"], "srun hostname");
    cluster.wait_job(job, "COMPLETED");
    cluster
}

fn boots(cluster: &Cluster) -> Option<u64> {
    let machines = cluster.machines();
    let [machine] = &machines[..] else { panic!("not one machine\n{}", cluster.story()) };
    cluster.cloud().boots(&machine.id)
}

/// 22.05 asks `ResumeProgram` to reboot; later releases run the job and ask nobody.
fn job_with_reboot(series: &str) {
    let cluster = cluster(series);
    let job = cluster.submit(&["--nodes=1", "--reboot"], "srun hostname");
    cluster.wait_job(job, "COMPLETED");
    let expected = if cluster.release().is_old() { 2 } else { 1 };
    assert_eq!(boots(&cluster), Some(expected), "{}", cluster.story());
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
    a_job_with_reboot_on_22_05: job_with_reboot("22.05");
    a_job_with_reboot_on_24_11: job_with_reboot("24.11");
    a_job_with_reboot_on_26_05: job_with_reboot("26.05");
}
