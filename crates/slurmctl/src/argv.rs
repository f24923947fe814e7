//! Command lines for Slurm's programs.

use crate::{BatchJob, JobFilter, JobId, reason::clean};
use hostlist::Hostlist;
use std::num::NonZeroUsize;

/// Arguments of one command, without the program.
pub(crate) type Argv = Vec<String>;

/// Maximum length of a node list in one argument, in bytes. Linux allows 128 KiB.
pub(crate) const LONGEST_LIST: usize = 100_000;

/// Maximum length of a comment, in bytes.
pub(crate) const LONGEST_COMMENT: usize = 1_000;

/// The separator between the fields of a job. Slurm refuses it in what a job's owner may choose.
pub(crate) const SEPARATOR: char = '\u{1f}';

/// The fields of a job. Free text, which only administrators can write, comes last.
pub(crate) const JOB_FIELDS: [&str; 17] = [
    "JobID",
    "JobArrayID",
    "State",
    "Reason",
    "Partition",
    "NodeList",
    "ReqNodes",
    "NumNodes",
    "UserID",
    "Reboot",
    "RestartCnt",
    "Feature",
    "NumCPUs",
    "TimeLimit",
    "EligibleTime",
    "Dependency",
    "admin_comment",
];

pub(crate) fn argv<const N: usize>(words: [&str; N]) -> Argv {
    words.map(str::to_owned).to_vec()
}

/// Splits a list so that each piece fits into an argument.
pub(crate) fn pieces(list: &Hostlist) -> Vec<Hostlist> {
    let text = list.to_string();
    let half = NonZeroUsize::new(list.len().div_ceil(2)).filter(|half| half.get() < list.len());
    match half {
        Some(half) if text.len() > LONGEST_LIST => {
            list.chunks(half).flat_map(|piece| pieces(&piece)).collect()
        }
        Some(_) | None if text.is_empty() => Vec::new(),
        Some(_) | None => vec![list.clone()],
    }
}

pub(crate) fn show_nodes(which: Option<&Hostlist>) -> Argv {
    let mut arguments = argv(["--all", "--oneliner", "show", "node"]);
    arguments.extend(which.map(Hostlist::to_string));
    arguments
}

pub(crate) fn list_jobs(which: &JobFilter) -> Argv {
    let fields = JOB_FIELDS.map(|field| format!("{field}:{SEPARATOR}")).join(",");
    // Without --local, fed_display shows the jobs of all clusters of a federation.
    let mut arguments = argv(["--noheader", "--all", "--local"]);
    match which {
        JobFilter::Ids(_) | JobFilter::Called(_) => arguments.push("--states=all".into()),
        JobFilter::All | JobFilter::On(_) | JobFilter::In(_) => {}
    }
    arguments.push(format!("--Format={fields}"));
    arguments
}

pub(crate) fn comment(job: JobId, text: &str) -> Argv {
    let text = clean(text, LONGEST_COMMENT);
    argv(["update", &format!("jobid={job}"), &format!("admincomment={text}")])
}

pub(crate) fn submit(job: &BatchJob) -> Argv {
    let mut arguments = argv(["--parsable", "--nodes=1", "--output=/dev/null", "--export=NONE"]);
    let mut add = |name: &str, value: &str| arguments.push(format!("--{name}={value}"));
    add("job-name", &clean(&job.name, LONGEST_COMMENT));
    add("partition", &job.partition);
    add("nodelist", job.node.as_str());
    add("chdir", &job.directory.display().to_string());
    if let Some(limit) = job.time_limit {
        let minutes = limit.as_secs().div_ceil(60).max(1);
        add("time", &minutes.to_string());
    }
    if let Some(comment) = &job.comment {
        add("comment", &clean(comment, LONGEST_COMMENT));
    }
    add("wrap", &job.command);
    arguments.extend(job.exclusive.then(|| "--exclusive".to_owned()));
    arguments.extend(job.reboot.then(|| "--reboot".to_owned()));
    // sbatch takes an argument without hyphens for the script.
    arguments.extend(job.options.iter().filter(|option| option.starts_with("--")).cloned());
    arguments
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn list(text: &str) -> Hostlist {
        text.parse().unwrap()
    }

    fn lines(commands: impl IntoIterator<Item = Argv>) -> Vec<String> {
        commands.into_iter().map(|command| command.join(" ")).collect()
    }

    #[test]
    fn commands_have_slurms_syntax() {
        let nodes = list("n[1-2],m");
        let table = [
            (vec![show_nodes(None)], "--all --oneliner show node"),
            (vec![show_nodes(Some(&nodes))], "--all --oneliner show node n[1-2],m"),
            (vec![comment(JobId::new(7), "two\nlines")], "update jobid=7 admincomment=two lines"),
            (
                vec![
                    list_jobs(&JobFilter::Ids(Vec::new()))
                        .into_iter()
                        .filter(|word| !word.starts_with("--Format="))
                        .collect(),
                ],
                "--noheader --all --local --states=all",
            ),
        ];
        for (commands, expected) in table {
            assert_eq!(lines(commands), [expected]);
        }
    }

    #[test]
    fn an_empty_list_has_no_pieces() {
        let none = Hostlist::new();
        assert_eq!(pieces(&none), Vec::<Hostlist>::new());
    }

    #[test]
    fn long_lists_are_split_without_loss() {
        // Names that do not fold.
        let names = (0..20_000).map(|number| format!("node-{number}-x"));
        let list: Hostlist = names.collect();
        let pieces = pieces(&list);
        assert!(pieces.len() > 1);
        let mut all = Hostlist::new();
        for piece in &pieces {
            assert!(piece.to_string().len() <= LONGEST_LIST);
            all.append(piece);
        }
        assert_eq!(all, list);
    }

    #[test]
    fn jobs_are_listed_with_free_text_last() {
        let all = list_jobs(&JobFilter::All);
        assert_eq!(all.len(), 4);
        assert!(all.contains(&"--local".into()), "jobs of other clusters are not ours: {all:?}");
        let fields = all.last().unwrap();
        assert!(fields.starts_with("--Format=JobID:\u{1f},JobArrayID:\u{1f},"), "{fields:?}");
        assert!(fields.ends_with(",admin_comment:\u{1f}"), "{fields:?}");
        assert!(list_jobs(&JobFilter::Ids(Vec::new())).contains(&"--states=all".into()));
    }

    #[test]
    fn a_job_is_submitted_by_options_alone() {
        let mut job = BatchJob::reboot("-x\ny", "rebuild", "n1".parse().unwrap());
        job.time_limit = Some(Duration::from_secs(61));
        job.comment = Some("why".into());
        job.options = ["--no-requeue", "script", "-", "--qos=high"].map(str::to_owned).into();
        let expected = [
            "--parsable",
            "--nodes=1",
            "--output=/dev/null",
            "--export=NONE",
            "--job-name=-x y",
            "--partition=rebuild",
            "--nodelist=n1",
            "--chdir=/",
            "--time=2",
            "--comment=why",
            "--wrap=true",
            "--exclusive",
            "--reboot",
            "--no-requeue",
            "--qos=high",
        ];
        assert_eq!(submit(&job), expected);
    }
}
