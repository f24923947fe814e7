//! More or fewer persistent nodes.

use super::absent::absent;
use super::bring_up::bring_up_as;
use super::budget::refuse_above;
use super::conf::{Addition, edited};
use super::removal::{Removal, removal};
use super::unapplied::ApplyOptions;
use super::{
    Begin, FileStep, MachineStep, Operation, Plan, Refusal, SlurmStep, Stage, Step, WrittenFile,
    deploy::{persistent, refresh},
    unapplied,
};
use crate::order::{by_number, split};
use crate::world::{Roster, World};
use hostlist::{Hostlist, NodeName};
use slurmconf::{Config, Document, Markers, SlurmVersion};
use std::collections::BTreeSet;
use std::time::Duration;

/// How many persistent nodes each group is to have.
#[derive(Clone, Debug)]
pub struct Resize<'a> {
    /// The groups, one or more to a partition.
    pub groups: &'a [GroupSize],
    /// What to do with numbers left out.
    pub gaps: Gaps,
    /// slurm.conf, or the file it includes that has the markers.
    pub document: &'a Document,
    /// The version of slurmctld.
    pub version: SlurmVersion,
    /// How long to wait for jobs to end.
    pub patience: Duration,
}

/// A group of nodes: a name with numbers behind it.
///
/// Elastic nodes of the same name, those of other partitions and those that do not say what machine
/// they are are not counted, never removed, and keep their numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupSize {
    /// The partition whose nodes are meant; without it, those of all.
    pub partition: Option<String>,
    /// The name before the number.
    pub stem: String,
    /// The number of the first node.
    pub first: u64,
    /// Digits of a number, with zeros in front.
    pub width: usize,
    /// How many nodes it is to have.
    pub size: usize,
}

impl GroupSize {
    /// The groups of persistent nodes that slurm.conf has, of one partition or of all, with the size
    /// they have now.
    #[must_use]
    fn persistent(conf: &Roster<'_>, partition: Option<&str>) -> Vec<Self> {
        let mut groups: Vec<Self> = Vec::new();
        for name in &counted(conf, partition) {
            let (stem, digits) = split(name.as_str());
            let Ok(number) = digits.parse::<u64>() else {
                continue;
            };
            if let Some(group) = groups.iter_mut().find(|group| group.stem == stem) {
                group.size += 1;
                group.first = group.first.min(number);
            } else {
                let (stem, width) = (stem.to_owned(), digits.len());
                let partition = partition.map(str::to_owned);
                groups.push(Self { partition, stem, first: number, width, size: 1 });
            }
        }
        groups
    }

    /// The one group of persistent nodes that slurm.conf has, in a partition or in all; an error says why it is not one.
    pub fn only(conf: &Roster<'_>, partition: Option<&str>) -> Result<Self, String> {
        if let Some(name) = partition.filter(|name| conf.partition(name).is_none()) {
            return Err(format!("slurm.conf has no partition {name}"));
        }
        let groups = Self::persistent(conf, partition);
        match (&groups[..], partition) {
            ([one], _) => Ok(one.clone()),
            ([], Some(name)) => Err(format!("partition {name} has no persistent nodes")),
            ([], None) => Err("slurm.conf has no persistent nodes".to_owned()),
            (several, _) => {
                let stems: Vec<&str> = several.iter().map(|group| group.stem.as_str()).collect();
                let stems = stems.join(", ");
                Err(format!("which nodes? {stems}; name a partition that has one kind only"))
            }
        }
    }

    /// The number of a node by that name.
    fn number(&self, name: &NodeName) -> Option<u64> {
        let (stem, digits) = split(name.as_str());
        (stem == self.stem).then(|| digits.parse().ok()).flatten()
    }
}

/// The persistent nodes, of one partition or of all.
fn counted(conf: &Roster<'_>, partition: Option<&str>) -> Vec<NodeName> {
    let members = partition.map(|name| conf.partition(name).unwrap_or_default());
    let inside =
        |name: &NodeName| members.as_ref().is_none_or(|members| members.contains(name.as_str()));
    persistent(conf).into_iter().filter(inside).collect()
}

/// What to do with numbers left out, as in nodes 0, 2 and 5.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Gaps {
    /// Leave them: three nodes are three nodes. New ones take the lowest free numbers, and the
    /// highest numbers go first.
    #[default]
    Keep,
    /// Close them: three nodes are 0, 1 and 2, whatever that costs.
    Fill,
}

/// What one group gains and loses.
struct Difference {
    like: Option<NodeName>,
    kept: Vec<NodeName>,
    add: Vec<NodeName>,
    remove: Vec<NodeName>,
}

