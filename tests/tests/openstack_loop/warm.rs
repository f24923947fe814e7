//! Servers that are kept warm: stopped or shelved in a real Nova, and started again.

use e2e::{Cluster, OpenStack};

/// A group of its own, so that other scenarios on the same cloud have none of it.
pub(crate) const LIMITS: &str =
    "kept: {shape: m1.tiny, max: 2, warm: 1, weight: 50, partition: kept}\n";

/// The beginning of its nodes' names.
pub(crate) const GROUP: &str = "kept-";

const NODE: &str = "kept-0001";
const HERE: &[&str] = &["--partition=kept"];

/// What a real hypervisor needs for a copy of the image, which a start spares, and ours has none of.
const COPY: &str = "delay 6";

/// The part of a launch that a start may take, from slurmctld's call until slurmd has registered.
const PART: f64 = 0.4;

/// The servers that are there, by their state and image.
fn servers(cluster: &Cluster<OpenStack>) -> Vec<(String, String)> {
    cluster.present().into_iter().map(|server| (server.state, server.image)).collect()
}

/// Waits until the group sleeps, and its one server is in this state with this image.
fn rest(cluster: &Cluster<OpenStack>, state: &str, image: &str) {
    let expected = [(state.to_owned(), cluster.site().image(image))];
    cluster.until(&format!("one server is {state}"), || {
        let asleep = |state: &String| state.contains("POWERED_DOWN");
        cluster.nodes().values().all(asleep) && servers(cluster) == expected
    });
}

pub(crate) fn stops_and_starts(cluster: &Cluster<OpenStack>) {
    let cloud = cluster.site();
    let before = cloud.ever();
    cloud.order("spawn", COPY);
    let launched = cluster.registers_after(HERE, NODE).as_secs_f64();
    rest(cluster, "SHUTOFF", "image-1");
    let started = cluster.registers_after(HERE, NODE).as_secs_f64();
    cloud.order("spawn", "");
    let part = started / launched;
    println!("one node: launched {launched:.2} s, started {started:.2} s: {part:.2}");
    assert_eq!(cloud.ever() - before, 1, "{}", cluster.story());
    assert!(part <= PART, "{part:.2}\n{}", cluster.story());
    rest(cluster, "SHUTOFF", "image-1");
    let job = cluster.submit(&[HERE, &["--nodes=2"]].concat(), "srun hostname");
    cluster.wait_job(job, "COMPLETED");
    rest(cluster, "SHUTOFF", "image-1");
    assert_eq!(cloud.ever() - before, 2, "one of both was there\n{}", cluster.story());
    cluster.configure("image_id", cloud.image("image-2"));
    let _ = cluster.registers_after(HERE, NODE);
    assert_eq!(cloud.ever() - before, 3, "a server with the old image is not started");
    rest(cluster, "SHUTOFF", "image-2");
}

/// The server that is kept is shelved after its next job, and comes back with its image.
pub(crate) fn shelves(cluster: &Cluster<OpenStack>) {
    let ever = cluster.site().ever();
    cluster.configure("shelve", true);
    let _ = cluster.registers_after(HERE, NODE);
    rest(cluster, "SHELVED_OFFLOADED", "image-2");
    let took = cluster.registers_after(HERE, NODE);
    println!("a shelved server came back in {:.2} s", took.as_secs_f64());
    rest(cluster, "SHELVED_OFFLOADED", "image-2");
    assert_eq!(cluster.site().ever(), ever, "{}", cluster.story());
    let _ = cluster.well("stopnode", &["--all", "--force"]);
    cluster.wait_empty();
}
