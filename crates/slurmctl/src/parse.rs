//! What Slurm's programs print. Nothing here panics, whatever the text.

use crate::{
    Job, JobId, JobState, Node, NodeReason, NodeState,
    argv::{JOB_FIELDS, SEPARATOR},
    time,
};
use hostlist::{Hostlist, NodeName, Parser};

/// A line that was not understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what} in {line:?}")]
pub(crate) struct BadLine {
    what: &'static str,
    line: String,
}

impl BadLine {
    fn new(what: &'static str, line: &str) -> Self {
        Self { what, line: line.chars().take(200).collect() }
    }
}

/// Free text comes at the end of a node's line, in this order, each if there is any.
const TEXTS: [&str; 5] = [" Reason=", " Comment=", " Extra=", " InstanceId=", " InstanceType="];

/// Reads what `scontrol show node --oneliner` prints.
///
/// Names that slurmctld does not know are told in lines of their own, and left out.
pub(crate) fn nodes(text: &str) -> Result<Vec<Node>, BadLine> {
    let lines = text.lines().filter(|line| line.starts_with("NodeName="));
    lines.map(node).collect()
}

fn node(line: &str) -> Result<Node, BadLine> {
    let (fields, texts) = split_texts(line);
    // What a machine says about itself (Version=, OS=) stands between these two groups and could hold
    // anything: the first of what comes before, the last of what comes after.
    let first = |name: &str| value(fields, fields.find(name)?, name);
    let last = |name: &str| value(fields, fields.rfind(name)?, name);
    let name = line.strip_prefix("NodeName=").and_then(|rest| rest.split(' ').next());
    let name =
        NodeName::new(name.unwrap_or_default()).map_err(|_| BadLine::new("no node name", line))?;
    let state = last(" State=").ok_or_else(|| BadLine::new("no state", line))?;
    let mut node = Node::new(name, NodeState::from(state));
    if let Some(address) = first(" NodeAddr=") {
        address.clone_into(&mut node.address);
    }
    if let Some(hostname) = first(" NodeHostName=") {
        hostname.clone_into(&mut node.hostname);
    }
    node.features = words(first(" ActiveFeatures="));
    node.partitions = words(last(" Partitions="));
    node.boot_time = last(" BootTime=").and_then(time::parse);
    node.last_busy = last(" LastBusyTime=").and_then(time::parse);
    node.resume_after = last(" ResumeAfterTime=").and_then(time::parse);
    read_texts(&mut node, texts);
    Ok(node)
}

fn value<'a>(fields: &'a str, at: usize, name: &str) -> Option<&'a str> {
    let rest = fields.get(at + name.len()..)?;
    rest.split(' ').next().filter(|value| !value.is_empty() && *value != "(null)")
}

fn words(value: Option<&str>) -> Vec<String> {
    let words = value.unwrap_or_default().split(',').filter(|word| !word.is_empty());
    words.map(str::to_owned).collect()
}

/// The fields that are single words, and the free texts after them.
fn split_texts(line: &str) -> (&str, &str) {
    let from = line.find(" CfgTRES=").unwrap_or(0);
    let rest = line.get(from..).unwrap_or_default();
    let first = TEXTS.iter().filter_map(|marker| rest.find(marker)).min();
    first.and_then(|at| line.split_at_checked(from + at)).unwrap_or((line, ""))
}

fn read_texts(node: &mut Node, texts: &str) {
    let mut rest = texts;
    if let Some(text) = rest.strip_prefix(" Reason=") {
        let (reason, after) = split_reason(text);
        node.reason = Some(read_reason(reason));
        rest = after;
    }
    let slots =
        [&mut node.comment, &mut node.extra, &mut node.instance_id, &mut node.instance_type];
    for (index, slot) in slots.into_iter().enumerate() {
        let later = TEXTS.get(index + 2..).unwrap_or_default();
        let Some(text) = TEXTS.get(index + 1).and_then(|marker| rest.strip_prefix(marker)) else {
            continue;
        };
        let end = later.iter().filter_map(|marker| text.find(marker)).min().unwrap_or(text.len());
        let (value, after) = text.split_at_checked(end).unwrap_or((text, ""));
        *slot = Some(value.trim_end().to_owned());
        rest = after;
    }
}

/// A reason ends with `[who@when]`; it may hold anything, even the names of what follows it.
fn split_reason(text: &str) -> (&str, &str) {
    let ends = |at: usize| {
        let after = text.get(at + 1..).unwrap_or_default();
        let others = TEXTS.iter().skip(1);
        after.trim().is_empty() || others.into_iter().any(|marker| after.starts_with(marker))
    };
    let end = text.match_indices(']').map(|(at, _)| at).find(|at| ends(*at));
    end.and_then(|at| text.split_at_checked(at + 1)).unwrap_or((text, ""))
}

fn read_reason(text: &str) -> NodeReason {
    let signed = text.trim_end().strip_suffix(']').and_then(|text| text.rsplit_once(" ["));
    let parts = signed.and_then(|(text, signature)| {
        let (by, at) = signature.rsplit_once('@')?;
        Some((text, by, time::parse(at)?))
    });
    match parts {
        Some((text, by, at)) => {
            NodeReason { text: text.to_owned(), by: Some(by.to_owned()), at: Some(at) }
        }
        None => NodeReason::new(text.trim_end()),
    }
}

/// Reads what squeue prints in the form that we ask for.
pub(crate) fn jobs(text: &str) -> Result<Vec<Job>, BadLine> {
    // The last text may have been given more than one line.
    let lines = text.lines().filter(|line| line.matches(SEPARATOR).count() + 1 >= JOB_FIELDS.len());
    lines.map(|line| job(line).ok_or_else(|| BadLine::new("no job", line))).collect()
}

fn job(line: &str) -> Option<Job> {
    let fields: Vec<&str> = line.splitn(JOB_FIELDS.len(), SEPARATOR).map(str::trim).collect();
    let [
        id,
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
        comment,
    ] = fields[..]
    else {
        return None;
    };
    let text = |value: &str| {
        Some(value).filter(|value| !matches!(*value, "" | "(null)")).map(str::to_owned)
    };
    let mut job = Job::new(id.parse().ok()?, JobState::from(state));
    job.reason = text(reason).filter(|reason| reason != "None");
    partition.clone_into(&mut job.partition);
    job.nodes = list(nodes)?;
    job.wanted = list(wanted)?;
    job.node_count = count.parse().unwrap_or(0);
    job.user = user.parse().ok()?;
    job.reboot = !matches!(reboot, "0" | "no" | "");
    job.restarts = restarts.parse().unwrap_or(0);
    job.features = text(features);
    job.admin_comment = text(comment.trim_end_matches(SEPARATOR));
    Some(job)
}

fn list(text: &str) -> Option<Hostlist> {
    if matches!(text, "" | "(null)" | "N/A") {
        return Some(Hostlist::new());
    }
    Parser::new().max_hosts(1 << 17).parse(text).ok()
}

/// The number that `sbatch --parsable` prints, with or without a cluster's name.
pub(crate) fn submitted(text: &str) -> Option<JobId> {
    text.lines().next()?.split(';').next()?.trim().parse().ok()
}

/// True if any controller is up: `scontrol ping` has a line for each.
pub(crate) fn is_up(text: &str) -> bool {
    text.lines().any(|line| line.trim_end().ends_with(" is UP"))
}
