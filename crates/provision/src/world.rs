//! All that a planner looks at, at one moment.

use crate::cooldown::Cooldowns;
use crate::site::{Identity, Site, Wanted};
use crate::{order, plan::Refusal};
use cloud_core::{Instance, InstanceId, InstanceState};
use history::cost::Spending;
use hostlist::{Hostlist, NodeName};
use slurmconf::{Config, NodeDef};
use slurmctl::{Job, Node};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::SystemTime;

/// The cloud, Slurm, slurm.conf and what we remember, at one moment.
#[derive(Clone, Copy, Debug)]
pub struct World<'a> {
    /// What the operator decided.
    pub site: &'a Site,
    /// What slurm.conf says.
    pub conf: &'a Roster<'a>,
    /// Our instances.
    pub fleet: &'a Fleet,
    /// Slurm's nodes; `None` if slurmctld did not answer.
    pub slurm: Option<&'a BTreeMap<NodeName, Node>>,
    /// Slurm's jobs; `None` if slurmctld did not answer, or the queue could not be read.
    pub jobs: Option<&'a [Job]>,
    /// What cools down.
    pub cooldowns: &'a Cooldowns,
    /// What is spent; `None` without a budget.
    pub spending: Option<Spending>,
    /// When all this was looked at.
    pub now: SystemTime,
}

impl<'a> World<'a> {
    /// The node as Slurm sees it, if slurmctld answered and knows it.
    #[must_use]
    pub fn node(&self, name: &NodeName) -> Option<&'a Node> {
        self.slurm?.get(name)
    }

    /// What the node asks for.
    pub fn wanted(&self, name: &NodeName) -> Result<Wanted, Refusal> {
        let def = self.conf.get(name).ok_or(Refusal::NotInSlurmConf)?;
        self.site.wanted(name, def)
    }

    /// The jobs that run, or are being started or cleaned up, on the node.
    pub(crate) fn jobs_on(&self, name: &NodeName) -> impl Iterator<Item = &'a Job> {
        let has = |job: &&Job| !job.state.is_finished() && job.nodes.contains(name.as_str());
        self.jobs.into_iter().flatten().filter(has)
    }

    /// The first of them.
    #[must_use]
    pub(crate) fn job_on(&self, name: &NodeName) -> Option<&'a Job> {
        self.jobs_on(name).next()
    }

    /// True if a job has the node, by its own state or by the list of jobs; also if it may have one that only the
    /// list would show, and that could not be read.
    #[must_use]
    pub fn is_busy(&self, name: &NodeName) -> bool {
        let unlisted = self.jobs.is_none();
        self.node(name).is_some_and(|node| node.state.has_job() || unlisted)
            || self.job_on(name).is_some()
    }
}

/// The nodes of slurm.conf by name, and its partitions.
///
/// ```
/// use provision::Roster;
/// use slurmconf::Config;
///
/// let config = Config::parse("NodeName=n[1-2] State=CLOUD\nPartitionName=p Nodes=n2\n")?;
/// let roster = Roster::new(&config);
/// assert_eq!(roster.nodes().len(), 2);
/// assert_eq!(roster.partition("p").unwrap().to_string(), "n2");
/// # Ok::<(), slurmconf::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Roster<'a> {
    config: &'a Config,
    by_name: BTreeMap<NodeName, &'a NodeDef>,
}

impl<'a> Roster<'a> {
    /// The nodes of a configuration; names that no node can have are left out, and of a name that is
    /// there twice the first counts.
    #[must_use]
    pub fn new(config: &'a Config) -> Self {
        let mut by_name = BTreeMap::new();
        for def in &config.nodes {
            for name in def.names.iter().filter_map(|name| NodeName::new(&name).ok()) {
                by_name.entry(name).or_insert(def);
            }
        }
        Self { config, by_name }
    }

    /// The whole configuration.
    #[must_use]
    pub(crate) fn config(&self) -> &'a Config {
        self.config
    }

    /// The line that a node stands in.
    #[must_use]
    pub fn get(&self, name: &NodeName) -> Option<&'a NodeDef> {
        self.by_name.get(name).copied()
    }

    /// All nodes, by number.
    #[must_use]
    pub fn nodes(&self) -> Vec<NodeName> {
        order::by_number(self.by_name.keys().cloned())
    }

    /// The nodes of a partition.
    #[must_use]
    pub fn partition(&self, name: &str) -> Option<Hostlist> {
        let found = self.config.partitions.iter().find(|partition| partition.name == name);
        found.map(|partition| self.config.partition_nodes(partition))
    }
}

/// Our instances, by node, and nobody else's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fleet {
    by_node: BTreeMap<NodeName, Vec<Instance>>,
    nameless: Vec<Instance>,
    named: BTreeMap<NodeName, Instance>,
    fixed: BTreeSet<InstanceId>,
    complete: bool,
}

