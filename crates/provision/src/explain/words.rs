//! What each cause means for whoever waits, and what to do about it.

use super::reported::Reported;
use crate::cause::Cause;

/// A cause in words: a clause that follows "Job 17 waits:", and the remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Words {
    /// One word for machines.
    pub(super) code: &'static str,
    /// A clause in the present tense, without a full stop.
    pub(super) clause: String,
    /// One or two sentences in the imperative.
    pub(super) remedy: String,
}

impl Words {
    pub(super) fn new(
        code: &'static str,
        clause: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self { code, clause: clause.into(), remedy: remedy.into() }
    }

    /// Why a node could not be had, by the reason that Slurm keeps.
    pub(super) fn of(reported: &Reported) -> Self {
        let said = reported.said.trim_end_matches('.');
        let Some(cause) = reported.cause else { return of_refusal(said) };
        if let Some(words) = of_missing(cause, said) {
            return words;
        }
        let pool = reported.pool.as_deref().unwrap_or("the machine that it needs");
        let why = clause(cause, pool);
        let why = if said.is_empty() { why } else { format!("{why} ({said})") };
        Self::new(cause.as_str(), why, remedy(cause))
    }

    /// What the cloud or we have said about a pool that cools down.
    pub(super) fn of_pool(cause: Cause, pool: &str) -> Self {
        let pool = Some(pool.to_owned());
        Self::of(&Reported { cause: Some(cause), pool, said: String::new() })
    }
}

/// What a cause means; the pool is the one that said no.
fn clause(cause: Cause, pool: &str) -> String {
    let text = match cause {
        Cause::Capacity => return format!("{pool} is out of capacity"),
        Cause::Quota => return format!("the quota for {pool} is used up"),
        Cause::Throttled => "the cloud refuses requests because it gets too many",
        Cause::Unavailable => "the cloud cannot be reached or does not work at the moment",
        Cause::Ambiguous => "the cloud's answer to a launch is lost",
        Cause::Unauthenticated => "the cloud does not accept the cluster's credential",
        Cause::Forbidden => "the cloud does not allow the cluster to launch machines",
        Cause::Invalid => "the cloud calls the launch invalid",
        Cause::NotFound => "the cloud does not have what the launch needs",
        Cause::Conflict => {
            "the cloud is busy with something else that has the same name or address"
        }
        Cause::Protocol => "the cloud's answer cannot be understood",
        Cause::Timeout => "its machine did not run in time",
        Cause::Cooling => return format!("{pool} cools down after a failure"),
        Cause::JobIncomplete => "another of its nodes cannot be had",
        Cause::Budget => "the budget is spent",
        Cause::MaxNodes => "as many machines run as may",
        Cause::Unhealthy => "its machines fail their health check",
        Cause::Preempted => "the cloud takes its machine away",
        Cause::NeverRegistered => {
            return format!("{pool} did not register with slurmctld before ResumeTimeout");
        }
        Cause::Refused => "its machine must not be touched",
        Cause::Slurm => "slurmctld did not accept the update",
        Cause::Cancelled => "the start was stopped before it ended",
    };
    text.to_owned()
}

