//! Partitions and node sets.

use super::value::{Attributes, hostlist, number, remember, truth};
use crate::{
    document::{Pair, encoded},
    error::Problem,
    model::SuspendTime,
};
use hostlist::Hostlist;
use std::fmt;

/// A `PartitionName` line.
///
/// A field is `None` if neither the line nor a `PartitionName=DEFAULT` line sets it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PartitionDef {
    /// The name.
    pub name: String,
    /// `Nodes`: nodes, node sets or `ALL`
    pub nodes: Option<Hostlist>,
    /// `Default`
    pub default: Option<bool>,
    /// `MaxTime`, in Slurm's spelling
    pub max_time: Option<String>,
    /// `State`
    pub state: Option<String>,
    /// `Hidden`
    pub hidden: Option<bool>,
    /// `RootOnly`
    pub root_only: Option<bool>,
    /// `DisableRootJobs`
    pub disable_root_jobs: Option<bool>,
    /// `PriorityJobFactor`
    pub priority_job_factor: Option<u16>,
    /// `PreemptMode`
    pub preempt_mode: Option<String>,
    /// `OverSubscribe`
    pub over_subscribe: Option<String>,
    /// `SuspendTime` of this partition's nodes
    pub suspend_time: Option<SuspendTime>,
    /// `SuspendTimeout` in seconds
    pub suspend_timeout: Option<u32>,
    /// `ResumeTimeout` in seconds
    pub resume_timeout: Option<u32>,
    /// `PowerDownOnIdle`, since 23.02
    pub power_down_on_idle: Option<bool>,
    /// Other attributes, in order.
    pub other: Vec<(String, String)>,
}

impl PartitionDef {
    /// A partition without attributes.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }

    pub(super) fn apply(&mut self, pair: &Pair<'_>) -> Result<(), Problem> {
        let text = || Some(pair.value.to_string());
        match pair.key.to_ascii_lowercase().as_str() {
            "nodes" => self.nodes = Some(hostlist(pair)?),
            "default" => self.default = Some(truth(pair)?),
            "maxtime" => self.max_time = text(),
            "state" => self.state = text(),
            "hidden" => self.hidden = Some(truth(pair)?),
            "rootonly" => self.root_only = Some(truth(pair)?),
            "disablerootjobs" => self.disable_root_jobs = Some(truth(pair)?),
            "priorityjobfactor" => self.priority_job_factor = Some(number(pair)?),
            "preemptmode" => self.preempt_mode = text(),
            "oversubscribe" | "shared" => self.over_subscribe = text(),
            "suspendtime" => self.suspend_time = Some(SuspendTime::read(pair)?),
            "suspendtimeout" => self.suspend_timeout = Some(number(pair)?),
            "resumetimeout" => self.resume_timeout = Some(number(pair)?),
            "powerdownonidle" => self.power_down_on_idle = Some(truth(pair)?),
            _ => remember(&mut self.other, pair),
        }
        Ok(())
    }
}

impl fmt::Display for PartitionDef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PartitionName={}", encoded(&self.name))?;
        let mut out = Attributes(f);
        out.option("Nodes", self.nodes.as_ref())?;
        out.truth("Default", self.default)?;
        out.option("MaxTime", self.max_time.as_ref())?;
        out.option("State", self.state.as_ref())?;
        out.option("PriorityJobFactor", self.priority_job_factor.as_ref())?;
        out.truth("Hidden", self.hidden)?;
        out.truth("RootOnly", self.root_only)?;
        out.truth("DisableRootJobs", self.disable_root_jobs)?;
        out.option("PreemptMode", self.preempt_mode.as_ref())?;
        out.option("OverSubscribe", self.over_subscribe.as_ref())?;
        out.option("SuspendTime", self.suspend_time.as_ref())?;
        out.option("SuspendTimeout", self.suspend_timeout.as_ref())?;
        out.option("ResumeTimeout", self.resume_timeout.as_ref())?;
        out.truth("PowerDownOnIdle", self.power_down_on_idle)?;
        out.all(&self.other)
    }
}

/// A `NodeSet` line: a name for the nodes with a feature, or for a list of nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeSet {
    /// The name.
    pub name: String,
    /// `Feature`: all nodes with this feature
    pub feature: Option<String>,
    /// `Nodes`: further nodes
    pub nodes: Option<Hostlist>,
}

impl NodeSet {
    pub(super) fn apply(&mut self, pair: &Pair<'_>) -> Result<(), Problem> {
        match pair.key.to_ascii_lowercase().as_str() {
            "feature" => self.feature = Some(pair.value.to_string()),
            "nodes" => self.nodes = Some(hostlist(pair)?),
            _ => return Err(unknown(pair)),
        }
        Ok(())
    }
}

fn unknown(pair: &Pair<'_>) -> Problem {
    Problem::UnknownKey { what: "NodeSet".to_owned(), key: pair.key.to_string(), near: None }
}

impl fmt::Display for NodeSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NodeSet={}", encoded(&self.name))?;
        let mut out = Attributes(f);
        out.option("Feature", self.feature.as_ref())?;
        out.option("Nodes", self.nodes.as_ref())
    }
}
