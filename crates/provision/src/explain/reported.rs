//! What a reason of ours says: why a node could not be had, read back from the text that Slurm keeps.
//!
//! Everybody may read it there, also whoever may not read the state directory.

use crate::cause::Cause;
use crate::plan::OUR_PREFIX;

/// Why a node could not be had.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Reported {
    /// The cause, if the text names one of ours.
    pub(super) cause: Option<Cause>,
    /// The pool that said no.
    pub(super) pool: Option<String>,
    /// What the cloud, or we, said besides.
    pub(super) said: String,
}

/// What stands before the cause in the reason of a drain of ours.
const DRAINS: [&str; 2] = ["drained for lack of room: ", "drained for want of a machine: "];

/// What follows the cause and says nothing about it: when it is tried next, whose drain was covered, and what Slurm adds.
const TAILS: [&str; 3] = [", next try after ", "; drained before: ", " : ResumeTimeout reached"];

/// What stands between a job that cannot get all its nodes and the reason of one of them.
const INCOMPLETE: &str = " cannot get all its nodes, ";

impl Reported {
    /// The reason of a node, if it is ours.
    pub(super) fn read(reason: &str) -> Option<Self> {
        reason.strip_prefix(OUR_PREFIX).map(Self::of)
    }

    /// A reason without its prefix.
    pub(super) fn of(text: &str) -> Self {
        let text = DRAINS.iter().find_map(|drain| text.strip_prefix(drain)).unwrap_or(text);
        if let Some((_, of_node)) = text.split_once(INCOMPLETE) {
            return Self::of(of_node.split_once(": ").map_or(of_node, |(_, why)| why));
        }
        let end = TAILS.iter().filter_map(|tail| text.find(tail)).min().unwrap_or(text.len());
        let text = text.get(..end).unwrap_or(text);
        let parts: Vec<&str> = text.split(": ").collect();
        for (at, part) in parts.iter().enumerate() {
            let Some((cause, rest)) = named(part) else { continue };
            let said = parts.iter().skip(at + 1).copied().collect::<Vec<_>>().join(": ");
            let before = at.checked_sub(1).and_then(|at| parts.get(at));
            let pool = pool_in(rest).or_else(|| before.copied().filter(|word| !is_verb(word)));
            return Self { cause: Some(cause), pool: pool.map(str::to_owned), said };
        }
        Self { said: text.to_owned(), ..Self::default() }
    }
}

/// The cause that a part of a reason begins with, and what follows.
fn named(part: &str) -> Option<(Cause, &str)> {
    // What a budget refuses begins with its name in the configuration.
    let by_name = [Cause::Budget, Cause::MaxNodes].into_iter().find(|it| it.as_str() == part);
    if let Some(cause) = by_name {
        return Some((cause, ""));
    }
    Cause::ALL.into_iter().find_map(|cause| {
        let rest = part.strip_prefix(cause.words())?;
        (rest.is_empty() || rest.starts_with(" (")).then_some((cause, rest))
    })
}

fn pool_in(rest: &str) -> Option<&str> {
    rest.trim_start().strip_prefix('(')?.strip_suffix(')')
}

/// True for what was tried, such as `launch`, where a pool may stand: shapes have digits, dots or capitals.
fn is_verb(word: &str) -> bool {
    word.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b' ')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_of_ours_reads_back() {
        let full = "VM.Standard2.1 in Uocm:PHX-AD-1";
        let rows = [
            (
                "elastic: launch: out of capacity (VM.Standard2.1 in Uocm:PHX-AD-1): Out of host capacity.",
                (Some(Cause::Capacity), Some(full), "Out of host capacity."),
            ),
            (
                "elastic: drained for lack of room: VM.Standard2.1 in Uocm:PHX-AD-1: quota exceeded, next try after 2026-11-16T12:00:00Z",
                (Some(Cause::Quota), Some(full), ""),
            ),
            (
                "elastic: drained for want of a machine: took too long, next try after 2026-11-16T12:00:00Z",
                (Some(Cause::Timeout), None, ""),
            ),
            (
                "elastic: job 7 cannot get all its nodes, n1: VM.Standard2.1 in Uocm:PHX-AD-1: out of capacity, next try after x",
                (Some(Cause::Capacity), Some(full), ""),
            ),
            (
                "elastic: budget: 20.00 of 20.00 USD spent this day, next start 2026-11-19T00:00:00Z",
                (
                    Some(Cause::Budget),
                    None,
                    "20.00 of 20.00 USD spent this day, next start 2026-11-19T00:00:00Z",
                ),
            ),
            (
                "elastic: max_nodes: 3 of 3 machines run or start",
                (Some(Cause::MaxNodes), None, "3 of 3 machines run or start"),
            ),
            ("elastic: job cannot get all its nodes", (Some(Cause::JobIncomplete), None, "")),
            (
                "elastic: list: not authenticated: 401: no such key",
                (Some(Cause::Unauthenticated), None, "401: no such key"),
            ),
            (
                "elastic: m1.large: quota exceeded, next try after x : ResumeTimeout reached",
                (Some(Cause::Quota), Some("m1.large"), ""),
            ),
            (
                "elastic: no such node in slurm.conf; drained before: fan",
                (None, None, "no such node in slurm.conf"),
            ),
        ];
        for (reason, (cause, pool, said)) in rows {
            let read = Reported::read(reason).unwrap();
            assert_eq!((read.cause, read.pool.as_deref(), read.said.as_str()), (cause, pool, said));
        }
        assert_eq!(Reported::read("fan broken"), None, "an administrator's");
    }
}