/// Plans more or fewer persistent nodes.
///
/// Nodes to go are drained first, and leave slurm.conf only when their instances are confirmed gone,
/// so that one that cannot be deleted stays visible. New nodes are launched when the jobs of the
/// others have ended, and before slurm.conf has them. If jobs do not end in time, what we drained is
/// undrained and nothing is launched or deleted. Planned again
/// after half of it was done, only the other half is left; that may be to tell slurmctld.
/// A node that stays and has lost its machine gets another, last: that it cannot be had hinders nothing.
#[must_use]
pub fn resize(request: &Resize<'_>, world: World<'_>) -> Plan {
    let all: Vec<Difference> =
        request.groups.iter().map(|group| difference(group, request.gaps, world)).collect();
    let remove = by_number(all.iter().flat_map(|group| group.remove.iter().cloned()));
    let mut launches: Vec<(NodeName, Result<Step, Refusal>)> =
        all.iter().flat_map(|group| launches(group, world)).collect();
    let kept = by_number(all.iter().flat_map(|group| group.kept.iter().cloned()));
    let mut absent = absent(&written_by_us(kept, request.document), world.conf, world);
    refuse_above(&mut launches, &mut absent, world);
    let additions: Vec<Addition> = all
        .into_iter()
        .filter_map(|Difference { like, add, .. }| Some(Addition { like: like?, nodes: add }))
        .filter(|addition| !addition.nodes.is_empty())
        .collect();
    if launches.is_empty() && remove.is_empty() {
        return nothing_to_write(request.version, false, absent, world);
    }
    let gone: Hostlist = remove.iter().collect();
    let text = edited(request.document, request.version, &additions, &gone, world);
    let new: Hostlist = launches.iter().map(|(node, _)| node).collect();
    let summary = summary(&new, &gone);
    let change = Change { launches, remove, text, summary, absent };
    change.plan(request.document, request.version, request.patience, world)
}

/// Those of the nodes that stand between the markers: the machines of others are made by others.
fn written_by_us(mut nodes: Vec<NodeName>, document: &Document) -> Vec<NodeName> {
    let section = document.section(Markers::NODES).and_then(|text| Config::parse(&text));
    let section = section.unwrap_or_default();
    let index = section.index();
    nodes.retain(|node| index.contains_key(node.as_str()));
    nodes
}

/// The nodes are as many as they should be; slurmctld may have yet to hear of it, and machines may be missing.
pub(super) fn nothing_to_write(
    version: SlurmVersion,
    lines: bool,
    absent: Vec<Step>,
    world: World<'_>,
) -> Plan {
    let options = ApplyOptions { force: false, lines };
    let plan = unapplied::apply(Plan::new(Operation::Resize), version, options, world);
    let plan = plan.stage(Stage::new("bring up", absent));
    let files = if plan.is_idle() { Vec::new() } else { refresh() };
    plan.stage(Stage::new("files", files).begun(Begin::Always))
}

/// What it takes to get to other nodes.
pub(super) struct Change {
    /// How new nodes come up, or why they must not.
    pub(super) launches: Vec<(NodeName, Result<Step, Refusal>)>,
    /// The nodes that leave.
    pub(super) remove: Vec<NodeName>,
    /// slurm.conf as it is to be.
    pub(super) text: Result<Vec<u8>, Refusal>,
    /// What changes in slurm.conf, in a few words.
    pub(super) summary: String,
    /// How nodes that stay get a machine.
    pub(super) absent: Vec<Step>,
}

impl Change {
    /// Plans the change of this file, or reports every reason not to begin at all.
    pub(super) fn plan(
        self,
        document: &Document,
        version: SlurmVersion,
        patience: Duration,
        world: World<'_>,
    ) -> Plan {
        let removal = removal(&self.remove, patience, "resize", false, world);
        let unapplied = unapplied::unapplied(Some(version), world);
        let mut refused = unapplied::busy(&unapplied.left, world);
        refused.extend(self.refusals(&removal));
        if !refused.is_empty() {
            return Plan::new(Operation::Resize).stage(Stage::new("refused", refused));
        }
        let mut unreported = unapplied.to_address(world);
        let new = self.launches.iter().map(|(node, _)| node);
        let changed: BTreeSet<&NodeName> = new.chain(&self.remove).collect();
        unreported.retain(|node| !changed.contains(node));
        self.stages(document, version, removal.unwrap_or_default(), unreported)
    }

    /// Every reason not to begin at all.
    fn refusals(&self, removal: &Result<Removal, Vec<Step>>) -> Vec<Step> {
        let refuse = |node: &NodeName, why: &Refusal| Step::refuse(node.clone(), why.clone());
        let launches = &self.launches;
        if let Err(why) = &self.text {
            let nodes = launches.iter().map(|(node, _)| node).chain(&self.remove);
            return nodes.map(|node| refuse(node, why)).collect();
        }
        let refused =
            launches.iter().filter_map(|(node, step)| Some(refuse(node, step.as_ref().err()?)));
        refused.chain(removal.as_ref().err().into_iter().flatten().cloned()).collect()
    }

