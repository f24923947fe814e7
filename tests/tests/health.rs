//! Machines that fail their health check, or that the cloud takes away, are replaced; what a human drains stays.

use cloud_sim::{Notice, State};
use e2e::{Cluster, USUAL, in_namespaces};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;

fn node(number: u32) -> String {
    format!("vm-standard2-1-ad1-{number:04}")
}

/// Two possible nodes, which stay once they are there.
fn cluster() -> Cluster {
    Cluster::builder(USUAL).nodes(2).suspend_time(600).elastic("cooldown: 3s, grace: 0s").start()
}

fn state(cluster: &Cluster, node: &str) -> String {
    cluster.nodes().remove(node).unwrap_or_default()
}

/// The machine of a node.
fn machine(cluster: &Cluster, node: &str) -> Option<String> {
    let mut machines = cluster.machines().into_iter();
    machines.find(|machine| machine.display_name == node).map(|machine| machine.id)
}

fn reconcile_until(cluster: &Cluster, what: &str, mut condition: impl FnMut() -> bool) {
    cluster.until(what, || {
        let _ = cluster.well("reconcile", &["--apply"]);
        condition()
    });
}

/// Has Slurm run a health check on every machine and before every job, which fails for the nodes of which there is a file in the
/// directory `sick`.
fn check_health(cluster: &Cluster) {
    let (at, bin) = (cluster.dir().display(), cluster.release().dir().join("bin"));
    fs::create_dir(cluster.dir().join("sick")).unwrap();
    let path = cluster.dir().join("bin/check");
    let script = format!(
        "#!/bin/sh\nPATH=/usr/bin:/bin\nname=$(hostname)\n[ -e {at}/sick/$name ] || exit 0\n\
         SLURM_CONF={at}/etc/slurm.conf {}/scontrol update nodename=$name state=fail reason=\"bad fan\"\nexit 1\n",
        bin.display()
    );
    fs::write(&path, script).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    let conf = cluster.dir().join("etc/slurm.conf");
    let lines = format!(
        "HealthCheckProgram={0}\nHealthCheckInterval=2\nHealthCheckNodeState=ANY\nProlog={0}\n",
        path.display()
    );
    let text = fs::read_to_string(&conf).unwrap();
    let parameters = "SchedulerParameters=";
    assert!(text.contains(parameters), "{text}");
    let text = text.replace(parameters, &format!("{parameters}nohold_on_prolog_fail,"));
    fs::write(&conf, lines + &text).unwrap();
    cluster.scontrol("reconfigure");
}

#[test]
fn a_machine_that_fails_its_check_is_replaced_and_its_job_completes_elsewhere() {
    in_namespaces(|| {
        let cluster = cluster();
        check_health(&cluster);
        cluster.let_go(&[&format!("sick/{}", node(1))]);
        let job = cluster.submit(&["--nodes=1", "--requeue"], "hostname");
        cluster.until("the machine fails its check", || state(&cluster, &node(1)).contains("FAIL"));
        let bad = machine(&cluster, &node(1)).unwrap();
        reconcile_until(&cluster, "the machine is gone", || {
            machine(&cluster, &node(1)).as_deref() != Some(&bad)
        });
        cluster.wait_job(job, "COMPLETED");
        assert_eq!(cluster.hosts(job).into_iter().collect::<Vec<_>>(), [node(2)]);
        // More than once if it came to the next machine of the same node.
        assert_ne!(cluster.job(job, "Restarts"), "0", "{}", cluster.story());
        fs::remove_file(cluster.dir().join("sick").join(node(1))).unwrap();
        // With a good machine, the node is as good as any other.
        let again = cluster.submit(&["--nodes=2"], "srun hostname");
        reconcile_until(&cluster, "both nodes run a job", || {
            cluster.job(again, "JobState") == "COMPLETED"
        });
        assert_ne!(machine(&cluster, &node(1)), Some(bad));
    });
}

