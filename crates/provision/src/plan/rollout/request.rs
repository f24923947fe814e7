//! Which nodes are to get which image, and how.

use super::super::{Plan, Refusal, Step};
use crate::order::by_number;
use crate::world::Roster;
use cloud_core::{ImageId, InstanceId};
use hostlist::NodeName;
use slurmctl::BatchJob;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, SystemTime};

/// Which nodes are to get which image, and how fast.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rollout {
    /// These nodes; with no partition either, all of slurm.conf.
    pub nodes: Vec<NodeName>,
    /// And those of these partitions.
    pub partitions: Vec<String>,
    /// The image.
    pub image: ImageId,
    /// The image of nodes that are to have another.
    pub images: BTreeMap<NodeName, ImageId>,
    /// The instances that nodes' own files name; they need not carry our tags.
    pub named: BTreeMap<NodeName, InstanceId>,
    /// How many may be under way at a time.
    pub batch: usize,
    /// How long to wait after a batch was begun.
    pub delay: Duration,
    /// How many of the nodes may be out of service, whoever took them out.
    pub max_unavailable: Option<usize>,
    /// How many have to come up on the image before the rest is touched.
    pub canary: usize,
    /// How many failures end it.
    pub stop_after: Option<usize>,
    /// How Slurm is made to call our reboot program.
    pub how: RolloutHow,
    /// When the last batch was begun, if this is not the first.
    pub last: Option<SystemTime>,
    /// The nodes that were begun: each is tried once. Who drives the rollout keeps this and `last`
    /// from one plan to the next; nothing here stores them.
    pub tried: BTreeSet<NodeName>,
    /// True to try also those again that the image has left down before.
    pub anew: bool,
}

/// How Slurm is made to call our reboot program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum RolloutHow {
    /// `scontrol reboot`, which drains first.
    #[default]
    Reboot,
    /// A job for each node: for nodes that are not elastic, where Slurm is not old. What image a node
    /// gets is not for the job to say.
    Jobs(JobForm),
}

/// What rebuild jobs look like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobForm {
    /// Their partitions; a node's job is in the first that has the node.
    pub partitions: Vec<String>,
    /// What their names begin with; the node's follows.
    pub name: String,
    /// The command line that they run when the node is back.
    pub command: String,
    /// False to leave out the reboot.
    pub reboot: bool,
    /// True if elastic nodes may have one, see
    /// [`reboots_elastic_nodes`](slurmconf::SlurmVersion::reboots_elastic_nodes).
    pub elastic: bool,
    /// Further options of sbatch.
    pub options: Vec<String>,
}

impl JobForm {
    /// The usual jobs, in these partitions.
    #[must_use]
    pub fn new(partitions: impl IntoIterator<Item = String>) -> Self {
        Self {
            partitions: partitions.into_iter().collect(),
            name: "rebuild".to_owned(),
            command: "true".to_owned(),
            reboot: true,
            elastic: false,
            options: Vec::new(),
        }
    }

    pub(super) fn job(&self, node: NodeName, conf: &Roster<'_>) -> BatchJob {
        let has = |partition: &&String| {
            conf.partition(partition).is_some_and(|nodes| nodes.contains(node.as_str()))
        };
        let partition = self.partitions.iter().find(has).or(self.partitions.first());
        let partition = partition.cloned().unwrap_or_default();
        let mut job = BatchJob::reboot(format!("{}-{node}", self.name), partition, node);
        job.command.clone_from(&self.command);
        job.reboot = self.reboot;
        job.options.clone_from(&self.options);
        job
    }
}

impl Rollout {
    /// All nodes, one at a time, without a pause.
    #[must_use]
    pub fn new(image: ImageId) -> Self {
        Self {
            nodes: Vec::new(),
            partitions: Vec::new(),
            image,
            images: BTreeMap::new(),
            named: BTreeMap::new(),
            batch: 1,
            delay: Duration::ZERO,
            max_unavailable: None,
            canary: 0,
            stop_after: None,
            how: RolloutHow::default(),
            last: None,
            tried: BTreeSet::new(),
            anew: false,
        }
    }

    /// The image that a node is to have.
    #[must_use]
    pub(crate) fn image_of(&self, node: &NodeName) -> &ImageId {
        self.images.get(node).unwrap_or(&self.image)
    }

    /// The nodes that it is about: those named and those of its partitions; else those of the partitions
    /// that have its jobs; else all.
    pub(crate) fn scope(&self, conf: &Roster<'_>) -> Result<Vec<NodeName>, Refusal> {
        let unsaid = self.nodes.is_empty() && self.partitions.is_empty();
        let partitions = match &self.how {
            RolloutHow::Reboot if unsaid => return Ok(conf.nodes()),
            RolloutHow::Jobs(form) if unsaid => &form.partitions,
            RolloutHow::Reboot | RolloutHow::Jobs(_) => &self.partitions,
        };
        let mut nodes = self.nodes.clone();
        for partition in partitions {
            let unknown = || Refusal::UnknownPartition(partition.clone());
            let members = conf.partition(partition).ok_or_else(unknown)?;
            nodes.extend(members.iter().filter_map(|name| NodeName::new(&name).ok()));
        }
        Ok(by_number(nodes))
    }

    /// Writes down what a plan begins, but for nodes that were not touched: these are not tried yet.
    pub(crate) fn note_begun(
        &mut self,
        plan: &Plan,
        untouched: &BTreeSet<NodeName>,
        now: SystemTime,
    ) {
        let begun = plan.steps().filter(|step| step.reboots_by_slurm()).flat_map(Step::nodes);
        let begun: Vec<&NodeName> = begun.filter(|node| !untouched.contains(*node)).collect();
        if !begun.is_empty() {
            self.last = Some(now);
        }
        self.tried.extend(begun.into_iter().cloned());
    }
}
