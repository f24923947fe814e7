//! Job records of Slurm's accounting, and owners of queued jobs.

use crate::{
    Error, ErrorKind, JobId, Result, Scontrol,
    argv::{Argv, SEPARATOR, argv},
    parse::BadLine,
    time,
};
use hostlist::{Hostlist, Parser};
use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

/// The fields that sacct prints.
const FIELDS: &str =
    "JobIDRaw,User,Account,Partition,NodeList,AllocCPUS,Start,End,Eligible,State,JobName";

/// The message of sacct if slurm.conf has no `AccountingStorageType`.
const DISABLED: &str = "accounting storage is disabled";

/// Maximum number of job ids in one squeue command line.
const MOST_JOBS: usize = 1000;

/// One run of a job; a job that was requeued has several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobRecord {
    /// The job id.
    pub id: JobId,
    /// The name of its owner.
    pub user: String,
    /// The account that is charged.
    pub account: String,
    /// Its partition.
    pub partition: String,
    /// Its nodes.
    pub nodes: Hostlist,
    /// Number of CPUs on all its nodes together.
    pub cpus: u32,
    /// When it started.
    pub start: SystemTime,
    /// When it ended; none while it runs.
    pub end: Option<SystemTime>,
    /// When it could have started at the earliest; its start if that is not known.
    pub eligible: SystemTime,
    /// How it ended, or that it runs, in Slurm's word.
    pub state: String,
    /// The job's name.
    pub name: String,
}

/// The owner of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobOwner {
    /// The user's name.
    pub user: String,
    /// The account.
    pub account: String,
}

