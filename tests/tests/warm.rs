//! Machines that are kept warm: stopped and not terminated, and started again much sooner than others are launched.

use cloud_sim::{Recorded, State};
use e2e::{Cluster, USUAL, in_namespaces};

const LIMITS: &str = "general: {shape: VM.Standard2.1, zone: '1', max: 3, warm: 1}\n";
const NODE: &str = "c1-general-0001";
const OLD: &str = "ocid1.image.oc1.phx.img000";
const NEW: &str = "ocid1.image.oc1.phx.img001";

/// Until a machine runs. A launch copies the image to a new boot volume and makes a network card; a stopped machine has both.
const LAUNCH: f64 = 15.0;
const START: f64 = 2.0;

/// The part of a launch that a start may take, from slurmctld's call until slurmd has registered.
const PART: f64 = 0.4;

fn states(cluster: &Cluster) -> Vec<State> {
    cluster.machines().into_iter().map(|machine| machine.lifecycle_state).collect()
}

/// Requests to launch a machine, and to start one, that the cloud has accepted.
fn accepted(cluster: &Cluster) -> (usize, usize) {
    let requests = cluster.cloud().requests();
    let count = |is_one: fn(&Recorded) -> bool| {
        requests.iter().filter(|it| is_one(it) && it.status == Some(200)).count()
    };
    (count(|it| it.operation == "LaunchInstance"), count(|it| it.target.contains("action=START")))
}

/// Waits until all nodes are powered down and one machine is left, which is stopped.
fn rest(cluster: &Cluster) {
    cluster.until("the nodes sleep, and one machine is kept", || {
        let asleep = |state: &String| state.contains("POWERED_DOWN");
        states(cluster) == [State::Stopped] && cluster.nodes().values().all(asleep)
    });
}

#[test]
fn a_start_takes_less_than_four_tenths_of_a_launch_and_one_machine_is_kept_with_the_current_image()
{
    in_namespaces(|| {
        let cluster = Cluster::builder(USUAL)
            .limits(LIMITS)
            .suspend_time(1)
            .config(&format!("image_id: {OLD}"))
            .cloud(|settings| {
                settings.timing.provision = LAUNCH;
                settings.timing.start = START;
                settings.timing.stop = 0.5;
            })
            .start();
        let launched = cluster.registers_after(&[], NODE).as_secs_f64();
        rest(&cluster);
        let started = cluster.registers_after(&[], NODE).as_secs_f64();
        let part = started / launched;
        println!("one node: launched {launched:.2} s, started {started:.2} s: {part:.2}");
        assert_eq!(accepted(&cluster), (1, 1), "{}", cluster.story());
        assert!(part <= PART, "{part:.2}\n{}", cluster.story());
        rest(&cluster);
        let job = cluster.submit(&["--nodes=3"], "srun hostname");
        cluster.wait_job(job, "COMPLETED");
        rest(&cluster);
        assert_eq!(accepted(&cluster), (3, 2), "the third machine was there");
        let _ = cluster.well("reconcile", &["--apply"]);
        assert_eq!(states(&cluster), [State::Stopped]);
        cluster.configure("image_id", NEW);
        let _ = cluster.registers_after(&[], NODE);
        assert_eq!(accepted(&cluster), (4, 2), "a machine with the old image is not started");
        rest(&cluster);
        let [kept] = &cluster.machines()[..] else { panic!("{}", cluster.story()) };
        assert_eq!(kept.image_id.as_deref(), Some(NEW), "{}", cluster.story());
        let _ = cluster.well("stopnode", &["--all", "--force"]);
        cluster.until("nothing is left", || states(&cluster).is_empty());
    });
}