/// What to do about a cause.
fn remedy(cause: Cause) -> &'static str {
    match cause {
        Cause::Capacity => {
            "Wait for the next try, add a place to `fallback` in startnode.yaml, or ask for fewer nodes or another partition."
        }
        Cause::Quota => {
            "Ask the cloud for a higher limit, terminate machines that nobody needs, or add another shape to `fallback` in startnode.yaml."
        }
        Cause::Throttled => {
            "Wait: Slurm tries again. If it lasts, lower `requests_per_second` in startnode.yaml."
        }
        Cause::Unavailable => {
            "Wait: Slurm tries again. If it lasts, see the cloud's status page, and run `finish --check`: it tests endpoint, network and proxy."
        }
        Cause::Ambiguous => {
            "Wait: the next try looks for the machine before it launches another. If it lasts, check the network to the cloud."
        }
        Cause::Unauthenticated => {
            "Run `finish --check` as slurmctld's user: it says which key, token or clock is wrong."
        }
        Cause::Forbidden => {
            "Give the credential the rights that docs/nodes.md lists, then run `finish --check`."
        }
        Cause::Invalid => {
            "Correct shape, network or image in startnode.yaml and limits.yaml; `finish --check` names what is wrong."
        }
        Cause::NotFound => {
            "Correct image, network or shape in startnode.yaml; `finish --check` names what is missing."
        }
        Cause::Conflict => {
            "Wait for the next try. If it lasts, run `reconcile`: it finds machines that are in the way."
        }
        Cause::Protocol => {
            "Check that `endpoint` in startnode.yaml is the cloud's API and not a proxy; `startnode -v` logs each request."
        }
        Cause::Timeout => {
            "Look at the machine's console in the cloud. If machines need longer, raise `ResumeTimeout` in slurm.conf."
        }
        Cause::Cooling => "Wait for the next try, or add a place to `fallback` in startnode.yaml.",
        Cause::JobIncomplete => {
            "Run `explain` for the other nodes of the job, or ask for fewer nodes."
        }
        Cause::Budget => {
            "Wait for the next day or month (UTC), raise `budget` in startnode.yaml, or see who spends: `cost --by user`."
        }
        Cause::MaxNodes => {
            "Wait until other nodes are idle and terminate, or raise `max_nodes` in startnode.yaml."
        }
        Cause::Unhealthy => {
            "Look at what the health check says of the machines; other places are used meanwhile, if there are any."
        }
        Cause::Preempted => "Wait: Slurm requeues the job.",
        Cause::NeverRegistered => {
            "Read the machine's console and slurmd's log: network, munge key, slurm.conf and clock are usual causes. `reconcile` returns the node to service after its cool-down."
        }
        Cause::Refused => "Run `reconcile`: it names the machine and the reason.",
        Cause::Slurm => "Read slurmctld's log, then run `reconcile`.",
        Cause::Cancelled => "Wait: Slurm tries again.",
    }
}

/// What a launch names that is not there, if the cloud's words say what.
fn of_missing(cause: Cause, said: &str) -> Option<Words> {
    if !matches!(cause, Cause::Forbidden | Cause::Invalid | Cause::NotFound) {
        return None;
    }
    // What follows is a list of all that may be wrong.
    let about = said.split(": check ").next().unwrap_or(said).to_lowercase();
    if !GONE.iter().any(|words| about.contains(words)) {
        return None;
    }
    let row = MISSING.iter().find(|(word, ..)| about.contains(word))?;
    let (_, code, what, remedy) = *row;
    Some(Words::new(code, format!("{what} ({said})"), remedy))
}

/// How clouds say that something is not there.
const GONE: [&str; 5] =
    ["is gone", "not found", "does not exist", "could not be found", "can not find"];

/// A word for what is not there, its code, its clause and its remedy; the first that fits counts.
const MISSING: [(&str, &str, &str, &str); 3] = [
    (
        "image",
        "image",
        "the image of its nodes is gone, or the cluster may not see it",
        "Set `image_id` in startnode.yaml to an image that exists and that the cluster's credential may use, then run `finish --check`.",
    ),
    ("subnet", "subnet", NO_NETWORK.0, NO_NETWORK.1),
    ("network", "subnet", NO_NETWORK.0, NO_NETWORK.1),
];

const NO_NETWORK: (&str, &str) = (
    "the subnet of its nodes is gone, or the cluster may not see it",
    "Correct the subnet or network in startnode.yaml, or the policies of the cluster's credential, then run `finish --check`.",
);

/// What a refusal of ours means, by its words.
fn of_refusal(said: &str) -> Words {
    for (words, code, clause, remedy) in REFUSALS {
        if said.contains(words) {
            return Words::new(code, format!("{clause} ({said})"), remedy);
        }
    }
    Words::new("refused", said, "Run `finish --check` and `reconcile`: they name what is wrong.")
}