impl Scontrol {
    /// Returns the runs of all jobs that had nodes in this period; none if the cluster has no accounting.
    pub async fn job_records(
        &self,
        since: SystemTime,
        until: SystemTime,
    ) -> Result<Option<Vec<JobRecord>>> {
        let arguments = list_records(since, until);
        let program = &self.programs().sacct;
        match self.run(program, &arguments).await {
            Ok(text) => {
                let tried = || program.display().to_string();
                let protocol = |source| Error::new(ErrorKind::Protocol, tried()).caused_by(source);
                records(&text).map(Some).map_err(protocol)
            }
            Err(error) if error.to_string().contains(DISABLED) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns the owners of these jobs, as far as they are in the queue.
    pub async fn job_owners(&self, jobs: &[JobId]) -> Result<BTreeMap<JobId, JobOwner>> {
        let mut owners = BTreeMap::new();
        for jobs in jobs.chunks(MOST_JOBS) {
            let ids: Vec<String> = jobs.iter().map(ToString::to_string).collect();
            let format = ["JobID", "UserName", "Account"].map(|it| format!("{it}:{SEPARATOR}"));
            let [ids, format] =
                [format!("--jobs={}", ids.join(",")), format!("--Format={}", format.join(","))];
            let arguments = argv(["--noheader", "--all", "--local", "--states=all", &ids, &format]);
            let text = self.run(&self.programs().squeue, &arguments).await?;
            owners.extend(text.lines().filter_map(owner));
        }
        Ok(owners)
    }
}

fn list_records(since: SystemTime, until: SystemTime) -> Argv {
    let seconds = |time: SystemTime| {
        let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        format!("uts{}", since.as_secs())
    };
    // A job that ends within the last second belongs to it.
    let until = until.checked_add(Duration::from_secs(1)).unwrap_or(until);
    let mut arguments =
        argv(["--allusers", "--allocations", "--duplicates", "--noheader", "--parsable2"]);
    arguments.push(format!("--delimiter={SEPARATOR}"));
    arguments.push(format!("--starttime={}", seconds(since)));
    arguments.push(format!("--endtime={}", seconds(until)));
    arguments.push(format!("--format={FIELDS}"));
    arguments
}

/// Parses the output of sacct. Jobs that never ran are left out.
pub(crate) fn records(text: &str) -> std::result::Result<Vec<JobRecord>, BadLine> {
    let mut records = Vec::new();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        records.extend(record(line)?);
    }
    Ok(records)
}

/// Parses one line; `None` for a job that never ran.
fn record(line: &str) -> std::result::Result<Option<JobRecord>, BadLine> {
    let bad = || BadLine::new("no job", line);
    let fields: Vec<&str> = line.split(SEPARATOR).map(str::trim).collect();
    let [id, user, account, partition, nodes, cpus, start, end, eligible, state, name] = fields[..]
    else {
        return Err(bad());
    };
    let id = id.parse().map_err(|_| bad())?;
    let Some(start) = time::parse(start) else { return Ok(None) };
    if matches!(nodes, "" | "None assigned") {
        return Ok(None);
    }
    let nodes = Parser::new().max_hosts(1 << 17).parse(nodes).map_err(|_| bad())?;
    // `CANCELLED by 1000` is cancelled.
    let state = state.split(' ').next().unwrap_or_default();
    let [user, account, partition, state, name] =
        [user, account, partition, state, name].map(str::to_owned);
    let (cpus, end) = (cpus.parse().map_err(|_| bad())?, time::parse(end));
    let eligible = time::parse(eligible).unwrap_or(start).min(start);
    Ok(Some(JobRecord {
        id,
        user,
        account,
        partition,
        nodes,
        cpus,
        start,
        end,
        eligible,
        state,
        name,
    }))
}

pub(crate) fn owner(line: &str) -> Option<(JobId, JobOwner)> {
    let fields: Vec<&str> = line.split(SEPARATOR).map(str::trim).collect();
    let [id, user, account, ..] = fields[..] else { return None };
    let account = if account == "(null)" { "" } else { account };
    let (user, account) = (user.to_owned(), account.to_owned());
    Some((id.parse().ok()?, JobOwner { user, account }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn line(fields: [&str; 11]) -> String {
        fields.join(&SEPARATOR.to_string())
    }

    const START: &str = "2026-11-16T12:01:41";
    const END: &str = "2026-11-16T12:05:00";

    #[test]
    fn runs_are_read_and_jobs_that_never_ran_are_left_out() {
        let text = [
            line([
                "7",
                "ada",
                "physics",
                "main",
                "n[1-2]",
                "6",
                START,
                END,
                "2026-11-16T12:00:00",
                "CANCELLED by 1000",
                "solve",
            ]),
            line(["8", "bob", "", "gpu", "g1", "1", START, "Unknown", "Unknown", "RUNNING", "a b"]),
            line([
                "9",
                "bob",
                "",
                "gpu",
                "None assigned",
                "0",
                "Unknown",
                "Unknown",
                START,
                "PENDING",
                "x",
            ]),
            line([
                "10",
                "bob",
                "",
                "gpu",
                "None assigned",
                "0",
                "None",
                END,
                START,
                "CANCELLED",
                "x",
            ]),
        ];
        let runs = records(&text.join("\n")).unwrap();
        let [first, second] = &runs[..] else { panic!("{runs:?}") };
        assert_eq!(
            (first.id, first.nodes.to_string(), first.cpus),
            (JobId::new(7), "n[1-2]".into(), 6)
        );
        let took = first.end.unwrap().duration_since(first.start).unwrap();
        assert_eq!(
            (first.user.as_str(), first.account.as_str(), took.as_secs()),
            ("ada", "physics", 199)
        );
        let waited = first.start.duration_since(first.eligible).unwrap();
        assert_eq!((first.state.as_str(), waited.as_secs()), ("CANCELLED", 101));
        assert_eq!((second.account.as_str(), second.end), ("", None));
        assert_eq!((second.name.as_str(), second.eligible), ("a b", second.start));
        assert!(records("Slurm accounting\n").is_err());
    }

    #[test]
    fn owners_are_read() {
        let text = format!("7{SEPARATOR}ada{SEPARATOR}physics{SEPARATOR}");
        let (id, found) = owner(&text).unwrap();
        assert_eq!(
            (id, found.user.as_str(), found.account.as_str()),
            (JobId::new(7), "ada", "physics")
        );
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "(?s).*") {
            let _ = (records(&text), records(&text.replace(' ', "\u{1f}")), owner(&text));
        }
    }
}
