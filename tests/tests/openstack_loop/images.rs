//! Elastic nodes get another image, or a reboot, while jobs run.

use crate::openstack_loop::steps::{
    ask_reboot, back, booted, completes, configure, expect, name, part, reboot, runs_on,
};
use e2e::{Cluster, Machine, OpenStack, USUAL, in_namespaces};

const NODES: u32 = 8;

#[test]
fn nodes_come_are_rebuilt_and_rebooted_and_go() {
    in_namespaces(|| {
        let cluster = part("an OpenStack and a Slurm", || {
            Cluster::builder(USUAL)
                .limits(&format!("m1.tiny: {NODES}\n"))
                .suspend_time(3600)
                .start_on_openstack()
        });
        part("8 nodes come", || runs_on(&cluster, NODES));
        part("a new image is rolled out", || rolls(&cluster));
        part("scontrol reboot, equal image", || reboots(&cluster));
        part("scontrol reboot, another image", || rebuilds(&cluster));
        cluster.suspend_after(2);
        part("8 nodes go", || cluster.wait_empty());
        assert_eq!(cluster.site().ever(), 8, "each node had one server");
        cluster.suspend_after(3600);
        part("4 nodes come", || runs_on(&cluster, 4));
        part("a rebuild that fails stops the roll", || fails(&cluster));
        part("a node that does not come back stops the roll", || does_not_come_back(&cluster));
    });
}

fn nodes() -> Vec<String> {
    (1..=NODES).map(name).collect()
}

/// A job on two nodes that runs until there is a file of its name.
fn hold(cluster: &Cluster<OpenStack>, file: &str) -> u32 {
    let script = format!("{}; srun hostname", cluster.wait_for_file(file));
    let job = cluster.submit(&["--nodes=2", "--exclusive"], &script);
    cluster.wait_job(job, "RUNNING");
    job
}

/// Waits for the end of a job on two nodes, and sees to it that nothing has disturbed it.
fn undisturbed(cluster: &Cluster<OpenStack>, job: u32) {
    completes(cluster, job);
    assert_eq!(cluster.hosts(job).len(), 2, "{}", cluster.story());
}

fn rolls(cluster: &Cluster<OpenStack>) {
    let running = hold(cluster, "rolls");
    let submit = |_| cluster.submit(&["--nodes=2", "--exclusive"], "srun sleep 2; srun hostname");
    let others: Vec<u32> = (0..6).map(submit).collect();
    let state = |job: &u32| cluster.job(*job, "JobState");
    cluster.until("others run, too", || others.iter().any(|job| state(job) == "RUNNING"));
    let words = ["submit", "--image", "image-2", "--batch", "4", "--canary", "1"];
    let roll = cluster.begin("rebuild", &words);
    cluster.until("the roll has begun", || {
        cluster.nodes().values().any(|state| state.contains("REBOOT"))
    });
    let late = cluster.submit(&["--nodes=2", "--exclusive"], "srun hostname");
    assert_eq!(state(&running), "RUNNING", "{}", cluster.story());
    cluster.let_go(&["rolls"]);
    for job in [running, late].into_iter().chain(others) {
        undisturbed(cluster, job);
    }
    let mut status = None;
    cluster.until("the roll has ended", || {
        status = roll.ended();
        status.is_some()
    });
    assert!(status.is_some_and(|status| status.success()), "{status:?}\n{}", cluster.story());
    expect(cluster, &nodes(), "image-2", &["spawn", "rebuild"]);
    let _ = cluster.well("rebuild", &["submit", "--image", "image-2"]);
    expect(cluster, &nodes(), "image-2", &["spawn", "rebuild"]);
    runs_on(cluster, NODES);
}

fn reboots(cluster: &Cluster<OpenStack>) {
    configure(cluster, "image-2");
    reboot(cluster, &nodes());
    expect(cluster, &nodes(), "image-2", &["spawn", "rebuild", "reboot SOFT"]);
    runs_on(cluster, NODES);
}

fn rebuilds(cluster: &Cluster<OpenStack>) {
    configure(cluster, "image-1");
    let running = hold(cluster, "rebuilds");
    let nodes = nodes();
    let rebuilt = booted(cluster, &nodes);
    ask_reboot(cluster, &nodes);
    cluster.until("the idle servers are rebuilt", || rebuilt() == 6);
    assert_eq!(cluster.job(running, "JobState"), "RUNNING", "{}", cluster.story());
    cluster.let_go(&["rebuilds"]);
    undisturbed(cluster, running);
    cluster.until("all servers are rebuilt", || rebuilt() == 8);
    back(cluster, &nodes);
    expect(cluster, &nodes, "image-1", &["spawn", "rebuild", "reboot SOFT", "rebuild"]);
    runs_on(cluster, NODES);
}

/// Rolls a new image over two nodes, which stops at the first; gives its server, and sees that the other's was not touched.
fn stops(cluster: &Cluster<OpenStack>, two: [u32; 2]) -> Machine {
    let two = two.map(name);
    let words = ["submit", "--image", "image-2", "--batch", "1", &two.join(",")];
    let rolled = cluster.run("rebuild", &words);
    assert_eq!(rolled.status.code(), Some(1), "{rolled:?}\n{}", cluster.story());
    let old = cluster.site().image("image-1");
    let untouched = |server: &Machine| {
        server.state == "ACTIVE" && server.image == old && boots(cluster, server) == ["spawn"]
    };
    let mut tried = Vec::new();
    // On a busy machine, Slurm may give a node up before Nova was asked.
    cluster.until("a server was tried", || {
        tried = cluster.present();
        tried.retain(|server| two.contains(&server.name) && !untouched(server));
        !tried.is_empty()
    });
    let [tried] = &tried[..] else { panic!("tried both: {tried:?}\n{}", cluster.story()) };
    tried.clone()
}

fn boots(cluster: &Cluster<OpenStack>, server: &Machine) -> Vec<String> {
    cluster.site().boots(&server.id)
}

fn fails(cluster: &Cluster<OpenStack>) {
    cluster.site().order("rebuild", "error no disk");
    let tried = stops(cluster, [1, 2]);
    cluster.site().order("rebuild", "");
    assert_eq!(tried.state, "ERROR", "{}", cluster.story());
    assert_eq!(boots(cluster, &tried), ["spawn"], "{}", cluster.story());
}

fn does_not_come_back(cluster: &Cluster<OpenStack>) {
    // Soon, as all that are to come have come.
    cluster.set("ResumeTimeout", 40);
    for node in [3, 4] {
        cluster.fate(&name(node), "never");
    }
    let tried = stops(cluster, [3, 4]);
    let state = cluster.nodes().remove(&tried.name).unwrap_or_default();
    assert!(state.contains("DOWN"), "{state}\n{}", cluster.story());
    let rebuilt = || boots(cluster, &tried) == ["spawn", "rebuild"];
    cluster.until("the server is rebuilt", rebuilt);
    assert_eq!(tried.image, cluster.site().image("image-2"), "{}", cluster.story());
}
