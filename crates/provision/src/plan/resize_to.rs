//! As many nodes as limits ask for.

use super::absent::absent;
use super::finish::{Finish, Proposed, leaving};
use super::removal::removal;
use super::resize::{Changed, nothing_to_write, refusals, summary};
use super::{
    FileStep, Operation, Plan, Refusal, Stage, Step, bring_up::bring_up_as, deploy::persistent,
    unapplied,
};
use crate::order::by_number;
use crate::world::{Roster, World};
use hostlist::{Hostlist, NodeName};
use slurmconf::diff;
use std::collections::BTreeSet;

/// Plans the nodes of the request as a resize does: nodes that go are drained, and leave slurm.conf
/// only when their jobs have ended and their instances are confirmed gone; nodes that are always there
/// from now on are launched before slurm.conf has them so. One that was always there and has lost its
/// machine gets another.
///
/// A node that was elastic and is to be always there keeps the instance that it has. One that was
/// always there and is to be elastic keeps it, too, until Slurm powers it down. `force` and `tell` of
/// the request count for nothing here.
pub fn resize_to(request: &Finish<'_>, world: World<'_>) -> slurmconf::Result<Plan> {
    let Proposed { document: new, before, after } = Proposed::of(request, world)?;
    let (old, planned) = (Roster::new(&before), Roster::new(&after));
    let absent = absent(&kept(&old, &planned), &planned, world);
    if new.as_bytes() == request.document.as_bytes() {
        return Ok(nothing_to_write(request.version, request.unapplied, absent, world));
    }
    let changes = diff(&before, &after);
    let remove = leaving(&changes, &before, world);
    let launches = launches(&old, &planned, world);
    let (before, text) = (request.document.as_bytes().to_vec(), new.as_bytes().to_vec());
    let removal = removal(&remove, request.patience, "resize", false, world);
    let unapplied = unapplied::unapplied(Some(request.version), world);
    let mut refused = unapplied::busy(&unapplied.left, world);
    refused.extend(refusals(&launches, &remove, &Ok(Vec::new()), &removal));
    if !refused.is_empty() {
        return Ok(Plan::new(Operation::Resize).stage(Stage::new("refused", refused)));
    }
    let up: BTreeSet<&NodeName> = launches.iter().map(|(node, _)| node).collect();
    let mut unreported = unapplied.to_address(world);
    unreported.retain(|node| !remove.contains(node) && !up.contains(node));
    let summary = summary(&changes.added, &changes.removed);
    let which = super::File::SlurmConf;
    let write = Step::File(FileStep::Write { which, before, text, summary, drops: remove });
    let launches = launches.into_iter().filter_map(|(_, step)| step.ok()).collect();
    let changes =
        Changed { launches, removal: removal.unwrap_or_default(), write, unreported, absent };
    Ok(changes.plan(request.version))
}

/// The nodes that were always there, and still are to be.
fn kept(before: &Roster<'_>, after: &Roster<'_>) -> Vec<NodeName> {
    let new: Hostlist = persistent(after).iter().collect();
    persistent(before).into_iter().filter(|node| new.contains(node.as_str())).collect()
}

/// How nodes come up that were not always there before, and are to be.
fn launches(
    before: &Roster<'_>,
    after: &Roster<'_>,
    world: World<'_>,
) -> Vec<(NodeName, Result<Step, Refusal>)> {
    let old: Hostlist = persistent(before).iter().collect();
    let new = persistent(after).into_iter().filter(|node| !old.contains(node.as_str()));
    let step = |node: &NodeName| {
        let def = after.get(node).ok_or(Refusal::NotInSlurmConf)?;
        bring_up_as(node, def, world)
    };
    by_number(new).into_iter().map(|node| (node.clone(), step(&node))).collect()
}
