//! Programs and slurmctld that die at bad moments: no machine left over, none twice, all jobs complete.

use cloud_sim::{Fault, Rule};
use e2e::{Cluster, USUAL, in_namespaces};

/// All jobs complete, no machine is left, and no node has two at any moment in between.
fn ends_clean(cluster: &Cluster, jobs: &[u32]) {
    for job in jobs {
        cluster.until(&format!("job {job} is COMPLETED"), || {
            no_twins(cluster);
            cluster.job(*job, "JobState") == "COMPLETED"
        });
    }
    cluster.wait_empty();
}

fn no_twins(cluster: &Cluster) {
    let mut names = cluster.live();
    names.sort();
    let all = names.clone();
    names.dedup();
    assert_eq!(names, all, "{}", cluster.story());
}

/// Has the next answer to an operation come so late that startnode can be killed while it waits.
fn hold(cluster: &Cluster, operation: &str) {
    cluster.cloud().clear_requests();
    cluster.cloud().add_fault(&Rule::once(operation, Fault::Delay { millis: 20_000 }));
}

fn asked(cluster: &Cluster, operation: &str) -> bool {
    cluster.cloud().counts().contains_key(operation)
}

#[test]
fn a_startnode_killed_at_any_of_five_points_leaves_one_machine_each() {
    in_namespaces(|| {
        let cluster = Cluster::builder(USUAL).nodes(5).resume_timeout(60).start();
        let mut jobs = Vec::new();
        let mut submit =
            || jobs.push(cluster.submit(&["--nodes=1", "--exclusive"], "srun hostname"));
        for operation in
            ["ListImages", "ListInstances", "LaunchInstance", "ListVnicAttachments", "GetVnic"]
        {
            hold(&cluster, operation);
            submit();
            cluster.until(operation, || asked(&cluster, operation));
            assert_ne!(cluster.kill("startnode"), 0, "it waits for {operation}");
            cluster.cloud().clear_faults();
        }
        no_twins(&cluster);
        let _reconcile = cluster.begin("reconcile", &["--apply", "--watch", "1"]);
        ends_clean(&cluster, &jobs);
    });
}

#[test]
fn a_slurmctld_killed_during_a_resume_finds_its_nodes() {
    in_namespaces(|| {
        let cluster = Cluster::builder(USUAL)
            .nodes(2)
            .resume_timeout(60)
            .elastic("cooldown: 3s, grace: 0s")
            .start();
        hold(&cluster, "LaunchInstance");
        let job = cluster.submit(&["--nodes=2", "--job-name=survivor"], "srun hostname");
        cluster.until("LaunchInstance", || asked(&cluster, "LaunchInstance"));
        // What it has not saved is lost with it.
        let state = cluster.dir().join("state/job_state");
        cluster.until("the job is saved", || {
            let saved = std::fs::read(&state).unwrap_or_default();
            saved.windows(8).any(|window| window == b"survivor")
        });
        cluster.stop_slurmctld("KILL");
        cluster.cloud().clear_faults();
        cluster.start_slurmctld();
        no_twins(&cluster);
        // It asks again for what it had not saved, and does not believe in machines that have booted before that: these
        // go after ResumeTimeout, and reconcile brings the nodes back, as after everything that went wrong.
        let _reconcile = cluster.begin("reconcile", &["--apply", "--watch", "1"]);
        ends_clean(&cluster, &[job]);
    });
}

#[test]
fn a_startnode_called_twice_launches_once() {
    in_namespaces(|| {
        let cluster = Cluster::builder(USUAL).nodes(2).start();
        hold(&cluster, "LaunchInstance");
        let job = cluster.submit(&["--nodes=2"], "srun hostname");
        cluster.until("LaunchInstance", || asked(&cluster, "LaunchInstance"));
        let _second = cluster.begin("startnode", &["vm-standard2-1-ad1-[0001-0002]"]);
        cluster.cloud().clear_faults();
        cluster.wait_job(job, "COMPLETED");
        let launches = cluster.cloud().counts().get("LaunchInstance").copied();
        let tokens = cluster.cloud().instances().len();
        assert_eq!(tokens, 2, "{launches:?} launches\n{}", cluster.story());
        ends_clean(&cluster, &[job]);
    });
}

#[test]
fn a_stop_during_a_start_leaves_no_machine() {
    in_namespaces(|| {
        let cluster = Cluster::builder(USUAL).nodes(2).start();
        cluster.cloud().add_fault(&Rule::once("LaunchInstance", Fault::Delay { millis: 3000 }));
        let job = cluster.submit(&["--nodes=2"], "srun hostname");
        cluster.until("LaunchInstance", || asked(&cluster, "LaunchInstance"));
        cluster.scontrol(
            "update nodename=vm-standard2-1-ad1-[0001-0002] state=power_down_force reason=test",
        );
        ends_clean(&cluster, &[job]);
    });
}