#[test]
fn a_failing_machine_stays_as_long_as_its_job_runs_and_an_admins_drain_stays_for_good() {
    in_namespaces(|| {
        let cluster = cluster();
        let end = cluster.wait_for_file("end");
        let job = cluster.submit(&["--nodes=1"], &end);
        let other = cluster.submit(&["--nodes=1", "--nodelist", &node(2)], "hostname");
        cluster.wait_job(job, "RUNNING");
        cluster.wait_job(other, "COMPLETED");
        let (bad, held) = (machine(&cluster, &node(1)), machine(&cluster, &node(2)));
        let update = |node: &str, words: &[&str]| {
            let node = format!("nodename={node}");
            let _ = cluster.ask("scontrol", &[&["update", &node], words].concat());
        };
        update(&node(1), &["state=fail", "reason=bad fan"]);
        update(&node(2), &["state=drain", "reason=fan broken, ask Ann"]);
        for _ in 0..3 {
            let _ = cluster.well("reconcile", &["--apply"]);
        }
        let reason = cluster.node(&node(1));
        let ours = "elastic: drained for replacement: failed its health check: bad fan";
        assert!(reason.contains(ours), "{reason}");
        assert_eq!(machine(&cluster, &node(1)), bad, "a job runs there");
        cluster.let_go(&["end"]);
        cluster.wait_job(job, "COMPLETED");
        assert_eq!(cluster.job(job, "Restarts"), "0");
        reconcile_until(&cluster, "the machine is gone", || machine(&cluster, &node(1)) != bad);
        let next = cluster.submit(&["--nodes=1"], "hostname");
        cluster.wait_job(next, "COMPLETED");
        assert_eq!(cluster.hosts(next).into_iter().collect::<Vec<_>>(), [node(1)]);
        assert_eq!(machine(&cluster, &node(2)), held);
        let drained = cluster.node(&node(2));
        assert!(drained.contains("DRAIN") && drained.contains("fan broken, ask Ann"), "{drained}");
    });
}

/// Runs the watch of a machine once, from outside.
fn watch(cluster: &Cluster, node: &str) {
    let metadata = cluster.cloud().metadata(&machine(cluster, node).unwrap());
    let words = ["--csp", "oracle", "--once", "--node", node, "--metadata", &metadata];
    let _ = cluster.well("nodewatch", &words);
}

#[test]
fn a_preempted_job_is_requeued_and_completes_and_a_maintenance_is_reserved() {
    in_namespaces(|| {
        let cluster = cluster();
        let script = format!(
            "trap 'touch {}/told' TERM; {}",
            cluster.dir().display(),
            cluster.wait_for_file("end")
        );
        let job = cluster.submit(&["--nodes=1", "--requeue"], &script);
        cluster.wait_job(job, "RUNNING");
        let id = machine(&cluster, &node(1)).unwrap();
        let maintenance = Some("2036-01-01T02:00:00Z".to_owned());
        cluster.cloud().announce(&id, &Notice { maintenance, ..Notice::default() });
        watch(&cluster, &node(1));
        let reserved = || cluster.ask("scontrol", &["--oneliner", "show", "reservation"]);
        assert!(reserved().contains("StartTime=2036-01-01T02:00:00"), "{}", reserved());
        assert_eq!(cluster.job(job, "JobState"), "RUNNING");
        cluster.cloud().announce(&id, &Notice { preemption: true, ..Notice::default() });
        watch(&cluster, &node(1));
        cluster.until("the job is requeued", || cluster.job(job, "Restarts") == "1");
        assert!(cluster.node(&node(1)).contains("preemption notice"), "{}", cluster.story());
        assert!(!reserved().contains("elastic_maintenance"), "the next machine is another");
        // What was announced happens.
        cluster.cloud().set_state(&id, State::Terminated);
        reconcile_until(&cluster, "the node may have another machine", || {
            let state = state(&cluster, &node(1));
            state.contains("POWERED_DOWN") && !state.contains("DRAIN")
        });
        assert!(cluster.log("elastic.log").contains("requeued"), "{}", cluster.story());
        cluster.wait_job(job, "RUNNING");
        assert!(!cluster.machines().iter().any(|machine| machine.id == id), "on another machine");
        cluster.let_go(&["end"]);
        cluster.wait_job(job, "COMPLETED");
        cluster.suspend_after(1);
        cluster.wait_empty();
    });
}
