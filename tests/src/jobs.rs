//! Jobs of a test's cluster.

use crate::cluster::{Cluster, value};
use crate::site::Site;
use std::collections::BTreeSet;
use std::fs;

impl<C: Site> Cluster<C> {
    /// Submits a batch job with these options, such as `--nodes=4`, and gives its number.
    #[must_use]
    pub fn submit(&self, options: &[&str], script: &str) -> u32 {
        let output = format!("--output={}", self.dir().join("log/job-%j.out").display());
        // What srun says of itself, as that it waits for the step before, is no output of the job.
        let error = format!("--error={}", self.dir().join("log/job-%j.err").display());
        let words = [&["--parsable", &output, &error], options, &["--wrap", script]].concat();
        let printed = self.ask("sbatch", &words);
        printed.trim().parse().unwrap_or_else(|_| panic!("sbatch printed {printed:?}"))
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

    /// The hosts that a job of `srun hostname` has printed, each once.
    #[must_use]
    pub fn hosts(&self, job: u32) -> BTreeSet<String> {
        self.output(job).lines().map(str::to_owned).collect()
    }
}
