//! What is shown of a cluster, whatever cloud it is in.

use crate::screen::Screen;
use e2e::{Cluster, TestCloud, wait, wait_for};
use std::time::Instant;

/// A demo under way.
pub(crate) struct Show<C> {
    pub(crate) cluster: Cluster<C>,
    pub(crate) screen: Screen,
    pub(crate) begun: Instant,
    pub(crate) jobs: Vec<u32>,
}

/// What a cloud can tell at the end.
pub(crate) struct Totals {
    pub(crate) started: usize,
    /// How many requests it had, and what these are called.
    pub(crate) requests: (&'static str, u64),
}

impl<C: TestCloud> Show<C> {
    pub(crate) fn new(cluster: Cluster<C>, begun: Instant) -> Self {
        Self { cluster, screen: Screen::new(), begun, jobs: Vec::new() }
    }

    /// Shows the table until something is so.
    pub(crate) fn watch(&mut self, mut condition: impl FnMut(&Cluster<C>) -> bool) {
        let (cluster, screen) = (&self.cluster, &mut self.screen);
        let seen = wait_for(cluster.site().patience(), || {
            screen.show(cluster);
            condition(cluster).then_some(())
        });
        screen.settle(cluster);
        assert!(seen.is_some(), "this took too long\n{}", cluster.story());
    }

    pub(crate) fn submit(&mut self, name: &str, nodes: u32, script: &str) -> u32 {
        let (name, nodes) = (format!("--job-name={name}"), format!("--nodes={nodes}"));
        let job = self.cluster.submit(&[&name, &nodes, "--exclusive"], script);
        self.jobs.push(job);
        job
    }

    pub(crate) fn three_jobs(&mut self) {
        self.screen.say("Three jobs: one of 4 nodes, one of 2, one of 1");
        let jobs = [("four", 4), ("two", 2), ("one", 1)]
            .map(|(name, nodes)| self.submit(name, nodes, "srun sleep 3 && srun hostname"));
        self.watch(|cluster| jobs.iter().all(|job| ended(cluster, *job)));
        for job in jobs {
            let hosts: Vec<String> = self.cluster.hosts(job).into_iter().collect();
            println!("  job {job} ran on {}", hosts.join(" "));
        }
    }

    /// Waits for a job of all nodes, and tells what our log says of the cloud's refusal.
    pub(crate) fn tell_of(&mut self, job: u32, refusal: &str) {
        self.watch(|cluster| ended(cluster, job));
        let log = self.cluster.log("elastic.log");
        for line in log.lines().filter(|line| line.contains(refusal)).take(2) {
            println!("  elastic.log: {line}");
        }
        println!("  job {job} ran on {} nodes", self.cluster.hosts(job).len());
    }

    pub(crate) fn new_image(&mut self, name: &str, id: &str) {
        let command = format!("submit --image {name} --batch 4");
        self.screen.say(&format!("A new image, 4 nodes at a time: rebuild {command}"));
        let roll = self.cluster.begin("rebuild", &command.split(' ').collect::<Vec<_>>());
        let mut end = None;
        self.watch(|_| {
            end = roll.ended();
            end.is_some()
        });
        let machines = self.cluster.present();
        let new = machines.iter().filter(|machine| machine.image == id).count();
        println!("  {new} of {} machines on the new image", machines.len());
        let well = end.is_some_and(|status| status.success()) && new == machines.len();
        assert!(well, "rebuild: {end:?}\n{}", self.cluster.story());
    }

    /// Has reconcile notice what the timer would, before machines get another image and boot again.
    pub(crate) fn reconcile(&mut self) {
        let _ = self.cluster.run("reconcile", &["--apply", "--quiet"]);
    }

    pub(crate) fn idle_nodes_go(&mut self) {
        self.screen.say("Nobody needs them: after SuspendTime, here 3 seconds, idle nodes go");
        self.cluster.suspend_after(3);
        self.watch(|cluster| cluster.live().is_empty());
        self.cluster.wait_empty();
    }

    /// Leaves the cluster to whoever wants to use it.
    pub(crate) fn stay(&mut self) {
        // Before anybody is told to use it: slurmctld reads its file anew.
        self.cluster.suspend_after(30);
        let at = self.cluster.dir().display();
        let enter = self.cluster.dir().join("enter");
        let enter = enter.display();
        self.screen.say("The cluster stays up until Ctrl-C. To use it, from another terminal:");
        println!("  {enter} sbatch --nodes=2 --wrap 'srun hostname'");
        println!("  {enter} squeue");
        println!("  cat {at}/slurm-*.out");
        println!("  {enter} listnodes");
        loop {
            let _ = wait(|| None::<()>);
        }
    }

    /// Leaves the timeline, and what reconcile wrote for Prometheus, in this folder of the target directory.
    pub(crate) fn leave_pictures(&mut self, folder: &str) {
        let built = std::env::current_exe().ok();
        let Some(target) = built.as_deref().and_then(|it| it.parent()?.parent()) else { return };
        let kept = target.join(folder);
        let [page, metrics] = ["timeline.html", "metrics.prom"].map(|name| kept.join(name));
        self.reconcile();
        let written = std::fs::create_dir_all(&kept)
            .and_then(|()| std::fs::copy(self.cluster.dir().join("metrics.prom"), &metrics));
        if let Err(error) = written {
            println!("  cannot write to {}: {error}", kept.display());
            return;
        }
        let _ = self.cluster.well("timeline", &["--html", &page.display().to_string()]);
        self.screen.say("What the nodes did, as a picture: open it in a browser");
        println!("  {}", page.display());
    }

    pub(crate) fn summary(&mut self, totals: &Totals) {
        let left = self.cluster.live().len();
        self.screen.say("In short");
        for (what, number) in [
            (
                "jobs run",
                self.jobs.iter().filter(|job| ended(&self.cluster, **job)).count().to_string(),
            ),
            ("machines started", totals.started.to_string()),
            ("machines stopped", (totals.started - left).to_string()),
            (totals.requests.0, totals.requests.1.to_string()),
            ("machines left", left.to_string()),
            ("seconds", self.begun.elapsed().as_secs().to_string()),
        ] {
            println!("  {what:<18} {number:>5}");
        }
    }
}

pub(crate) fn ended<C: TestCloud>(cluster: &Cluster<C>, job: u32) -> bool {
    cluster.job(job, "JobState") == "COMPLETED"
}
