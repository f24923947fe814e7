//! `reconcile` finds what does not fit, and puts right what it may.

use cloud_sim::State;
use e2e::{Cluster, USUAL, alone};

fn node(number: u32) -> String {
    format!("vm-standard2-1-ad1-{number:04}")
}

/// Four possible nodes, of which so many are up.
fn cluster(up: u32) -> Cluster {
    let cluster = Cluster::builder(USUAL)
        .nodes(4)
        .suspend_time(600)
        .slurmd_timeout(6)
        .elastic("cooldown: 3s, grace: 0s")
        .start();
    let job = cluster.submit(&[&format!("--nodes={up}")], "srun hostname");
    cluster.wait_job(job, "COMPLETED");
    cluster
}

/// Runs it until something is so: what ends a machine or a job is done only when it is seen a second time.
fn applied(cluster: &Cluster, what: &str, mut look: impl FnMut() -> bool) {
    cluster.until(what, || {
        let _ = cluster.well("reconcile", &["--apply"]);
        look()
    });
}

#[test]
fn an_orphan_machine_is_ended() {
    alone(|| {
        let cluster = cluster(1);
        // Started by hand, it never boots: Slurm knows nothing of it.
        let orphan = node(4);
        cluster.fate(&orphan, "never");
        let _ = cluster.run("startnode", &[&orphan]);
        assert!(cluster.live().contains(&orphan), "{}", cluster.story());
        let seen = cluster.well("reconcile", &[]);
        assert!(seen.contains(&orphan), "{seen}");
        assert!(cluster.live().contains(&orphan), "a preview changes nothing");
        applied(&cluster, "the orphan is gone", || !cluster.live().contains(&orphan));
        assert_eq!(cluster.live(), [node(1)], "the others stay");
    });
}

#[test]
fn a_machine_that_vanished_under_a_job_is_given_back() {
    alone(|| {
        let cluster = cluster(1);
        let end = cluster.dir().join("end");
        let script = format!("until [ -e {} ]; do sleep 0.1; done", end.display());
        let job = cluster.submit(&["--nodes=1"], &script);
        cluster.wait_job(job, "RUNNING");
        let lost = cluster.machines().remove(0);
        assert!(cluster.cloud().set_state(&lost.id, State::Terminated));
        std::fs::write(end, "").unwrap();
        let _reconcile = cluster.begin("reconcile", &["--apply", "--watch", "1"]);
        cluster.wait_job(job, "COMPLETED");
        assert_ne!(cluster.job(job, "Restarts"), "0", "it ran again, on another machine");
        assert!(cluster.machines().iter().all(|machine| machine.id != lost.id));
    });
}

#[test]
fn a_duplicate_is_told_and_not_ended() {
    alone(|| {
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
    alone(|| {
        let cluster = cluster(1);
        let down = node(3);
        // What slurmctld says of a node that never came.
        let node = format!("nodename={down}");
        let reason = "reason=ResumeTimeout reached";
        let _ = cluster.ask("scontrol", &["update", &node, "state=down", reason]);
        let states =
            |word: &str| cluster.nodes().get(&down).is_some_and(|state| state.contains(word));
        cluster.until("it is down", || states("DOWN+CLOUD"));
        applied(&cluster, "the node is back", || states("IDLE+CLOUD"));
    });
}