impl Fleet {
    /// Keeps of a listing what is ours, whatever the cloud says it has filtered.
    ///
    /// `complete` is false if a part of the listing is missing: then what is not seen may be there
    /// all the same. Where instances are told by name alone, only nodes of slurm.conf are ours.
    #[must_use]
    pub fn new(
        identity: &Identity,
        conf: &Roster<'_>,
        listing: impl IntoIterator<Item = Instance>,
        complete: bool,
    ) -> Self {
        let mut fleet = Self { complete, ..Self::default() };
        let mut seen = BTreeSet::new();
        for instance in listing {
            if !identity.owns(&instance) || !seen.insert(instance.id.clone()) {
                continue;
            }
            match identity.node_of(&instance) {
                Some(node) if identity.is_by_name() && conf.get(&node).is_none() => {}
                Some(node) => fleet.by_node.entry(node).or_default().push(instance),
                None => fleet.nameless.push(instance),
            }
        }
        for instances in fleet.by_node.values_mut() {
            instances.sort_by(|a, b| a.id.cmp(&b.id));
        }
        fleet.nameless.sort_by(|a, b| a.id.cmp(&b.id));
        fleet
    }

    /// Adds instances that do not carry our tags, but that a node's file names by id.
    ///
    /// They may be rebuilt and rebooted, and nothing else: they are not ours to end. What is ours by
    /// its tags, or another cluster's, is left out.
    #[must_use]
    pub fn with_named(
        mut self,
        identity: &Identity,
        named: impl IntoIterator<Item = (NodeName, Instance)>,
    ) -> Self {
        let nobodys = |instance: &Instance| {
            let cluster = instance.tags.get("cluster");
            !identity.owns(instance) && (cluster.is_none() || cluster == identity.id())
        };
        let known = |instance: &Instance| self.get(&instance.id).is_some();
        let named: BTreeMap<NodeName, Instance> = named
            .into_iter()
            .filter(|(_, instance)| nobodys(instance) && !known(instance))
            .collect();
        self.named = named;
        self
    }

    /// Marks instances whose image the cloud has refused to replace in place.
    #[must_use]
    pub fn with_fixed(mut self, fixed: impl IntoIterator<Item = InstanceId>) -> Self {
        self.fixed.extend(fixed);
        self
    }

    /// True if the cloud has refused to replace the image of this instance in place.
    #[must_use]
    pub(crate) fn is_fixed(&self, id: &InstanceId) -> bool {
        self.fixed.contains(id)
    }

    /// The instance that a node's file names, if it is there and has no tags of ours.
    #[must_use]
    pub fn named(&self, node: &NodeName) -> Option<&Instance> {
        self.named.get(node).filter(|instance| !instance.state.is_leaving())
    }

    /// True if nothing is missing from the listing.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.complete
    }

    /// Marks the listing as incomplete.
    pub(crate) fn set_incomplete(&mut self) {
        self.complete = false;
    }

    /// All instances of a node, those that are gone included, by id.
    #[must_use]
    pub fn of(&self, node: &NodeName) -> &[Instance] {
        self.by_node.get(node).map(Vec::as_slice).unwrap_or_default()
    }

    /// A node's instances, by how they stand.
    #[must_use]
    pub fn standing(&self, node: &NodeName) -> Standing<'_> {
        let (leaving, here) = self
            .of(node)
            .iter()
            .filter(|instance| instance.state.is_live())
            .partition(|instance| instance.state == InstanceState::Terminating);
        Standing { here, leaving }
    }

    /// Instances with our tags and a name that no node can have.
    #[must_use]
    pub(crate) fn nameless(&self) -> &[Instance] {
        &self.nameless
    }

    /// The nodes that have instances, gone ones included, by number.
    #[must_use]
    pub fn nodes(&self) -> Vec<NodeName> {
        order::by_number(self.by_node.keys().cloned())
    }

    /// All instances that are ours.
    pub fn instances(&self) -> impl Iterator<Item = &Instance> {
        self.by_node.values().flatten().chain(&self.nameless)
    }

    /// Takes over addresses that the listing did not show.
    pub(crate) fn set_addresses(&mut self, addresses: &BTreeMap<InstanceId, IpAddr>) {
        for instance in self.by_node.values_mut().flatten().chain(&mut self.nameless) {
            instance.address = instance.address.or_else(|| addresses.get(&instance.id).copied());
        }
    }

    /// The instance of ours with this id.
    #[must_use]
    pub(crate) fn get(&self, id: &InstanceId) -> Option<&Instance> {
        self.instances().find(|instance| instance.id == *id)
    }
}

/// A node's instances that are not gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing<'a> {
    /// Those that stay until somebody ends them.
    pub here: Vec<&'a Instance>,
    /// Those on their way out.
    pub leaving: Vec<&'a Instance>,
}
