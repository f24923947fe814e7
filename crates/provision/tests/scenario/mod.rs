//! Scenarios: a world and a request, as text.

mod request;
mod words;
mod world;

use crate::lint::lint;
use cloud_core::{Instance, InstanceId};
use hostlist::NodeName;
use provision::plan::{FileStep, Plan, Sightings, Step, Target};
use provision::{Cooldowns, Fleet, Roster, Site, World};
use slurmconf::Config;
use slurmctl::{Job, Node};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// 2026-11-16T12:00:00Z
pub(crate) fn now() -> SystemTime {
    UNIX_EPOCH + Duration::from_hours(498_564)
}

/// A world and a request.
pub(crate) struct Scenario {
    pub(crate) name: String,
    pub(crate) conf: String,
    pub(crate) limits: String,
    pub(crate) hosts: String,
    pub(crate) site: Site,
    pub(crate) instances: Vec<Instance>,
    /// Those that a node's file names by id.
    pub(crate) named: BTreeMap<NodeName, Instance>,
    /// Those whose image the cloud does not replace in place.
    pub(crate) fixed: Vec<InstanceId>,
    pub(crate) complete: bool,
    pub(crate) slurm: Option<BTreeMap<NodeName, Node>>,
    pub(crate) jobs: Vec<Job>,
    pub(crate) cooldowns: Cooldowns,
    pub(crate) sightings: Sightings,
    pub(crate) targets: BTreeMap<NodeName, Target>,
    pub(crate) request: String,
}

impl Scenario {
    /// What is planned, printed; the plan is checked on the way.
    pub(crate) fn outcome(&self) -> String {
        let config = Config::parse(&self.conf).unwrap();
        let conf = Roster::new(&config);
        let identity = &self.site.identity;
        let fleet = Fleet::new(identity, &conf, self.instances.clone(), self.complete)
            .with_named(identity, self.named.clone())
            .with_fixed(self.fixed.iter().cloned());
        let world = World {
            site: &self.site,
            conf: &conf,
            fleet: &fleet,
            slurm: self.slurm.as_ref(),
            jobs: Some(&self.jobs),
            cooldowns: &self.cooldowns,
            spending: None,
            now: now(),
        };
        let outcome = self.plan(world);
        assert_eq!(outcome, self.plan(world), "{}: not the same twice", self.name);
        let (Some(plan), rest) = outcome else {
            return outcome.1;
        };
        let violations = lint(&plan, world);
        assert!(violations.is_empty(), "{}: {violations:?} in\n{plan}", self.name);
        serde_json::to_string(&plan).unwrap();
        format!("{plan}{}{rest}", files(&plan))
    }
}

/// The files that a plan writes.
fn files(plan: &Plan) -> String {
    let mut text = String::new();
    for step in plan.steps() {
        if let Step::File(FileStep::Write { which, text: file, .. }) = step {
            writeln!(text, "{which}:").unwrap();
            let file = String::from_utf8_lossy(file);
            file.lines().for_each(|line| writeln!(text, "| {line}").unwrap());
        }
    }
    text
}
