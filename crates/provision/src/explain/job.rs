//! Why a job waits.

use super::candidates::Candidates;
use super::condition::Condition;
use super::elsewhere::elsewhere;
use super::events::{last_return, refusals};
use super::facts::Facts;
use super::node::see_node;
use super::slurm_reason::{self, larger_than_partition};
use super::words::Words;
use super::{Explanation, ago, sentence, span};
use crate::cooldown::Cooldown;
use crate::site::Pool;
use hostlist::NodeName;
use slurmctl::{Job, JobId, JobRef, JobState, Node};
use std::collections::BTreeMap;
use std::time::SystemTime;

/// Most nodes that are shown one by one.
const MOST_NODES: usize = 8;

/// Why a job waits, or what it does instead.
#[must_use]
pub fn job(wanted: JobRef, facts: &Facts<'_>) -> Explanation {
    let (Ok(jobs), Ok(nodes)) = (&facts.jobs, &facts.nodes) else {
        return no_slurmctld(format!("job {wanted}"), facts);
    };
    let Some(job) = wanted.find(jobs) else {
        return unknown(wanted).see_gaps(facts);
    };
    let name = match wanted {
        JobRef::Job(_) => job.shown_as.clone().unwrap_or_else(|| job.id.to_string()),
        // Slurm shows the tasks of an array that wait as one job.
        JobRef::Task { .. } | JobRef::Part { .. } => wanted.to_string(),
    };
    let mut explanation = match job.state {
        JobState::Pending | JobState::RequeueHold | JobState::Requeued => {
            pending(&name, job, nodes, facts)
        }
        JobState::Configuring => starting(&name, job, nodes, facts),
        _ => not_waiting(&name, job),
    };
    see_job(&mut explanation, job, facts.now);
    explanation.evidence.rotate_right(1);
    explanation.see_gaps(facts)
}

/// slurmctld does not answer, and nothing is known of anything.
pub(super) fn no_slurmctld(subject: String, facts: &Facts<'_>) -> Explanation {
    let words = Words::new(
        "slurmctld",
        "slurmctld does not answer",
        "Check it with `scontrol ping` and `systemctl status slurmctld`, and read its log; no job starts until it is back.",
    );
    let sentence = format!("Nothing is known of {subject}: {}.", words.clause);
    Explanation::new(subject, words, sentence).see_gaps(facts)
}

fn unknown(wanted: JobRef) -> Explanation {
    let words = Words::new(
        "unknown_job",
        "",
        format!("See `sacct -j {wanted}`, or ask the job's owner or an administrator."),
    );
    let text =
        format!("Slurm shows no job {wanted}: it has ended a while ago, or is somebody else's.");
    Explanation::new(format!("job {wanted}"), words, text)
}

fn see_job(explanation: &mut Explanation, job: &Job, now: SystemTime) {
    let reason = job.reason.as_deref().unwrap_or("None");
    let mut parts = vec![format!(
        "job {}: {}, Reason={reason}, {} in partition {}",
        job.shown_as.clone().unwrap_or_else(|| job.id.to_string()),
        job.state,
        slurm_reason::nodes(job.node_count),
        job.partition
    )];
    if !job.wanted.is_empty() {
        parts.push(format!("nodes {}", job.wanted));
    }
    if job.restarts > 0 {
        parts.push(format!("requeued {} times", job.restarts));
    }
    if let Some(wait) = job.eligible.and_then(|at| at.duration_since(now).ok()) {
        parts.push(format!("eligible in {}", span(wait)));
    }
    explanation.see("slurm", parts.join(", "));
}

fn pending(
    name: &str,
    job: &Job,
    nodes: &BTreeMap<NodeName, Node>,
    facts: &Facts<'_>,
) -> Explanation {
    let waits = |words: Words| {
        let text = sentence(name, &words);
        Explanation::new(format!("job {name}"), words, text)
    };
    if let Some(words) = slurm_reason::of(job, facts.conf) {
        return waits(words);
    }
    if let Some(words) = larger_than_partition(job, facts.conf) {
        return waits(words);
    }
    let candidates = Candidates::of(job, nodes, facts);
    let (words, about) = by_nodes(job, &candidates, facts);
    let mut explanation = waits(words);
    explanation.details.push(candidates.tally(job));
    if let Some(Condition::Cooling(pool, cooldown)) = about {
        explanation.details.push(cools(pool, cooldown, facts));
        explanation.details.extend(elsewhere(pool, facts));
    }
    let again = job.eligible.and_then(|at| at.duration_since(facts.now).ok());
    if let Some(again) = again.filter(|_| job.restarts > 0) {
        explanation.details.push(format!("Slurm tries the job again in {}.", span(again)));
    }
    for (list, condition) in candidates.folded().iter().take(MOST_NODES) {
        explanation.see("slurm", format!("{list}: {}", condition.label()));
    }
    see_conditions(&mut explanation, &candidates, nodes, facts);
    explanation
}

/// Since when a pool says no, how often it was tried, and when it is tried again.
fn cools(pool: &Pool, cooldown: &Cooldown, facts: &Facts<'_>) -> String {
    let (tries, since) = refusals(pool, facts).unwrap_or((1, cooldown.opened));
    let tries = if tries == 1 { "once".to_owned() } else { format!("{tries} times") };
    let next = cooldown.ends().duration_since(facts.now).unwrap_or_default();
    format!(
        "{pool} has said no for {} (tried {tries}, next try in {}).",
        ago(since, facts.now),
        span(next)
    )
}