/// Words of a refusal, its code, its clause and its remedy; the first that fits counts.
const REFUSALS: [(&str, &str, &str, &str); 10] = [
    (
        "configuration: ",
        "configuration",
        "the configuration cannot be read",
        "Correct startnode.yaml in the line that is named, then run `finish --check`.",
    ),
    (
        "has no image",
        "image",
        "the image of its nodes is not in the cloud",
        "Set `image_id` in startnode.yaml to an image that exists, then run `finish --check`.",
    ),
    (
        "no usable image",
        "image",
        "the image of its nodes is not in the cloud",
        "Set `image_id` in startnode.yaml to an image that exists, then run `finish --check`.",
    ),
    (
        "unknown image",
        "image",
        "the image of its nodes is not in the cloud",
        "Set `image_id` in startnode.yaml to an image that exists, then run `finish --check`.",
    ),
    (
        "no feature shape=",
        "shape",
        "slurm.conf does not say which shape its nodes have",
        "Run `finish`, or add the feature shape= to the nodes in slurm.conf.",
    ),
    (
        "unknown key pair",
        "keypair",
        "its nodes name a key pair that the configuration does not have",
        "Correct the feature keypair= in slurm.conf or `keypairs` in startnode.yaml.",
    ),
    (
        " has no price",
        "price",
        "a shape of its nodes has no price, and a budget is set",
        "Add the shape to prices.yaml, then run `finish --check`.",
    ),
    (
        " instances: ",
        "duplicates",
        "several machines have the name of one of its nodes",
        "Run `reconcile`, and terminate the machines that nobody needs.",
    ),
    (
        "no such node in slurm.conf",
        "unknown_node",
        "slurm.conf does not have one of its nodes",
        "Run `finish`, then `scontrol reconfigure`.",
    ),
    (
        " is ",
        "machine_in_hand",
        "somebody works on the machine of one of its nodes",
        "Wait until the machine runs or is stopped, or terminate it in the cloud.",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_cause_has_its_own_clause_and_a_remedy_that_says_what_to_do() {
        let mut clauses = BTreeSet::new();
        for cause in Cause::ALL {
            let words = Words::of_pool(cause, "m1.large");
            assert!(clauses.insert(words.clause.clone()), "{words:?}");
            let verb = words.remedy.split([' ', ':']).next().unwrap_or_default();
            let verbs = ["Ask", "Check", "Correct", "Give", "Look", "Read", "Run", "Wait"];
            assert!(verbs.contains(&verb), "{words:?}");
            assert!(words.remedy.ends_with('.') && !words.clause.ends_with('.'), "{words:?}");
        }
    }

    #[test]
    fn what_is_not_there_is_named() {
        let rows = [
            (
                Cause::Forbidden,
                "Authorization failed.: image … is gone, or the caller may not see it",
                "image",
            ),
            (
                Cause::Forbidden,
                "Authorization failed.: subnet … is gone, or the caller may not see it",
                "subnet",
            ),
            (
                Cause::Forbidden,
                "Authorization failed or requested resource not found.: check compartment_id (…), the image, the subnet and the policies of the caller",
                "forbidden",
            ),
            (Cause::Invalid, "Can not find requested image", "image"),
            (Cause::Invalid, "Network … could not be found.", "subnet"),
            (Cause::NotFound, "The subnet ID 'subnet-…' does not exist", "subnet"),
            (Cause::Invalid, "The shape does not fit the image", "invalid"),
            (Cause::Unavailable, "image service not found", "unavailable"),
        ];
        for (cause, said, code) in rows {
            let reported =
                Reported { cause: Some(cause), said: said.to_owned(), ..Reported::default() };
            assert_eq!(Words::of(&reported).code, code, "{said}");
        }
    }

    #[test]
    fn a_refusal_is_told_by_its_words() {
        let rows = [
            ("configuration: startnode.yaml:3:1: unknown csp", "configuration"),
            ("the cloud has no image rocky-9", "image"),
            ("no usable image: neither by a feature", "image"),
            ("VM.Big has no price, and a budget is set; add it to prices.yaml", "price"),
            ("2 instances: i-1, i-2", "duplicates"),
            ("instance i-1 is unknown", "machine_in_hand"),
            ("weather", "refused"),
        ];
        for (said, code) in rows {
            let reported = Reported { said: said.to_owned(), ..Reported::default() };
            assert_eq!(Words::of(&reported).code, code, "{said}");
        }
    }
}
