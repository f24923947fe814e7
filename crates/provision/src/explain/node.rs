//! Why a node is as it is.

use super::condition::Condition;
use super::events::see_events;
use super::facts::Facts;
use super::job::no_slurmctld;
use super::words::Words;
use super::{Explanation, ago, span};
use crate::cause::Cause;
use cloud_core::Instance;
use hostlist::NodeName;
use slurmctl::Node;

/// Why a node is as it is.
#[must_use]
pub fn node(name: &NodeName, facts: &Facts<'_>) -> Explanation {
    let subject = format!("node {name}");
    let Ok(nodes) = &facts.nodes else { return no_slurmctld(subject, facts) };
    let Some(known) = nodes.get(name) else {
        return unknown(subject, name, facts).see_gaps(facts);
    };
    let condition = Condition::of(known, facts);
    let (words, text) = match condition.words(name) {
        Some(words) => {
            let text = failed(name, &condition, &words);
            (words, text)
        }
        None => well(name, &condition, facts),
    };
    let mut explanation = Explanation::new(subject, words, text);
    if let Condition::Cooling(_, cooldown) | Condition::Resting(cooldown, _) = &condition {
        let left = cooldown.ends().duration_since(facts.now).unwrap_or_default();
        explanation.details.push(format!("It is tried again in {}.", span(left)));
    }
    see_node(&mut explanation, name, Some(known), facts);
    explanation.see_gaps(facts)
}

/// What is wrong with a node.
fn failed(name: &NodeName, condition: &Condition, words: &Words) -> String {
    let clause = &words.clause;
    match condition {
        Condition::Off(_) => format!("Node {name} is off, and its last start failed: {clause}."),
        _ if clause.starts_with(name.as_str()) => format!("Node {clause}."),
        _ => format!("Node {name} cannot be had: {clause}."),
    }
}

/// What a node does that is well.
fn well(name: &NodeName, condition: &Condition, facts: &Facts<'_>) -> (Words, String) {
    let nothing = |code| Words::new(code, "", "Nothing is to be done.");
    match condition {
        Condition::Busy => {
            let jobs = facts.jobs.as_ref().map(Vec::as_slice).unwrap_or_default();
            let has = jobs.iter().filter(|job| job.nodes.contains(name.as_str()));
            let has: Vec<String> = has.map(|job| format!("job {}", job.id)).collect();
            let what = if has.is_empty() { "a job".to_owned() } else { has.join(", ") };
            (nothing("busy"), format!("Node {name} runs {what}."))
        }
        Condition::Starting => {
            let remedy = "Wait. If it stays like this, read its console and slurmd's log; Slurm gives it up at ResumeTimeout.";
            let words = Words::new("starting", "", remedy);
            (words, format!("Node {name} starts: {}.", machine(name, facts)))
        }
        Condition::Stopping => (nothing("stopping"), format!("Node {name} is powering down.")),
        Condition::Rebuilding => {
            let words = Words::new("rebuilding", "", "Wait; see `rebuild status`.");
            (words, format!("Node {name} is being rebuilt or rebooted."))
        }
        Condition::Off(_) => {
            (nothing("off"), format!("Node {name} is off, and starts when a job needs it."))
        }
        // Every other condition has words of its own.
        _ => (nothing("ready"), format!("Node {name} is up and free.")),
    }
}

/// What the cloud says of the machine of a node that starts.
fn machine(name: &NodeName, facts: &Facts<'_>) -> String {
    let Ok(fleet) = &facts.fleet else {
        return "Slurm waits until it registers".to_owned();
    };
    match &fleet.standing(name).here[..] {
        [] => "it has no machine yet".to_owned(),
        [one] => {
            let age = one.created.map(|at| format!(" for {}", ago(at, facts.now)));
            let age = age.unwrap_or_default();
            format!("its machine is {}{age}, and slurmd has not registered", one.state)
        }
        more => format!("it has {} machines", more.len()),
    }
}

fn unknown(subject: String, name: &NodeName, facts: &Facts<'_>) -> Explanation {
    if facts.conf.get(name).is_some() {
        let words = Words::new(
            "hidden",
            "",
            "Set PrivateData=cloud in slurm.conf, so that nodes that are off are shown.",
        );
        let text = format!("Slurm does not show node {name}, which slurm.conf has: it is off.");
        return Explanation::new(subject, words, text);
    }
    let words = Words::new(
        "unknown_node",
        "",
        "Check the name with `listnodes --all`; to add nodes, raise the count in limits.yaml and run `resize`.",
    );
    Explanation::new(subject, words, format!("There is no node {name} in Slurm or slurm.conf."))
}

/// Adds what Slurm, the cloud and the cool-downs say of a node.
pub(super) fn see_node(
    explanation: &mut Explanation,
    name: &NodeName,
    known: Option<&Node>,
    facts: &Facts<'_>,
) {
    if let Some(known) = known {
        let state = known.state.to_string().to_lowercase();
        let reason = known.reason.as_ref().map(|reason| {
            let by = reason.by.as_ref().map(|by| format!(" by {by}")).unwrap_or_default();
            let when = reason.at.map(|at| format!(" {} ago", ago(at, facts.now)));
            format!(", Reason={} (set{by}{})", reason.text, when.unwrap_or_default())
        });
        explanation.see("slurm", format!("{name}: {state}{}", reason.unwrap_or_default()));
    }
    if let Ok(fleet) = &facts.fleet {
        for one in fleet.of(name).iter().filter(|one| one.state.is_live() || one.fault.is_some()) {
            explanation.see("cloud", instance(name, one));
        }
    }
    see_cooldowns(explanation, name, facts);
    see_events(explanation, name, facts);
}

fn instance(name: &NodeName, one: &Instance) -> String {
    let address = one.address.map(|address| format!(", {address}")).unwrap_or_default();
    let fault = one.fault.as_ref().map(|fault| format!(": {}", fault.message));
    format!("{name}: machine {} is {}{address}{}", one.id, one.state, fault.unwrap_or_default())
}

/// Adds the cool-downs of a node and of the places where it could go; for a quota, the cloud's limits, too.
fn see_cooldowns(explanation: &mut Explanation, name: &NodeName, facts: &Facts<'_>) {
    let Ok(cooldowns) = &facts.cooldowns else { return };
    let rest = cooldowns.resting(name).filter(|rest| rest.lasts(facts.now));
    if let Some(rest) = rest {
        explanation.see("cool-down", format!("{name}: {rest}"));
    }
    let places = facts.conf.get(name).and_then(|def| facts.site.places(def));
    let pools = places.into_iter().flatten().map(|place| place.pool());
    let mut quota = false;
    for pool in pools {
        for (_, cooldown) in cooldowns.pools().filter(|(known, _)| **known == pool) {
            quota |= cooldown.cause == Cause::Quota;
            explanation.see("cool-down", format!("{pool}: {cooldown}"));
        }
    }
    let limits = facts.limits.as_ref().map(Vec::as_slice).unwrap_or_default();
    let used_up = limits.iter().filter(|limit| {
        let most = limit.most.filter(|_| quota);
        most.is_some_and(|most| limit.used.unwrap_or_default() >= most)
    });
    for limit in used_up {
        let zone = limit.zone.as_ref().map(|zone| format!(" in {zone}")).unwrap_or_default();
        let (used, most) = (limit.used.unwrap_or_default(), limit.most.unwrap_or_default());
        explanation.see("cloud", format!("limit {}{zone}: {used} of {most} used", limit.name));
    }
}
