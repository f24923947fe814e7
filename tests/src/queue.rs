//! Rebuild jobs in the queue, in the order that StackHPC's documentation shows step by step.

use crate::cluster::Cluster;
use crate::test_cloud::TestCloud;
use std::collections::BTreeMap;

const RUNS: &str = "RUNNING";
const WAITS: &str = "PENDING";
/// A job that is over is in no queue.
const OVER: &str = "";

/// How the rebuild jobs of each partition stand.
#[derive(Clone, Copy, Debug)]
pub struct RebuildJobs {
    /// True if those of `standard` have begun.
    pub standard: bool,
    /// True if those of `extra` have begun.
    pub extra: bool,
}

/// On two nodes in each of two partitions, `standard` and `extra`, that are always there.
impl<C: TestCloud> Cluster<C> {
    /// Submits a job of two nodes that runs until there is a file of its name.
    #[must_use]
    pub fn pair(&self, name: &str, partition: &str) -> u32 {
        let options = ["--nodes=2", "--exclusive", "--job-name", name, "--partition", partition];
        self.submit(&options, &self.wait_for_file(name))
    }

    /// Submits three jobs, and rebuild jobs with these options, and sees them come and go in their order.
    ///
    /// Rebuild jobs run until there is a file of their node's name. Each time that the queue is as it should be, `check`
    /// is told how they stand.
    pub fn see_rebuild_jobs_in_order(&self, options: &[&str], check: impl Fn(RebuildJobs)) {
        let see = |jobs, rebuilds: [&str; 2]| {
            self.wait_queue(jobs, rebuilds);
            let [standard, extra] = rebuilds.map(|state| state != WAITS);
            check(RebuildJobs { standard, extra });
        };
        let a = self.pair("JobA", "standard");
        self.wait_job(a, RUNS);
        let b = self.pair("JobB", "standard");
        let wait = self.wait_for_file("$SLURMD_NODENAME");
        let words = [&["submit", "--jobs", "--command", &wait[..]], options].concat();
        let _ = self.well("rebuild", &words);
        let c = self.pair("JobC", "standard,extra");
        see([RUNS, WAITS, WAITS], [WAITS, RUNS]);
        self.let_go(&["JobA"]);
        see([OVER, WAITS, WAITS], [RUNS, RUNS]);
        self.let_go(&["c1-extra-0001", "c1-extra-0002"]);
        see([OVER, WAITS, RUNS], [RUNS, OVER]);
        self.let_go(&["JobC"]);
        see([OVER, WAITS, OVER], [RUNS, OVER]);
        self.let_go(&["c1-standard-0001", "c1-standard-0002"]);
        see([OVER, RUNS, OVER], [OVER, OVER]);
        self.let_go(&["JobB"]);
        see([OVER; 3], [OVER; 2]);
        for job in [a, b, c] {
            let end = (self.job(job, "JobState"), self.job(job, "Restarts"));
            assert_eq!(end, ("COMPLETED".to_owned(), "0".to_owned()), "{}", self.story());
        }
    }

    /// Waits until the queue has these jobs and no others: the three jobs, and the rebuild jobs of the two partitions.
    fn wait_queue(&self, jobs: [&str; 3], [standard, extra]: [&str; 2]) {
        let rebuild = |group: &str, number: u32| format!("rebuild-c1-{group}-000{number}");
        let expected = ["JobA", "JobB", "JobC"].map(str::to_owned).into_iter().zip(jobs);
        let rebuilds = [("standard", standard), ("extra", extra)]
            .into_iter()
            .flat_map(|(group, state)| [1, 2].map(|number| (rebuild(group, number), state)));
        let expected: BTreeMap<String, String> = expected
            .chain(rebuilds)
            .filter(|(_, state)| *state != OVER)
            .map(|(job, state)| (job, state.to_owned()))
            .collect();
        self.until(&format!("the queue is {expected:?}"), || {
            let shown = self.ask("squeue", &["--all", "--noheader", "--format=%j %T"]);
            let rows = shown.lines().filter_map(|line| line.split_once(' '));
            let queue: BTreeMap<_, _> =
                rows.map(|(job, state)| (job.to_owned(), state.to_owned())).collect();
            queue == expected
        });
    }
}
