//! What the scenarios have in common.

use e2e::{Cluster, OpenStack};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

/// Runs a part of a scenario, and says how long it took.
pub(crate) fn part<T>(what: &str, scenario: impl FnOnce() -> T) -> T {
    let begun = Instant::now();
    let made = scenario();
    println!("{what}: {:.1} s", begun.elapsed().as_secs_f32());
    made
}

/// The name of an elastic node.
pub(crate) fn name(number: u32) -> String {
    format!("c1-m1-tiny-{number:04}")
}

/// Runs a job of so many elastic nodes, which is to run on each of them.
pub(crate) fn runs_on(cluster: &Cluster<OpenStack>, nodes: u32) {
    let job = cluster.submit(&[&format!("--nodes={nodes}")], "srun hostname");
    completes(cluster, job);
    let names: BTreeSet<_> = (1..=nodes).map(name).collect();
    assert_eq!(cluster.hosts(job), names, "{}", cluster.story());
}

/// Waits until a job has ended, which is to be well, and at the first go.
pub(crate) fn completes(cluster: &Cluster<OpenStack>, job: u32) {
    let mut state = String::new();
    cluster.until(&format!("job {job} has ended"), || {
        state = cluster.job(job, "JobState");
        !["PENDING", "CONFIGURING", "RUNNING", "COMPLETING"].contains(&&state[..])
    });
    assert_eq!(state, "COMPLETED", "job {job}\n{}", cluster.story());
    assert_eq!(cluster.job(job, "Restarts"), "0", "{}", cluster.story());
}

/// The servers of these nodes all have this image, and have booted in these ways.
pub(crate) fn expect(cluster: &Cluster<OpenStack>, nodes: &[String], image: &str, boots: &[&str]) {
    let cloud = cluster.site();
    let boots: Vec<String> = boots.iter().map(|&how| how.to_owned()).collect();
    let expected = nodes.iter().map(|node| (node.clone(), (cloud.image(image), boots.clone())));
    let servers = cluster.present().into_iter().filter(|server| nodes.contains(&server.name));
    let found = servers.map(|server| (server.name, (server.image, cloud.boots(&server.id))));
    let (found, expected) = (found.collect::<BTreeMap<_, _>>(), expected.collect());
    assert_eq!(found, expected, "{}", cluster.story());
}

/// How many of the servers of these nodes have booted since; asks the hypervisor, as Nova has better things to do.
pub(crate) fn booted(cluster: &Cluster<OpenStack>, nodes: &[String]) -> impl Fn() -> usize {
    let boots = |id: &str| cluster.site().boots(id).len();
    let servers = cluster.present().into_iter().filter(|server| nodes.contains(&server.name));
    let before: Vec<_> = servers.map(|server| (boots(&server.id), server.id)).collect();
    move || before.iter().filter(|(before, id)| boots(id) > *before).count()
}

/// What new servers and those that reboot are to have from now on.
pub(crate) fn configure(cluster: &Cluster<OpenStack>, image: &str) {
    cluster.configure("image_id", cluster.site().image(image));
}

/// Has Slurm reboot nodes as soon as they are free.
pub(crate) fn ask_reboot(cluster: &Cluster<OpenStack>, nodes: &[String]) {
    cluster.scontrol(&format!("reboot ASAP nextstate=RESUME {}", nodes.join(",")));
}

/// Has Slurm reboot nodes as soon as they are free, and waits until they are back.
pub(crate) fn reboot(cluster: &Cluster<OpenStack>, nodes: &[String]) {
    let booted = booted(cluster, nodes);
    ask_reboot(cluster, nodes);
    cluster.until("all servers have booted again", || booted() == nodes.len());
    back(cluster, nodes);
}

/// Waits until nodes are idle, and nothing else.
pub(crate) fn back(cluster: &Cluster<OpenStack>, nodes: &[String]) {
    cluster.until("all nodes are back", || {
        let states = cluster.nodes();
        let idle = |node: &String| {
            states.get(node).is_some_and(|state| state == "IDLE" || state == "IDLE+CLOUD")
        };
        nodes.iter().all(idle)
    });
}
