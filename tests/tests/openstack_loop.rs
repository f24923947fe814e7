//! The main job and a new image in a real OpenStack: Nova's servers are slurmd that the harness boots when they are ACTIVE.

#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "helpers of tests, with a line for each part, as they take long"
)]

use e2e::{Cluster, OpenStack, USUAL, alone};
use std::collections::BTreeSet;
use std::fs;
use std::time::Instant;

/// One cloud for all of it, since it takes its time to start.
#[test]
fn nodes_come_are_rebuilt_and_rebooted_and_go() {
    alone(|| {
        let cluster = part("an OpenStack and a Slurm", || {
            Cluster::builder(USUAL).limits("m1.tiny: 4\n").start_on_openstack()
        });
        part("1 node comes and goes", || {
            runs_on(&cluster, 1);
            cluster.wait_empty();
        });
        cluster.suspend_after(600);
        part("4 nodes come", || runs_on(&cluster, 4));
        part("a new image is rolled out", || rolls(&cluster));
        part("scontrol reboot, equal image", || reboots(&cluster));
        part("scontrol reboot, another image", || rebuilds(&cluster));
        cluster.suspend_after(2);
        part("4 nodes go", || cluster.wait_empty());
        assert_eq!(cluster.site().ever(), 1 + 4, "each node had one server each time");
        cluster.suspend_after(600);
        part("a rebuild that fails stops the roll", || stops(&cluster));
    });
}

fn part<T>(what: &str, scenario: impl FnOnce() -> T) -> T {
    let begun = Instant::now();
    let made = scenario();
    println!("{what}: {:.1} s", begun.elapsed().as_secs_f32());
    made
}

fn name(number: u32) -> String {
    format!("c1-m1-tiny-{number:04}")
}

fn all() -> String {
    (1..=4).map(name).collect::<Vec<_>>().join(",")
}

/// Runs a job of so many nodes, which is to run on each of them.
fn runs_on(cluster: &Cluster<OpenStack>, nodes: u32) {
    let job = cluster.submit(&[&format!("--nodes={nodes}")], "srun hostname");
    completes(cluster, job);
    let names: BTreeSet<_> = (1..=nodes).map(name).collect();
    assert_eq!(cluster.hosts(job), names, "{}", cluster.story());
}

/// Each server's image, and how it has booted each time.
fn servers(cluster: &Cluster<OpenStack>) -> Vec<(String, Vec<String>)> {
    let cloud = cluster.site();
    let mut servers = cluster.present();
    servers.sort_by(|one, other| one.name.cmp(&other.name));
    servers.into_iter().map(|server| (server.image, cloud.boots(&server.id))).collect()
}

/// How many of the servers that are there now have booted so often; asks the hypervisor, as Nova has better things to do.
fn booted(cluster: &Cluster<OpenStack>, times: usize) -> impl Fn() -> usize {
    let ids: Vec<String> = cluster.present().into_iter().map(|server| server.id).collect();
    move || ids.iter().filter(|id| cluster.site().boots(id).len() == times).count()
}

fn expect(cluster: &Cluster<OpenStack>, image: &str, boots: &[&str]) {
    let boots = boots.iter().map(|&how| how.to_owned()).collect();
    let one = (cluster.site().image(image), boots);
    assert_eq!(servers(cluster), vec![one; 4], "{}", cluster.story());
}

/// A job that runs until a file of this name is there.
fn until(cluster: &Cluster<OpenStack>, file: &str) -> u32 {
    let path = cluster.dir().join(file);
    let script = format!("until [ -e {} ]; do sleep 0.1; done; srun hostname", path.display());
    let job = cluster.submit(&["--nodes=2", "--exclusive"], &script);
    cluster.wait_job(job, "RUNNING");
    job
}

/// Ends such a job, and sees to it that nothing has disturbed it.
fn end(cluster: &Cluster<OpenStack>, file: &str, job: u32) {
    fs::write(cluster.dir().join(file), "").unwrap();
    undisturbed(cluster, job);
}

fn undisturbed(cluster: &Cluster<OpenStack>, job: u32) {
    completes(cluster, job);
    assert_eq!(cluster.hosts(job).len(), 2, "{}", cluster.story());
}

