//! As many nodes as limits ask for.

use super::absent::absent;
use super::budget::refuse_above;
use super::finish::{Finish, Proposed, leaving};
use super::resize::{Change, nothing_to_write, summary};
use super::{Plan, Refusal, Step, bring_up::bring_up_as, deploy::persistent};
use crate::order::by_number;
use crate::world::{Roster, World};
use hostlist::{Hostlist, NodeName};
use slurmconf::diff;

/// Plans the nodes of the request as a resize does.
///
/// Nodes that go are drained, and leave slurm.conf only when their jobs have ended and their instances are confirmed gone.
/// New persistent nodes are launched before slurm.conf has them. A persistent node that has lost its machine gets another.
///
/// An elastic node that becomes persistent keeps its instance. A persistent node that becomes elastic keeps it, too, until
/// Slurm powers it down. `force` and `tell` of the request are ignored.
pub fn resize_to(request: &Finish<'_>, world: World<'_>) -> slurmconf::Result<Plan> {
    let Proposed { document: new, before, after } = Proposed::of(request, world)?;
    let (old, planned) = (Roster::new(&before), Roster::new(&after));
    let mut absent = absent(&kept(&old, &planned), &planned, world);
    let mut launches = launches(&old, &planned, world);
    refuse_above(&mut launches, &mut absent, world);
    if new.as_bytes() == request.document.as_bytes() {
        return Ok(nothing_to_write(request.version, request.unapplied, absent, world));
    }
    let changes = diff(&before, &after);
    let remove = leaving(&changes, &before, world);
    let (text, summary) = (Ok(new.as_bytes().to_vec()), summary(&changes.added, &changes.removed));
    let change = Change { launches, remove, text, summary, absent };
    Ok(change.plan(request.document, request.version, request.patience, world))
}

/// The nodes that were persistent, and still are.
fn kept(before: &Roster<'_>, after: &Roster<'_>) -> Vec<NodeName> {
    let new: Hostlist = persistent(after).iter().collect();
    persistent(before).into_iter().filter(|node| new.contains(node.as_str())).collect()
}

/// How nodes come up that become persistent.
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
