//! All that is known at one moment, and what could not be learnt.

use super::elsewhere::Rooms;
use crate::cooldown::Cooldowns;
use crate::site::Site;
use crate::world::{Fleet, Roster};
use cloud_core::Limit;
use history::Event;
use history::cost::Spending;
use hostlist::NodeName;
use slurmctl::{Job, Node};
use std::collections::BTreeMap;
use std::time::SystemTime;

/// What was learnt, or why it could not be.
pub type Learnt<T> = Result<T, String>;

/// All that is known at one moment. What could not be learnt is not taken for nothing.
#[derive(Clone, Debug)]
pub struct Facts<'a> {
    /// What the operator decided.
    pub site: &'a Site,
    /// What slurm.conf says.
    pub conf: &'a Roster<'a>,
    /// Why the configuration cannot be read, if it cannot: then the site says nothing.
    pub configuration: Option<String>,
    /// Slurm's nodes.
    pub nodes: Learnt<BTreeMap<NodeName, Node>>,
    /// Slurm's jobs, as far as it shows them to the caller.
    pub jobs: Learnt<Vec<Job>>,
    /// Our instances.
    pub fleet: Learnt<Fleet>,
    /// What cools down.
    pub cooldowns: Learnt<Cooldowns>,
    /// What happened lately, oldest first.
    pub events: Learnt<Vec<Event>>,
    /// The cloud's limits; empty if nobody asked.
    pub limits: Learnt<Vec<Limit>>,
    /// Where the cloud has room for what it lacks in a zone; empty if nobody asked.
    pub rooms: Rooms,
    /// What was spent; none without a budget.
    pub spending: Option<Spending>,
    /// When all this was observed.
    pub now: SystemTime,
}

impl Facts<'_> {
    /// What could not be learnt, and why.
    pub(super) fn gaps(&self) -> Vec<String> {
        let gap = |what: &str, why: Option<&String>| why.map(|why| format!("{what}: {why}"));
        let gaps = [
            gap("configuration", self.configuration.as_ref()),
            gap("nodes", self.nodes.as_ref().err()),
            gap("jobs", self.jobs.as_ref().err()),
            gap("machines in the cloud", self.fleet.as_ref().err()),
            gap("cool-downs", self.cooldowns.as_ref().err()),
            gap("events", self.events.as_ref().err()),
            gap("limits of the cloud", self.limits.as_ref().err()),
        ];
        gaps.into_iter().flatten().collect()
    }
}
