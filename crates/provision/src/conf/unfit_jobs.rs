//! Pending jobs that fit the current nodes of slurm.conf, but not the new ones.

use crate::world::Roster;
use hostlist::Hostlist;
use slurmconf::Config;
use slurmctl::{Job, JobState};

/// A warning for each pending job that can never run with the new node section.
///
/// `now` is slurm.conf with its includes; `old` and `new` are the node section before and after.
#[must_use]
pub fn unfit_jobs(jobs: &[Job], now: &Config, old: &Config, new: &Config) -> Vec<String> {
    let (now, old, new) = (Roster::new(now), Roster::new(old), Roster::new(new));
    let all = |roster: &Roster<'_>| roster.nodes().iter().collect::<Hostlist>();
    let removed = all(&old).difference(&all(&new));
    let size = |name: &str| {
        let before = now.partition(name)?;
        let after = new.partition(name).unwrap_or_else(|| before.difference(&removed));
        Some((before.len(), after.len()))
    };
    let unfit = |job: &Job| {
        let id = job.id;
        let needs = usize::try_from(job.node_count).ok()?;
        let lost = job.wanted.intersection(&removed);
        if !lost.is_empty() {
            return Some(format!("job {id} waits for {lost}, which will be gone"));
        }
        let sizes: Vec<(usize, usize)> = job.partition.split(',').filter_map(size).collect();
        let before = sizes.iter().map(|(before, _)| *before).max()?;
        let after = sizes.iter().map(|(_, after)| *after).max()?;
        (before >= needs && after < needs).then(|| {
            let partition = &job.partition;
            format!("job {id} needs {needs} nodes, and partition {partition} will have {after}")
        })
    };
    jobs.iter().filter(|job| job.state == JobState::Pending).filter_map(unfit).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use slurmctl::JobId;

    fn pending(id: u32, nodes: u32, wanted: &str) -> Job {
        let mut job = Job::new(JobId::new(id), JobState::Pending);
        job.node_count = nodes;
        job.partition = "compute".to_owned();
        job.wanted = wanted.parse().unwrap();
        job
    }

    #[test]
    fn a_pending_job_that_will_not_fit_any_more_is_named() {
        let section = |count: u32| {
            let text = format!("NodeName=n[1-{count}]\nPartitionName=compute Nodes=n[1-{count}]\n");
            Config::parse(&text).unwrap()
        };
        let mut running = pending(5, 4, "");
        running.state = JobState::Running;
        let jobs =
            [pending(1, 2, ""), pending(2, 4, ""), pending(3, 1, "n4"), pending(4, 9, ""), running];
        let (now, new) = (section(4), section(2));
        let found = unfit_jobs(&jobs, &now, &now, &new);
        let expected = [
            "job 2 needs 4 nodes, and partition compute will have 2",
            "job 3 waits for n4, which will be gone",
        ];
        assert_eq!(found, expected);
        assert_eq!(unfit_jobs(&jobs, &now, &now, &now), Vec::<String>::new());
    }
}
