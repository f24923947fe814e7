//! Parsing the output of squeue and sbatch.

use crate::{
    Job, JobId, JobState,
    argv::{JOB_FIELDS, SEPARATOR},
    parse::BadLine,
    time,
};
use hostlist::{Hostlist, Parser};

/// Parses the output of squeue with [`JOB_FIELDS`].
pub(crate) fn jobs(text: &str) -> Result<Vec<Job>, BadLine> {
    let lines = text.lines().filter(|line| is_record(line));
    lines.map(|line| job(line).ok_or_else(|| BadLine::new("no job", line))).collect()
}

/// True if a job begins in this line, even if it is cut short. Other lines continue a comment.
fn is_record(line: &str) -> bool {
    let whole = line.matches(SEPARATOR).count() + 1 >= JOB_FIELDS.len();
    let begins = || line.split_once(SEPARATOR).is_some_and(|(id, _)| id.parse::<JobId>().is_ok());
    whole || begins()
}

fn job(line: &str) -> Option<Job> {
    let fields: Vec<&str> = line.splitn(JOB_FIELDS.len(), SEPARATOR).map(str::trim).collect();
    let [
        id,
        shown,
        state,
        reason,
        partition,
        nodes,
        wanted,
        count,
        user,
        reboot,
        restarts,
        features,
        cpus,
        time_limit,
        eligible,
        dependency,
        comment,
    ] = fields[..]
    else {
        return None;
    };
    let text = |value: &str| {
        Some(value).filter(|value| !matches!(*value, "" | "(null)")).map(str::to_owned)
    };
    let mut job = Job::new(id.parse().ok()?, JobState::from(state));
    job.shown_as = text(shown).filter(|shown| shown != id);
    job.reason = text(reason).filter(|reason| reason != "None");
    partition.clone_into(&mut job.partition);
    job.nodes = list(nodes)?;
    // An invalid request of the owner must not hide the job.
    job.wanted = list(wanted).unwrap_or_default();
    job.node_count = count.parse().unwrap_or(0);
    job.user = user.parse().ok()?;
    job.reboot = !matches!(reboot, "0" | "no" | "");
    job.restarts = restarts.parse().unwrap_or(0);
    job.features = text(features);
    job.cpus = cpus.parse().unwrap_or(0);
    job.time_limit = text(time_limit);
    job.eligible = time::parse(eligible);
    job.dependency = text(dependency);
    job.admin_comment = text(comment.trim_end_matches(SEPARATOR));
    Some(job)
}

fn list(text: &str) -> Option<Hostlist> {
    if matches!(text, "" | "(null)" | "N/A") {
        return Some(Hostlist::new());
    }
    Parser::new().max_hosts(1 << 17).parse(text).ok()
}

/// The job id that `sbatch --parsable` prints, with or without the name of a cluster.
pub(crate) fn submitted(text: &str) -> Option<JobId> {
    text.lines().next()?.split(';').next()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn fields(values: &[&str; 17]) -> String {
        values.map(|value| format!("{value}{SEPARATOR}")).concat()
    }

    #[test]
    fn jobs_are_read_field_by_field() {
        let line = fields(&[
            "7",
            "7_2",
            "CONFIGURING",
            "None",
            "main",
            "n[1-2]",
            "",
            "2",
            "1000",
            "1",
            "3",
            "a|b",
            "4",
            "1-00:00:00",
            "2026-11-16T12:01:41",
            "afterok:5",
            "x\u{1f}y",
        ]);
        let more = fields(&[
            "8",
            "8",
            "WEIRD",
            "BeginTime",
            "a,b",
            "",
            "(null)",
            "30-40",
            "0",
            "0",
            "0",
            "(null)",
            "1",
            "UNLIMITED",
            "N/A",
            "(null)",
            "(null)",
        ]);
        let jobs = jobs(&format!("{line}\nrest of a comment\n{more}\n")).unwrap();
        let [first, second] = &jobs[..] else { panic!("{jobs:?}") };
        assert_eq!((first.id, first.state.clone()), (JobId::new(7), JobState::Configuring));
        assert_eq!((first.shown_as.as_deref(), &second.shown_as), (Some("7_2"), &None));
        assert_eq!((first.reason.as_deref(), first.nodes.to_string()), (None, "n[1-2]".into()));
        assert_eq!(
            (first.node_count, first.user, first.reboot, first.restarts),
            (2, 1000, true, 3)
        );
        assert_eq!(first.features.as_deref(), Some("a|b"));
        assert_eq!(first.admin_comment.as_deref(), Some("x\u{1f}y"));
        assert_eq!((first.cpus, first.time_limit.as_deref()), (4, Some("1-00:00:00")));
        assert_eq!((first.eligible.is_some(), second.eligible), (true, None));
        assert_eq!((first.dependency.as_deref(), &second.dependency), (Some("afterok:5"), &None));
        assert_eq!(second.state, JobState::Other("WEIRD".into()));
        assert_eq!(
            (second.reason.as_deref(), second.admin_comment.as_deref()),
            (Some("BeginTime"), None)
        );
    }

    #[test]
    fn a_job_without_an_id_is_an_error() {
        let bad = fields(&[
            "x", "x", "RUNNING", "", "", "", "", "", "0", "0", "0", "", "", "", "", "", "",
        ]);
        assert!(super::jobs(&bad).is_err());
    }

    #[test]
    fn a_job_whose_line_is_cut_is_an_error() {
        let line = fields(&[
            "7", "7", "RUNNING", "", "main", "n1", "x\ny", "1", "0", "0", "0", "", "", "", "", "",
            "",
        ]);
        assert!(jobs(&line).is_err(), "n1 is in use, and must not be taken for free");
    }

    #[test]
    fn an_invalid_request_does_not_hide_the_job() {
        let line = fields(&[
            "7", "7", "RUNNING", "", "main", "n1", "n[", "1", "0", "0", "0", "", "", "", "", "", "",
        ]);
        let jobs = jobs(&line).unwrap();
        let [job] = &jobs[..] else { panic!("{jobs:?}") };
        assert_eq!((job.nodes.to_string(), job.wanted.len()), ("n1".into(), 0));
        let line = fields(&[
            "7", "7", "RUNNING", "", "main", "n[", "", "1", "0", "0", "0", "", "", "", "", "", "",
        ]);
        assert!(super::jobs(&line).is_err(), "where it runs must be known");
    }

    #[test]
    fn the_id_of_a_submitted_job_is_parsed() {
        assert_eq!(submitted("17\n"), Some(JobId::new(17)));
        assert_eq!(submitted("17;cluster\n"), Some(JobId::new(17)));
        assert_eq!(submitted("Submitted batch job 17"), None);
    }

    proptest! {
        #[test]
        fn nothing_panics(text in "(?s).*") {
            let _ = (jobs(&text), jobs(&text.replace(' ', "\u{1f}")), submitted(&text));
        }
    }
}
