//! Why a job waits, or a node is as it is: a sentence, the evidence and the remedy.
//!
//! [`gather()`] asks Slurm, the cloud and the state directory; the other functions are pure. They need not know everything:
//! the owner of a job may neither read the state directory nor ask the cloud, and then the reasons that Slurm keeps are
//! what there is.

mod candidates;
mod cluster;
mod condition;
mod elsewhere;
mod events;
mod facts;
mod gather;
mod job;
mod node;
mod reported;
mod slurm_reason;
#[cfg(test)]
mod tests;
mod words;

pub use cluster::cluster;
pub use elsewhere::Rooms;
pub use facts::{Facts, Learnt};
pub use gather::{Sources, gather};
pub use job::job;
pub use node::node;

use crate::plan::our_reason;
use reported::Reported;
use serde::Serialize;
use slurmctl::JobId;
use std::time::{Duration, SystemTime};
use words::Words;

/// Why something is as it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Explanation {
    /// What is explained: `job 17`, `node n1` or `cluster`.
    pub subject: String,
    /// The cause, one word that does not change.
    pub cause: &'static str,
    /// The cause in one sentence, which also becomes the admin comment of a job.
    pub sentence: String,
    /// Further sentences of the paragraph.
    pub details: Vec<String>,
    /// What to do.
    pub remedy: String,
    /// What was seen, and where.
    pub evidence: Vec<Evidence>,
}

/// Something that was seen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Evidence {
    /// Who says it: `slurm`, `slurm.conf`, `cloud`, `cool-down`, `event`, `budget`, or `not seen`.
    pub source: &'static str,
    /// What it says.
    pub text: String,
}

impl Explanation {
    fn new(subject: String, words: Words, sentence: String) -> Self {
        let Words { code, remedy, .. } = words;
        let (details, evidence) = (Vec::new(), Vec::new());
        Self { subject, cause: code, sentence, details, remedy, evidence }
    }

    /// The sentence and what belongs to it, as one paragraph.
    #[must_use]
    pub fn paragraph(&self) -> String {
        let sentences = std::iter::once(&self.sentence).chain(&self.details);
        sentences.map(String::as_str).collect::<Vec<_>>().join(" ")
    }

    fn see(&mut self, source: &'static str, text: impl Into<String>) {
        self.evidence.push(Evidence { source, text: text.into() });
    }

    fn see_gaps(mut self, facts: &Facts<'_>) -> Self {
        for gap in facts.gaps() {
            self.see("not seen", gap);
        }
        self
    }
}

/// The first sentence about a job that waits, by the reason for which one of its nodes was returned to Slurm.
///
/// The job's admin comment and [`job()`] say the same.
pub(crate) fn waits(job: JobId, reason: &str) -> String {
    // As Slurm keeps it, which cuts long texts.
    let reason = our_reason(reason);
    let reported = Reported::read(reason.as_str()).unwrap_or_default();
    sentence(job, &Words::of(&reported))
}

fn sentence(job: impl std::fmt::Display, words: &Words) -> String {
    format!("Job {job} waits: {}.", words.clause)
}

/// A time span in the one unit that says most.
fn span(time: Duration) -> String {
    let seconds = time.as_secs();
    let (count, unit) = match seconds {
        0..120 => (seconds, "second"),
        120..7_200 => (seconds / 60, "minute"),
        7_200..172_800 => (seconds / 3_600, "hour"),
        _ => (seconds / 86_400, "day"),
    };
    format!("{count} {unit}{}", if count == 1 { "" } else { "s" })
}

/// How long ago a time is.
fn ago(at: SystemTime, now: SystemTime) -> String {
    span(now.duration_since(at).unwrap_or_default())
}
