//! What keeps the cluster from doing what it should.

use super::facts::Facts;
use super::job::{job, no_slurmctld};
use super::node::node;
use super::words::Words;
use super::{Explanation, slurm_reason};
use crate::budget::{renewal, standing};
use crate::order;
use crate::time::Utc;
use history::millis;
use hostlist::{Hostlist, NodeName};
use slurmctl::JobState;

/// What keeps the cluster from doing what it should: first the cluster as a whole, then each job that waits and each kind
/// of node that needs somebody.
#[must_use]
pub fn cluster(facts: &Facts<'_>) -> Vec<Explanation> {
    let (Ok(jobs), Ok(nodes)) = (&facts.jobs, &facts.nodes) else {
        return vec![no_slurmctld("the cluster".to_owned(), facts)];
    };
    let waits = |state: &JobState| {
        matches!(state, JobState::Pending | JobState::RequeueHold | JobState::Requeued)
    };
    let waiting = jobs.iter().filter(|job| waits(&job.state));
    let mut waiting: Vec<Explanation> = waiting.map(|known| job(known.id.into(), facts)).collect();
    let troubled = troubled(order::by_number(nodes.keys().cloned()), facts);
    let mut all = vec![whole(waiting.len(), &troubled, facts)];
    all.append(&mut waiting);
    all.extend(troubled.into_iter().map(|(_, explanation)| explanation));
    for explanation in all.iter_mut().skip(1) {
        // The first says it for all.
        explanation.evidence.retain(|seen| seen.source != "not seen");
    }
    all
}

/// Nodes that need somebody: the first of each kind speaks for the others.
fn troubled(names: Vec<NodeName>, facts: &Facts<'_>) -> Vec<(Hostlist, Explanation)> {
    let mut found: Vec<(Hostlist, Explanation)> = Vec::new();
    for name in names {
        let explanation = node(&name, facts);
        if FINE.contains(&explanation.cause) || explanation.sentence.contains(" is off, and ") {
            continue;
        }
        match found.iter_mut().find(|(_, known)| known.cause == explanation.cause) {
            Some((list, _)) => list.push(name.as_str()),
            None => found.push((std::iter::once(&name).collect(), explanation)),
        }
    }
    for (list, explanation) in &mut found {
        if list.len() > 1 {
            explanation.details.push(format!("The same holds for {} nodes: {list}.", list.len()));
        }
    }
    found
}

/// Causes of nodes that need nobody.
const FINE: [&str; 7] = ["busy", "starting", "stopping", "rebuilding", "off", "ready", "hidden"];

fn whole(waiting: usize, troubled: &[(Hostlist, Explanation)], facts: &Facts<'_>) -> Explanation {
    let count = troubled.iter().map(|(list, _)| list.len()).sum::<usize>();
    let jobs = match waiting {
        0 => "No job waits".to_owned(),
        1 => "1 job waits".to_owned(),
        more => format!("{more} jobs wait"),
    };
    let nodes = match u32::try_from(count).unwrap_or(u32::MAX) {
        0 => "every node is in service".to_owned(),
        1 => "1 node is out of service".to_owned(),
        more => format!("{} are out of service", slurm_reason::nodes(more)),
    };
    let words = if waiting == 0 && count == 0 {
        Words::new("well", "", "Nothing is to be done.")
    } else {
        Words::new("summary", "", "See the jobs and nodes below.")
    };
    let text = format!("{jobs}, and {nodes}.");
    let mut explanation = Explanation::new("cluster".to_owned(), words, text);
    if let Some(left) = budget_left(facts) {
        explanation.details.push(format!("Of the budget, {left}."));
        explanation.see("budget", left);
    }
    explanation.see_gaps(facts)
}

/// How much may still be spent, if there is a budget.
fn budget_left(facts: &Facts<'_>) -> Option<String> {
    let allowance = facts.site.allowance.as_ref()?;
    let state = allowance.budget.state(facts.spending?, millis(facts.now))?;
    let spent = standing(&state, &allowance.prices.currency);
    Some(if state.is_reached() {
        format!("{spent}; no machine is started before {}", Utc(renewal(&state)))
    } else {
        format!("{spent}; {} left", state.left)
    })
}
