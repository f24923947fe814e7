//! What people call a job: `17`, a task of an array, or a part of a heterogeneous job.

use crate::{Job, JobId};
use std::{fmt, str::FromStr};

/// A job as squeue shows it: `17`, `17_3` for a task of an array, or `17+1` for a part of a heterogeneous job.
///
/// ```
/// use slurmctl::JobRef;
///
/// let task: JobRef = "17_3".parse()?;
/// assert_eq!(task, JobRef::Task { array: 17, task: 3 });
/// assert_eq!(task.to_string(), "17_3");
/// # Ok::<(), slurmctl::BadJobRef>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobRef {
    /// A job, an array as a whole, or the first part of a heterogeneous job.
    Job(JobId),
    /// A task of an array.
    Task {
        /// The id of the array.
        array: u32,
        /// The number of the task.
        task: u32,
    },
    /// A part of a heterogeneous job.
    Part {
        /// The id of the first part.
        first: u32,
        /// The number of the part, which is 0 for the first.
        offset: u32,
    },
}

/// A text that names no job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadJobRef;

impl fmt::Display for BadJobRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("expected a job such as 17, 17_3 or 17+1")
    }
}

impl std::error::Error for BadJobRef {}

impl FromStr for JobRef {
    type Err = BadJobRef;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let pair = |(one, other): (&str, &str)| Some((number(one)?, number(other)?));
        let task = || text.split_once('_').and_then(pair);
        let part = || text.split_once('+').and_then(pair);
        let job = || number(text).map(|id| Self::Job(JobId::new(id)));
        let task = task().map(|(array, task)| Self::Task { array, task });
        let part = part().map(|(first, offset)| Self::Part { first, offset });
        task.or(part).or_else(job).ok_or(BadJobRef)
    }
}

/// Digits alone, because `u32` also parses `+1`.
fn number(text: &str) -> Option<u32> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

impl fmt::Display for JobRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Job(id) => id.fmt(f),
            Self::Task { array, task } => write!(f, "{array}_{task}"),
            Self::Part { first, offset } => write!(f, "{first}+{offset}"),
        }
    }
}

impl From<JobId> for JobRef {
    fn from(id: JobId) -> Self {
        Self::Job(id)
    }
}

impl JobRef {
    /// True if this is how people call the job. Tasks of an array that wait are one job to Slurm: `17_[3-9%2]`.
    #[must_use]
    pub fn matches(self, job: &Job) -> bool {
        let shown = job.shown_as.as_deref().unwrap_or_default();
        match self {
            Self::Job(id) => job.id == id || base(shown) == Some(id.get()),
            Self::Part { .. } => shown == self.to_string(),
            Self::Task { array, task } => {
                shown == self.to_string()
                    || base(shown) == Some(array) && tasks(shown).is_some_and(|it| has(it, task))
            }
        }
    }

    /// The job among these that people mean: of an array as a whole, the tasks that wait, and else the first.
    #[must_use]
    pub fn find(self, jobs: &[Job]) -> Option<&Job> {
        let same = |job: &&Job| Self::Job(job.id) == self;
        jobs.iter().find(same).or_else(|| jobs.iter().find(|job| self.matches(job)))
    }
}

/// The id of the array, or of the first part.
fn base(shown: &str) -> Option<u32> {
    number(shown.split_once(['_', '+'])?.0)
}

/// The list of tasks in `17_[3-9%2]`.
fn tasks(shown: &str) -> Option<&str> {
    let (_, list) = shown.split_once("_[")?;
    list.trim_end_matches(']').split('%').next()
}

/// True if a list such as `1,3-9:2` has the task. squeue cuts a long one off with dots: it may have any.
fn has(ranges: &str, task: u32) -> bool {
    ranges.ends_with("...")
        || ranges.split(',').any(|range| {
            let (range, step) = range.split_once(':').unwrap_or((range, "1"));
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            let within = |first: u32, last: u32, step: u32| {
                (first..=last).contains(&task) && (task - first).checked_rem(step) == Some(0)
            };
            let numbers = number(first).zip(number(last)).zip(number(step));
            numbers.is_some_and(|((first, last), step)| within(first, last, step))
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::JobState;

    fn job(id: u32, shown: &str) -> Job {
        let mut job = Job::new(JobId::new(id), JobState::Pending);
        job.shown_as = Some(shown.to_owned());
        job
    }

    #[test]
    fn a_job_reads_back_and_nothing_else_is_one() {
        for text in ["17", "17_3", "17+1", "17+0"] {
            assert_eq!(text.parse::<JobRef>().unwrap().to_string(), text);
        }
        for text in ["", "n1", "+1", "17_", "_3", "17_[3]", "17+", "17 ", "1_2_3", "99999999999"] {
            assert_eq!(text.parse::<JobRef>(), Err(BadJobRef), "{text}");
        }
    }

    #[test]
    fn a_task_is_found_alone_and_among_those_that_wait() {
        let rows = [
            ("17_3", "17_3", true),
            ("17_3", "17_4", false),
            ("17_3", "17_[1-4]", true),
            ("17_3", "17_[1-9:2%5]", true),
            ("17_4", "17_[1-9:2%5]", false),
            ("17_3", "17_[1,3]", true),
            ("17_3", "17_[4-9]", false),
            ("17_3", "18_[1-4]", false),
            ("17_99", "17_[1,3,5...]", true),
            ("17_3", "17_[1-9:0]", false),
            ("17_3", "17", false),
            ("17+1", "17+1", true),
            ("17+1", "17+0", false),
            ("17", "17_[1-4]", true),
            ("17", "17_3", true),
            ("17", "18", false),
        ];
        for (text, shown, expected) in rows {
            let wanted: JobRef = text.parse().unwrap();
            assert_eq!(wanted.matches(&job(20, shown)), expected, "{text} {shown}");
        }
    }

    #[test]
    fn of_an_array_the_job_with_its_id_is_meant() {
        let jobs = [job(20, "17_1"), job(17, "17_[2-4]")];
        let found = |text: &str| text.parse::<JobRef>().unwrap().find(&jobs).map(|job| job.id);
        assert_eq!(found("17"), Some(JobId::new(17)));
        assert_eq!(found("17_1"), Some(JobId::new(20)));
        assert_eq!(found("17_3"), Some(JobId::new(17)));
        assert_eq!(found("17_5"), None);
    }
}
