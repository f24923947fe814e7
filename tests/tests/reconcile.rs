//! `reconcile` finds what does not fit, and puts right what it may.

use cloud_sim::State;
use e2e::{Cluster, USUAL, in_namespaces};

fn node(number: u32) -> String {
    format!("vm-standard2-1-ad1-{number:04}")
}

/// Four possible nodes, of which so many are up; one that is silent for so many seconds is down.
fn cluster_with(up: u32, slurmd_timeout: u32) -> Cluster {
    let cluster = Cluster::builder(USUAL)
        .nodes(4)
        .suspend_time(600)
        .slurmd_timeout(slurmd_timeout)
        .elastic("cooldown: 3s, grace: 0s")
        .start();
    let job = cluster.submit(&[&format!("--nodes={up}")], "srun hostname");
    cluster.wait_job(job, "COMPLETED");
    cluster
}

fn cluster(up: u32) -> Cluster {
    cluster_with(up, 300)
}

/// Reconciles until the condition holds, and requires that the repair was reported. A machine or a job is ended only when the
/// finding is seen a second time.
fn repairs(cluster: &Cluster, finding: &str, node: &str, mut condition: impl FnMut() -> bool) {
    let mut said = String::new();
    cluster.until(&format!("{finding} of {node} is repaired"), || {
        said.push_str(&cluster.well("reconcile", &["--apply"]));
        condition()
    });
    let repaired = |line: &str| line.contains(&format!("{finding} (repaired) {node}"));
    assert!(said.lines().any(repaired), "{said}\n{}", cluster.story());
}

#[test]
fn an_orphan_machine_is_terminated() {
    in_namespaces(|| {
        let cluster = cluster(1);
        // Started by hand, it never boots: Slurm knows nothing of it.
        let orphan = node(4);
        cluster.fate(&orphan, "never");
        let _ = cluster.run("startnode", &[&orphan]);
        assert!(cluster.live().contains(&orphan), "{}", cluster.story());
        let seen = cluster.well("reconcile", &[]);
        assert!(seen.contains(&orphan), "{seen}");
        assert!(cluster.live().contains(&orphan), "a preview changes nothing");
        repairs(&cluster, "orphan", &orphan, || !cluster.live().contains(&orphan));
        assert_eq!(cluster.live(), [node(1)], "the others stay");
    });
}

#[test]
fn a_node_whose_machine_vanished_returns_to_slurm() {
    in_namespaces(|| {
        // Slurm doubts a node some seconds before it gives it up.
        let cluster = cluster_with(1, 60);
        let end = cluster.dir().join("end");
        let script = format!("until [ -e {} ]; do sleep 0.1; done", end.display());
        let job = cluster.submit(&["--nodes=1", "--nodelist", &node(1)], &script);
        cluster.wait_job(job, "RUNNING");
        let lost = cluster.machines().remove(0);
        cluster.cloud().set_state(&lost.id, State::Terminated);
        let seen = cluster.well("reconcile", &[]);
        assert!(seen.contains(&node(1)), "{seen}");
        assert_eq!(cluster.job(job, "Restarts"), "0", "a preview changes nothing");
        std::fs::write(end, "").unwrap();
        repairs(&cluster, "ghost", &node(1), || cluster.job(job, "Restarts") != "0");
        cluster.wait_job(job, "COMPLETED");
        let now: Vec<_> = cluster.machines().into_iter().map(|machine| machine.id).collect();
        assert!(!now.is_empty() && !now.contains(&lost.id), "it ran on another machine: {now:?}");
    });
}

#[test]
fn a_duplicate_is_reported_and_not_terminated() {
    in_namespaces(|| {
        let cluster = cluster(1);
        let twin = cluster.twin(&node(1));
        for _ in 0..3 {
            let said = cluster.well("reconcile", &["--apply"]);
            assert!(said.contains(&twin), "{said}");
        }
        assert_eq!(cluster.live(), [node(1), node(1)]);
    });
}

#[test]
fn a_node_down_and_powered_down_is_returned() {
    in_namespaces(|| {
        let cluster = cluster(1);
        let down = node(3);
        // What slurmctld says of a node that never came.
        let node = format!("nodename={down}");
        let reason = "reason=ResumeTimeout reached";
        let _ = cluster.ask("scontrol", &["update", &node, "state=down", reason]);
        let states =
            |word: &str| cluster.nodes().get(&down).is_some_and(|state| state.contains(word));
        cluster.until("it is down", || states("DOWN+CLOUD"));
        repairs(&cluster, "down", &down, || states("IDLE+CLOUD"));
    });
}

#[test]
fn a_wrong_address_is_corrected() {
    in_namespaces(|| {
        // Not so soon down that Slurm is first: what it does then is another scenario's.
        let cluster = cluster_with(1, 90);
        let (name, right) = (node(1), cluster.machines().remove(0));
        let right = cluster.cloud().address(&right.id);
        cluster.scontrol(&format!("update nodename={name} nodeaddr=10.77.99.99"));
        let address = || cluster.node_fields("NodeAddr").remove(&name).unwrap_or_default();
        assert_eq!(address(), "10.77.99.99");
        repairs(&cluster, "wrong_address", &name, || address() == right);
        let job = cluster.submit(&["--nodes=1"], "srun hostname");
        cluster.wait_job(job, "COMPLETED");
    });
}
