//! Machines that are kept warm: stopped and not terminated, and started again much sooner than others are launched.

use cloud_sim::{Recorded, State};
use e2e::{Cluster, USUAL, in_namespaces};
use std::time::{Duration, Instant};

const LIMITS: &str = "general: {shape: VM.Standard2.1, zone: '1', max: 3, warm: 1}\n";

/// How long a launch takes, and a start of what was stopped: less than four tenths of it.
const LAUNCH: f64 = 8.0;
const START: f64 = 1.0;

/// Runs a job on that many nodes. Returns the time from `sbatch` until it ran.
fn run(cluster: &Cluster, nodes: usize) -> Duration {
    let begun = Instant::now();
    let job = cluster.submit(&[&format!("--nodes={nodes}")], "srun hostname");
    cluster.wait_job(job, "COMPLETED");
    let took = begun.elapsed();
    println!("{nodes} nodes: completed {:.1} s after sbatch", took.as_secs_f64());
    took
}

fn states(cluster: &Cluster) -> Vec<State> {
    cluster.machines().into_iter().map(|machine| machine.lifecycle_state).collect()
}

fn launches(cluster: &Cluster) -> usize {
    let is_launch = |request: &Recorded| request.operation == "LaunchInstance";
    cluster.cloud().requests().iter().filter(|it| is_launch(it)).count()
}

#[test]
fn a_stopped_machine_is_used_first_and_comes_in_a_fraction_of_the_time() {
    in_namespaces(|| {
        let cluster = Cluster::builder(USUAL)
            .limits(LIMITS)
            .suspend_time(1)
            .cloud(|settings| {
                settings.timing.provision = LAUNCH;
                settings.timing.start = START;
                settings.timing.stop = 0.5;
            })
            .start();
        let launched = run(&cluster, 2);
        cluster.until("one of two machines is kept", || states(&cluster) == [State::Stopped]);
        assert_eq!(launches(&cluster), 2);
        cluster.until("the nodes sleep", || {
            cluster.nodes().values().all(|state| state.contains("POWERED_DOWN"))
        });
        let started = run(&cluster, 1);
        assert_eq!(launches(&cluster), 2, "{}", cluster.story());
        let ratio = started.as_secs_f64() / launched.as_secs_f64();
        println!("a start takes {ratio:.2} of the time of a launch");
        cluster.until("it is kept again", || states(&cluster) == [State::Stopped]);
        let _ = cluster.well("reconcile", &["--apply"]);
        assert_eq!(states(&cluster), [State::Stopped]);
        let _ = cluster.well("stopnode", &["--all", "--force"]);
        cluster.until("nothing is left", || states(&cluster).is_empty());
    });
}