/// Waits until a job has ended, which is to be well, and at the first go.
fn completes(cluster: &Cluster<OpenStack>, job: u32) {
    let mut state = String::new();
    cluster.until(&format!("job {job} has ended"), || {
        state = cluster.job(job, "JobState");
        !["PENDING", "CONFIGURING", "RUNNING", "COMPLETING"].contains(&&state[..])
    });
    assert_eq!(state, "COMPLETED", "job {job}\n{}", cluster.story());
    assert_eq!(cluster.job(job, "Restarts"), "0", "{}", cluster.story());
}

fn idle(cluster: &Cluster<OpenStack>) {
    cluster.until("all nodes are back", || {
        cluster.nodes().values().all(|state| state == "IDLE+CLOUD")
    });
}

fn rolls(cluster: &Cluster<OpenStack>) {
    let running = until(cluster, "rolls");
    let roll = cluster.begin("rebuild", &["submit", "--image", "image-2", "--batch", "2"]);
    cluster.until("the roll has begun", || {
        cluster.nodes().values().any(|state| state.contains("REBOOT"))
    });
    let waiting = cluster.submit(&["--nodes=2", "--exclusive"], "srun hostname");
    end(cluster, "rolls", running);
    undisturbed(cluster, waiting);
    let mut status = None;
    cluster.until("the roll has ended", || {
        status = roll.ended();
        status.is_some()
    });
    assert!(status.is_some_and(|status| status.success()), "{status:?}\n{}", cluster.story());
    expect(cluster, "image-2", &["spawn", "rebuild"]);
    runs_on(cluster, 4);
}

fn stops(cluster: &Cluster<OpenStack>) {
    runs_on(cluster, 2);
    cluster.site().order("rebuild", "error no disk");
    let rolled = cluster.run("rebuild", &["submit", "--image", "image-2", "--batch", "1"]);
    assert_eq!(rolled.status.code(), Some(1), "{rolled:?}\n{}", cluster.story());
    let servers = cluster.present();
    let well = servers.iter().filter(|server| server.state == "ACTIVE");
    let old = cluster.site().image("image-1");
    let untouched = well.filter(|server| server.image == old).count();
    assert_eq!(untouched, 1, "the other is not touched: {servers:?}\n{}", cluster.story());
}

/// What new servers and those that reboot are to have from now on.
fn configure(cluster: &Cluster<OpenStack>, image: &str) {
    let config = cluster.dir().join("etc/startnode.yaml");
    let text = fs::read_to_string(&config).unwrap();
    let changed = text.lines().map(|line| match line.strip_prefix("image_id: ") {
        Some(_) => format!("image_id: {}\n", cluster.site().image(image)),
        None => format!("{line}\n"),
    });
    fs::write(&config, changed.collect::<String>()).unwrap();
}

fn reboots(cluster: &Cluster<OpenStack>) {
    configure(cluster, "image-2");
    cluster.scontrol(&format!("reboot ASAP nextstate=RESUME {}", all()));
    let rebooted = booted(cluster, 3);
    cluster.until("all servers have rebooted", || rebooted() == 4);
    idle(cluster);
    expect(cluster, "image-2", &["spawn", "rebuild", "reboot SOFT"]);
    runs_on(cluster, 4);
}

fn rebuilds(cluster: &Cluster<OpenStack>) {
    configure(cluster, "image-1");
    let running = until(cluster, "rebuilds");
    cluster.scontrol(&format!("reboot ASAP nextstate=RESUME {}", all()));
    let rebuilt = booted(cluster, 4);
    cluster.until("the idle servers are rebuilt", || rebuilt() == 2);
    assert_eq!(cluster.job(running, "JobState"), "RUNNING", "{}", cluster.story());
    end(cluster, "rebuilds", running);
    cluster.until("all servers are rebuilt", || rebuilt() == 4);
    idle(cluster);
    expect(cluster, "image-1", &["spawn", "rebuild", "reboot SOFT", "rebuild"]);
    runs_on(cluster, 4);
}
