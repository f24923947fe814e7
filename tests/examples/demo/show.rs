//! What is shown, in its order.

use crate::screen::Screen;
use cloud_sim::Capacity;
use e2e::{Cluster, USUAL, wait};
use std::time::Instant;

const OLD: &str = "ocid1.image.oc1.phx.img000";
const NEW: &str = "ocid1.image.oc1.phx.new";

pub(crate) fn run(keep: bool) {
    let begun = Instant::now();
    e2e::enter();
    let mut screen = Screen::new();
    let cluster = Cluster::builder(USUAL)
        .nodes(8)
        .suspend_time(600)
        // Slow enough to watch.
        .cloud(|cloud| (cloud.timing.provision, cloud.timing.terminate) = (2.0, 1.5))
        .config("fallback: [{zone: 2}]")
        .config(&format!("image_id: {OLD}"))
        .start();
    let version = cluster.release().version();
    screen.say(&format!(
        "A cluster of 8 possible nodes: slurmctld {version}, a loopback cloud, no machines"
    ));
    let mut jobs = three_jobs(&cluster, &mut screen);
    jobs.push(full_zone(&cluster, &mut screen));
    new_image(&cluster, &mut screen);
    if keep {
        stay(&cluster, &mut screen);
    }
    idle_nodes_go(&cluster, &mut screen);
    summary(&cluster, &mut screen, &jobs, begun);
}

/// Shows the table until something is so.
fn watch(cluster: &Cluster, screen: &mut Screen, mut look: impl FnMut() -> bool) {
    let seen = wait(|| {
        screen.show(cluster);
        look().then_some(())
    });
    screen.settle(cluster);
    assert!(seen.is_some(), "this took too long\n{}", cluster.story());
}

fn ended(cluster: &Cluster, job: u32) -> bool {
    cluster.job(job, "JobState") == "COMPLETED"
}

fn three_jobs(cluster: &Cluster, screen: &mut Screen) -> Vec<u32> {
    screen.say("Three jobs: one of 4 nodes, one of 2, one of 1");
    let submit = |name: &str, nodes: u32| {
        let (name, nodes) = (format!("--job-name={name}"), format!("--nodes={nodes}"));
        cluster.submit(&[&name, &nodes, "--exclusive"], "srun sleep 3 && srun hostname")
    };
    let jobs = vec![submit("four", 4), submit("two", 2), submit("one", 1)];
    watch(cluster, screen, || jobs.iter().all(|job| ended(cluster, *job)));
    for job in &jobs {
        let hosts: Vec<String> = cluster.hosts(*job).into_iter().collect();
        println!("  job {job} ran on {}", hosts.join(" "));
    }
    jobs
}

fn full_zone(cluster: &Cluster, screen: &mut Screen) -> u32 {
    let room = u64::try_from(cluster.machines().len()).unwrap_or_default();
    let availability_domain = Some("Uocm:PHX-AD-1".to_owned());
    let full = Capacity { availability_domain, shape: None, instances: room, fails_later: false };
    cluster.cloud().set_capacity(vec![full]);
    screen.say(
        "Zone AD-1 is full: \"Out of host capacity\". A job of 8 nodes gets its eighth elsewhere",
    );
    let job = cluster.submit(&["--job-name=eight", "--nodes=8"], "srun sleep 2 && srun hostname");
    watch(cluster, screen, || ended(cluster, job));
    for line in cluster.log("elastic.log").lines().filter(|line| line.contains("capacity")).take(2)
    {
        println!("  elastic.log: {line}");
    }
    println!("  job {job} ran on {} nodes", cluster.hosts(job).len());
    cluster.cloud().set_capacity(Vec::new());
    job
}

fn new_image(cluster: &Cluster, screen: &mut Screen) {
    screen.say("A new image, 4 nodes at a time: rebuild submit --image citc-ol9-new --batch 4");
    let mut roll = cluster.begin("rebuild", &["submit", "--image", "citc-ol9-new", "--batch", "4"]);
    watch(cluster, screen, || roll.ended().is_some());
    let new = |machine: &cloud_sim::Instance| {
        machine.image_id.as_deref().is_some_and(|image| image == NEW)
    };
    let machines = cluster.machines();
    println!(
        "  {} of {} machines on the new image",
        machines.iter().filter(|one| new(one)).count(),
        machines.len()
    );
}

fn idle_nodes_go(cluster: &Cluster, screen: &mut Screen) {
    screen.say("Nobody needs them: after SuspendTime, here 3 seconds, idle nodes go");
    cluster.suspend_after(3);
    watch(cluster, screen, || cluster.live().is_empty());
    cluster.wait_empty();
}

fn stay(cluster: &Cluster, screen: &mut Screen) {
    let at = cluster.dir().display();
    let enter = cluster.dir().join("enter");
    let enter = enter.display();
    screen.say("The cluster stays up until Ctrl-C. To use it, from another terminal:");
    println!("  {enter} sbatch --nodes=2 --wrap 'srun hostname'");
    println!("  {enter} squeue");
    println!("  cat {at}/slurm-*.out");
    println!("  {enter} listnodes");
    cluster.suspend_after(30);
    loop {
        let _ = wait(|| None::<()>);
    }
}

fn summary(cluster: &Cluster, screen: &mut Screen, jobs: &[u32], begun: Instant) {
    let requests: u64 = cluster.cloud().counts().values().sum();
    let all = cluster.cloud().instances().len();
    let left = cluster.live().len();
    screen.say("In short");
    for (what, number) in [
        ("jobs run", jobs.len().to_string()),
        ("machines started", all.to_string()),
        ("machines stopped", (all - left).to_string()),
        ("API requests", requests.to_string()),
        ("machines left", left.to_string()),
        ("seconds", begun.elapsed().as_secs().to_string()),
    ] {
        println!("  {what:<18} {number:>5}");
    }
}
