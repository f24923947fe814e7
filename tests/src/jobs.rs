//! Jobs of a test's cluster.

use crate::cluster::{Cluster, value};
use crate::test_cloud::TestCloud;
use crate::wait::{wait, wait_for};
use slurm_testbed::is_busy;
use std::collections::BTreeSet;
use std::fs;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// How long a job is looked for whose submission had no answer.
const LATE: Duration = Duration::from_secs(20);

/// How many jobs this process has submitted.
static SUBMISSIONS: AtomicU32 = AtomicU32::new(0);

impl<C: TestCloud> Cluster<C> {
    /// Submits a batch job with these options, such as `--nodes=4`, and gives its number.
    #[must_use]
    pub fn submit(&self, options: &[&str], script: &str) -> u32 {
        let output = format!("--output={}", self.dir().join("log/job-%j.out").display());
        // What srun says of itself, as that it waits for the step before, is no output of the job.
        let error = format!("--error={}", self.dir().join("log/job-%j.err").display());
        // By this a job is found again whose submission had no answer.
        let mark = format!("submission-{}", SUBMISSIONS.fetch_add(1, Ordering::Relaxed));
        let comment = format!("--comment={mark}");
        let words =
            [&["--parsable", &output, &error, &comment], options, &["--wrap", script]].concat();
        let job = wait(|| {
            let output = self.slurm("sbatch", &words);
            let printed = String::from_utf8_lossy(&output.stdout);
            match printed.trim().parse() {
                Ok(job) if output.status.success() => Some(job),
                // It may be taken up a little later.
                _ if is_busy(&output) => wait_for(LATE, || self.submitted(&mark)),
                _ => panic!("sbatch {words:?}: {output:?}\n{}", self.log("slurmctld.log")),
            }
        });
        job.unwrap_or_else(|| panic!("sbatch has no answer\n{}", self.log("slurmctld.log")))
    }

    /// The number of a job with this comment, if there is one.
    fn submitted(&self, mark: &str) -> Option<u32> {
        let jobs = self.ask("squeue", &["--noheader", "--states=all", "--format=%i %k"]);
        let mut jobs = jobs.lines().filter_map(|line| line.trim().split_once(' '));
        jobs.find(|(_, comment)| *comment == mark)?.0.parse().ok()
    }

    /// A line of a script that waits for a file of this name.
    #[must_use]
    pub fn wait_for_file(&self, name: &str) -> String {
        format!("until [ -e {}/{name} ]; do sleep 0.1; done", self.dir().display())
    }

    /// Lets the scripts that wait for these files go on.
    pub fn let_go(&self, files: &[&str]) {
        for file in files {
            fs::write(self.dir().join(file), "").expect("a directory of ours");
        }
    }

    /// What a job has printed.
    #[must_use]
    pub fn output(&self, job: u32) -> String {
        self.log(&format!("job-{job}.out"))
    }

    /// A field of what `scontrol show job` says.
    #[must_use]
    pub fn job(&self, job: u32, field: &str) -> String {
        value(&self.ask("scontrol", &["show", "job", "-o", &job.to_string()]), field)
    }

    /// Waits until a job is in a state; tells what went on if it never is.
    pub fn wait_job(&self, job: u32, state: &str) {
        self.until(&format!("job {job} is {state}"), || self.job(job, "JobState") == state);
    }

    /// Runs a job on one node that is powered down, and gives the time from slurmctld's call for the node until its slurmd has
    /// registered.
    #[must_use]
    pub fn registers_after(&self, options: &[&str], node: &str) -> Duration {
        let options = [&["--nodes=1", "--nodelist", node], options].concat();
        let job = self.submit(&options, "srun hostname");
        let has = |state: &str| self.node(node).contains(state);
        self.until("slurmctld calls for the node", || has("POWERING_UP"));
        let called = Instant::now();
        self.until("the node has registered", || !has("POWERING_UP") && !has("POWERED_DOWN"));
        let took = called.elapsed();
        self.wait_job(job, "COMPLETED");
        took
    }

    /// The hosts that a job of `srun hostname` has printed, each once.
    #[must_use]
    pub fn hosts(&self, job: u32) -> BTreeSet<String> {
        self.output(job).lines().map(str::to_owned).collect()
    }
}