/// What the first nodes of each kind that is out of service, or whose start failed, say themselves.
fn see_conditions(
    explanation: &mut Explanation,
    candidates: &Candidates,
    nodes: &BTreeMap<NodeName, Node>,
    facts: &Facts<'_>,
) {
    let mut seen: Vec<&str> = Vec::new();
    for (name, condition) in &candidates.0 {
        let speaks = condition.words(name).is_some();
        if speaks && seen.len() < MOST_NODES && !seen.contains(&condition.label()) {
            seen.push(condition.label());
            see_node(explanation, name, nodes.get(name), facts);
        }
    }
}

/// Why the nodes keep the job waiting, and the condition that does.
fn by_nodes<'a>(
    job: &Job,
    candidates: &'a Candidates,
    facts: &Facts<'_>,
) -> (Words, Option<&'a Condition>) {
    let needed = usize::try_from(job.node_count).unwrap_or(usize::MAX);
    if candidates.0.is_empty() {
        return (nothing_fits(job), None);
    }
    let blocked = candidates.blocker().filter(|_| candidates.in_service() < needed);
    let requeued = || candidates.last_failure().filter(|_| job.restarts > 0);
    let found = blocked.or_else(requeued);
    let words = found.and_then(|(name, condition)| Some((condition.words(name)?, condition)));
    if let Some((words, condition)) = words {
        return (words, Some(condition));
    }
    // It was requeued, and Slurm has cleared the reasons of the nodes since.
    let busy = candidates.count(|condition| *condition == Condition::Busy);
    let names: Vec<NodeName> = candidates.0.iter().map(|(name, _)| name.clone()).collect();
    let noted = last_return(job.id, &names, facts).map(|why| Words::of(&why));
    let commented = || job.admin_comment.as_deref().and_then(|text| of_comment(job.id, text));
    if let Some(words) = noted.or_else(commented).filter(|_| busy == 0 && job.restarts > 0) {
        return (words, None);
    }
    (turn(job, busy), None)
}

/// The clause of an admin comment of ours.
fn of_comment(id: JobId, comment: &str) -> Option<Words> {
    let clause = comment.strip_prefix(&format!("Job {id} waits: "))?.trim_end_matches('.');
    let remedy = "Wait for Slurm's next try; run `explain` as an administrator for more.";
    Some(Words::new("returned", clause, remedy))
}

fn nothing_fits(job: &Job) -> Words {
    let partition = &job.partition;
    let asks = match (&job.features, job.wanted.is_empty()) {
        (Some(features), true) => format!("with {features}"),
        (_, false) => format!("called {}", job.wanted),
        (None, true) => "at all".to_owned(),
    };
    Words::new(
        "nothing_fits",
        format!("partition {partition} has no node {asks}"),
        "Correct the job's partition, --constraint or --nodelist, or add nodes to limits.yaml.",
    )
}

/// Nothing is wrong: the job waits for its turn.
fn turn(job: &Job, busy: usize) -> Words {
    let reason = job.reason.as_deref().unwrap_or("None");
    if reason.starts_with("Priority") {
        return Words::new(
            "priority",
            "jobs of a higher priority come first",
            "Wait for its turn; see `sprio` and `squeue --start`.",
        );
    }
    let begin = Words::new(
        "begin_time",
        "it is not to begin yet",
        format!("Wait, or run `scontrol update jobid={} starttime=now`.", job.id),
    );
    // Slurm gives a job that it has requeued a time to begin, too.
    if reason.starts_with("BeginTime") && job.restarts == 0 {
        return begin;
    }
    if busy > 0 {
        let have =
            if busy == 1 { "1 node that it".to_owned() } else { format!("{busy} nodes that it") };
        return Words::new(
            "busy",
            format!("other jobs have {have} could use"),
            "Wait for them to end, ask for fewer nodes, or raise the count in limits.yaml and run `resize`.",
        );
    }
    if reason.starts_with("BeginTime") {
        return begin;
    }
    Words::new(
        "not_scheduled",
        format!("Slurm has not scheduled it yet ({reason})"),
        format!(
            "Wait a minute; if it lasts, see `scontrol show job {}` and slurmctld's log.",
            job.id
        ),
    )
}

/// A job whose nodes boot.
fn starting(
    name: &str,
    job: &Job,
    nodes: &BTreeMap<NodeName, Node>,
    facts: &Facts<'_>,
) -> Explanation {
    let names = job.nodes.node_names().unwrap_or_default();
    let is_up = |name: &&NodeName| nodes.get(*name).is_some_and(|node| node.state.is_up());
    let up = names.iter().filter(is_up).count();
    let late = names.iter().filter(|name| !is_up(name));
    let waiting: hostlist::Hostlist = late.clone().collect();
    let text = if waiting.is_empty() {
        format!("Job {name} starts: its nodes are up, and Slurm launches it.")
    } else {
        format!("Job {name} starts: {waiting} boots, and {up} of {} nodes are up.", names.len())
    };
    let words = Words::new(
        "starting",
        "",
        "Wait. If a node stays like this, read its console and slurmd's log; Slurm gives it up at ResumeTimeout and requeues the job.",
    );
    let mut explanation = Explanation::new(format!("job {name}"), words, text);
    for node in late.take(MOST_NODES) {
        see_node(&mut explanation, node, nodes.get(node), facts);
    }
    explanation
}

/// A job that does not wait.
fn not_waiting(name: &str, job: &Job) -> Explanation {
    let subject = format!("job {name}");
    if job.state.is_finished() {
        let words = Words::new("ended", "", format!("See `sacct -j {name}` and the job's output."));
        let word = job.state.as_str();
        return Explanation::new(
            subject,
            words,
            format!("Job {name} does not wait: it has ended ({word})."),
        );
    }
    let words = Words::new("running", "", "Nothing is to be done.");
    let text = format!(
        "Job {name} does not wait: it is {} on {}.",
        job.state.as_str().to_lowercase(),
        job.nodes
    );
    Explanation::new(subject, words, text)
}