    /// The stages, with the nodes of slurm.conf whose address slurmctld does not have yet.
    fn stages(
        self,
        document: &Document,
        version: SlurmVersion,
        removal: Removal,
        mut unreported: Vec<NodeName>,
    ) -> Plan {
        let (mut launch, mut later) = (Vec::new(), Vec::new());
        for step in self.launches.into_iter().filter_map(|(_, step)| step.ok()) {
            if let Step::Machine(MachineStep::Launch { wanted, first, .. }) = step {
                unreported.push(wanted.node.clone());
                launch.push(Step::Machine(MachineStep::Launch {
                    wanted,
                    first,
                    reports_address: false,
                }));
            } else {
                // It is there already; its address is reported when Slurm knows the node.
                later.push(step);
            }
        }
        // slurmctld runs without nodes whose names it cannot look up when it reads its file.
        let hosts = (!launch.is_empty() || !later.is_empty())
            .then_some(Step::File(FileStep::Refresh { which: WrittenFile::Hosts }));
        let reload = hosts.into_iter().chain([unapplied::take_up(version)]).collect();
        if !unreported.is_empty() {
            later.push(Step::Slurm(SlurmStep::ReportAddresses { nodes: unreported }));
        }
        let write = Step::File(FileStep::Write {
            which: WrittenFile::SlurmConf,
            before: document.as_bytes().to_vec(),
            text: self.text.unwrap_or_default(),
            summary: self.summary,
            drops: self.remove,
        });
        removal
            .stages(Plan::new(Operation::Resize), launch)
            .stage(Stage::new("write", vec![write]).begun(Begin::IfAllWell))
            .stage(Stage::new("tell slurm", reload).begun(Begin::IfAllWell))
            .stage(Stage::new("addresses", later))
            .stage(Stage::new("bring up", self.absent))
            .stage(Stage::new("files", refresh()).begun(Begin::Always))
    }
}

/// What changes among the nodes, such as `+n[3-4] -n9`.
pub(super) fn summary(added: &Hostlist, removed: &Hostlist) -> String {
    let sign = |sign: char, list: &Hostlist| (!list.is_empty()).then(|| format!("{sign}{list}"));
    let changes: Vec<String> =
        [sign('+', added), sign('-', removed)].into_iter().flatten().collect();
    if changes.is_empty() { "nodes stay, lines change".to_owned() } else { changes.join(" ") }
}

fn launches(group: &Difference, world: World<'_>) -> Vec<(NodeName, Result<Step, Refusal>)> {
    let def = group.like.as_ref().and_then(|like| world.conf.get(like));
    let step = |node: &NodeName| {
        let def = def.ok_or(Refusal::NotInSlurmConf)?;
        bring_up_as(node, def, world)
    };
    group.add.iter().map(|node| (node.clone(), step(node))).collect()
}

fn difference(group: &GroupSize, gaps: Gaps, world: World<'_>) -> Difference {
    let numbered = |name: NodeName| Some((group.number(&name)?, name));
    let counted = counted(world.conf, group.partition.as_deref());
    let mut existing: Vec<_> = counted.into_iter().filter_map(numbered).collect();
    existing.sort();
    let taken: BTreeSet<u64> =
        world.conf.nodes().iter().filter_map(|name| group.number(name)).collect();
    let own: BTreeSet<u64> = existing.iter().map(|(number, _)| *number).collect();
    let without_gaps: BTreeSet<u64> = (group.first..=u64::MAX)
        .filter(|number| own.contains(number) || !taken.contains(number))
        .take(group.size)
        .collect();
    let like = existing.first().map(|(_, name)| name.clone());
    let (kept, remove): (Vec<_>, Vec<_>) =
        existing.into_iter().enumerate().partition(|(place, (number, _))| match gaps {
            Gaps::Keep => *place < group.size,
            Gaps::Fill => without_gaps.contains(number),
        });
    let missing = group.size.saturating_sub(kept.len());
    let free = (group.first..=u64::MAX).filter(|number| !taken.contains(number)).take(missing);
    let name = |number: u64| {
        NodeName::new(&format!("{}{number:0width$}", group.stem, width = group.width)).ok()
    };
    let names = |all: Vec<(usize, (u64, NodeName))>| all.into_iter().map(|(_, (_, name))| name);
    let (kept, remove) = (names(kept).collect(), names(remove).collect());
    Difference { like, kept, add: free.filter_map(name).collect(), remove }
}

#[cfg(test)]
mod tests {
    use super::*;
    use slurmconf::Config;

    #[test]
    fn groups_are_counted_without_elastic_nodes_and_machines_of_others() {
        let config = Config::parse(
            "NodeName=a[02-03,5] Features=shape=S\nNodeName=a[6-9] State=CLOUD Features=shape=S\n\
             NodeName=b1 Features=flavor=F\nNodeName=login1,c\nPartitionName=p Nodes=a[02-03],b1\n",
        )
        .unwrap();
        let conf = Roster::new(&config);
        let group = |stem: &str, first, width, size| {
            let stem = stem.to_owned();
            GroupSize { partition: None, stem, first, width, size }
        };
        let all = GroupSize::persistent(&conf, None);
        assert_eq!(all, [group("a", 2, 2, 3), group("b", 1, 1, 1)]);
        let some = GroupSize::persistent(&conf, Some("p"));
        let in_p = |group| GroupSize { partition: Some("p".to_owned()), ..group };
        assert_eq!(some, [group("a", 2, 2, 2), group("b", 1, 1, 1)].map(in_p));
        assert_eq!(GroupSize::persistent(&conf, Some("none")), []);
    }
}
