//! Sees everything that programs do, at the very moment when it is done.

use crate::simulation::warm::Warm;
use cloud_core::memory::{MemoryCloud, Moment, RequestOutcome};
use cloud_core::{ApiOperation, ImageId, Instance, InstanceId, InstanceState};
use hostlist::NodeName;
use slurmctl::memory::{MemorySlurm, StateChange};
use slurmctl::{JobId, JobState, NodeAction};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// What has changed in Slurm in the meantime is not held against whoever asked it before.
const LAST_WORD: Duration = Duration::from_secs(3);

/// How many used-up tokens a start may find for a node.
const MOST_USED_UP: usize = 4;

/// Whose doing it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Who {
    /// The simulation's own: people, and fate.
    #[default]
    Nobody,
    /// The program that slurmctld called as its so manieth.
    Program(usize),
    /// The reconcile that began as the so manieth.
    Reconcile(usize),
}

#[derive(Debug)]
pub(crate) struct Judge {
    pub(super) cloud: MemoryCloud,
    slurm: MemorySlurm,
    foreign: Vec<String>,
    pub(super) warm: Warm,
    begun: Instant,
    /// How far listings are behind at most.
    pub(super) lag: Duration,
    seen: Mutex<Seen>,
}

#[derive(Debug, Default)]
pub(super) struct Seen {
    pub(super) who: Who,
    verdict: Option<String>,
    /// Machines that Slurm takes for their nodes, by instance.
    machines: BTreeMap<String, NodeName>,
    /// Since when Slurm has the nodes of these machines powered down.
    orphans: BTreeMap<String, Instant>,
    /// When reconciles began, and ended.
    reconciles: Vec<(Instant, Option<Instant>)>,
    /// Those to whom slurmctld has not answered.
    unheard: Vec<Who>,
    /// Launches that were refused because their tokens are used up, and for which node.
    used_up: Vec<(Who, String)>,
    /// Since when jobs run.
    jobs: BTreeMap<JobId, Instant>,
    /// Who told slurmctld what about which node.
    pub(super) told: Vec<(Who, NodeName, NodeAction)>,
    /// When slurmctld last took the address of a node.
    pub(super) addressed: BTreeMap<NodeName, Instant>,
    /// Those to whom the cloud has not shown all that there is.
    pub(super) misled: Vec<Who>,
    /// What programs noted and reported, if anybody wants to know.
    pub(super) story: Option<Vec<(u64, String)>>,
    /// The image that each program found in its configuration.
    images: BTreeMap<Who, ImageId>,
}

impl Judge {
    pub(crate) fn new(
        cloud: &MemoryCloud,
        slurm: &MemorySlurm,
        foreign: Vec<String>,
        (lag, warm): (Duration, Warm),
    ) -> Arc<Self> {
        let judge = Arc::new(Self {
            cloud: cloud.clone(),
            slurm: slurm.clone(),
            foreign,
            warm,
            begun: Instant::now(),
            lag,
            seen: Mutex::default(),
        });
        let watching = Arc::downgrade(&judge);
        cloud.watch(move |moment| {
            if let Some(judge) = watching.upgrade() {
                judge.request(moment);
            }
        });
        let watching = Arc::downgrade(&judge);
        slurm.watch(move |told| {
            if let Some(judge) = watching.upgrade() {
                judge.told(told);
            }
        });
        judge
    }

    /// What follows is this one's doing; returns whose doing it was before.
    pub(crate) fn turn(&self, who: Who) -> Who {
        std::mem::replace(&mut self.seen().who, who)
    }

    pub(crate) fn who(&self) -> Who {
        self.seen().who
    }

    /// The first thing that went wrong.
    pub(crate) fn verdict(&self) -> Result<(), String> {
        self.seen().verdict.clone().map_or(Ok(()), Err)
    }

    /// Slurm takes these machines for their nodes.
    pub(crate) fn knows(&self, machines: BTreeMap<String, NodeName>) {
        self.seen().machines = machines;
    }

    /// A program has read its configuration, and found this image there.
    pub(crate) fn wants(&self, image: ImageId) {
        let who = self.who();
        self.seen().images.insert(who, image);
    }

    /// A reconcile begins.
    pub(crate) fn reconciles(&self) -> Who {
        let reconciles = &mut self.seen().reconciles;
        reconciles.push((Instant::now(), None));
        Who::Reconcile(reconciles.len() - 1)
    }

    /// slurmctld has not answered: whoever asked cannot know.
    pub(crate) fn unheard(&self) {
        let who = self.who();
        self.seen().unheard.push(who);
    }

    /// A launch was refused because its token is used up. How often a start finds that must not depend on how often the
    /// node was started before.
    pub(crate) fn used_up(&self, node: &str) {
        let seen = &mut *self.seen();
        seen.used_up.push((seen.who, node.to_owned()));
        let refused = |(who, of): &&(Who, String)| *who == seen.who && of == node;
        let count = seen.used_up.iter().filter(refused).count();
        if count > MOST_USED_UP {
            let what = format!("slow: {count} tokens of {node} were used up");
            seen.verdict.get_or_insert(what);
        }
    }

    fn could_know(&self) -> bool {
        let seen = self.seen();
        !seen.unheard.contains(&seen.who)
    }

    /// A process has ended, or was killed.
    pub(crate) fn ended(&self, who: Who) {
        if let Who::Reconcile(number) = who {
            self.seen().reconciles[number].1 = Some(Instant::now());
        }
    }

    /// Everything as it is between two steps.
    pub(crate) fn look(&self, all: &[Instance]) {
        let nodes = self.slurm.all_nodes();
        let asleep = |instance: &&Instance| {
            let name = instance.tags.get("node").unwrap_or_default();
            let Some(known) = nodes.iter().find(|known| known.name.as_str() == name) else {
                return false;
            };
            let off = known.state.is_powered_down() && !known.state.is_powering_up();
            let kept = self.warm.keeps(instance) && !known.state.is_down();
            off && !instance.state.is_leaving() && !kept
        };
        let now = Instant::now();
        let orphans: BTreeSet<&str> =
            all.iter().filter(asleep).map(|instance| instance.id.as_str()).collect();
        if let Err(what) = self.two_live(all).and_then(|()| self.others(all)) {
            self.says(&what);
        }
        let running: BTreeSet<JobId> = self
            .slurm
            .all_jobs()
            .into_iter()
            .filter(|job| job.state == JobState::Running)
            .map(|job| job.id)
            .collect();
        let seen = &mut *self.seen();
        for id in orphans {
            seen.orphans.entry(id.to_owned()).or_insert(now);
        }
        seen.jobs.retain(|job, _| running.contains(job));
        for job in running {
            seen.jobs.entry(job).or_insert(now);
        }
    }

    /// Never two live instances of a node.
    pub(crate) fn two_live(&self, all: &[Instance]) -> Result<(), String> {
        let mut live: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for instance in all {
            if !self.is_foreign(instance.id.as_str()) && !instance.state.is_leaving() {
                let node = instance.tags.get("node").unwrap_or("none");
                live.entry(node).or_default().push(instance.id.as_str());
            }
        }
        match live.into_iter().find(|(_, ids)| ids.len() > 1) {
            Some((node, ids)) => Err(format!("two live: {node} has {}", ids.join(" and "))),
            None => Ok(()),
        }
    }

    /// Never an instance of others touched.
    fn others(&self, all: &[Instance]) -> Result<(), String> {
        let well =
            |one: &Instance| matches!(one.state, InstanceState::Pending | InstanceState::Running);
        match all.iter().find(|one| self.is_foreign(one.id.as_str()) && !well(one)) {
            Some(one) => Err(format!("foreign: {} is {}", one.id, one.state)),
            None => Ok(()),
        }
    }

    pub(super) fn is_foreign(&self, id: &str) -> bool {
        self.foreign.iter().any(|foreign| foreign == id)
    }

    /// A request to the cloud.
    fn request(&self, moment: &Moment<'_>) {
        let event = moment.event;
        let subject = event.subject.as_deref().unwrap_or_default();
        if event.outcome != RequestOutcome::Lost && self.is_foreign(subject) {
            self.says(&format!("foreign: {} was asked for {subject}", event.operation));
        }
        if !matches!(event.outcome, RequestOutcome::Done | RequestOutcome::DoneUnacknowledged) {
            return;
        }
        let judged = match event.operation {
            ApiOperation::Launch => self.two_live(&moment.instances()),
            ApiOperation::Start => {
                let current = moment.before.as_ref().map_or(Ok(()), |one| self.is_current(one));
                current.and_then(|()| self.two_live(&moment.instances()))
            }
            ApiOperation::Stop => moment.before.as_ref().map_or(Ok(()), |one| self.is_kept(one)),
            ApiOperation::Terminate => moment.before.as_ref().map_or(Ok(()), |one| self.hasty(one)),
            _ => Ok(()),
        };
        if let Err(what) = judged {
            self.says(&what);
        }
    }

    /// Nobody stops a machine that is not to be kept.
    fn is_kept(&self, stopped: &Instance) -> Result<(), String> {
        let node = stopped.tags.get("node").unwrap_or_default();
        if self.warm.has(stopped) {
            return Ok(());
        }
        Err(format!("kept: {} of {node} was stopped", stopped.id))
    }

    /// What was kept is started with the image that the program found in its configuration.
    fn is_current(&self, started: &Instance) -> Result<(), String> {
        let seen = self.seen();
        let wanted = seen.images.get(&seen.who);
        if !self.warm.has(started) || wanted.is_none() || started.image.as_ref() == wanted {
            return Ok(());
        }
        Err(format!("outdated: {} was started with another image", started.id))
    }

    /// A machine is asked to go, or to reboot: never one on which a job runs.
    pub(crate) fn sends(&self, operation: ApiOperation, id: &InstanceId) {
        let Some(node) = self.seen().machines.get(id.as_str()).cloned() else {
            return;
        };
        let all = self.cloud.instances();
        let runs = |one: &Instance| one.id == *id && one.state == InstanceState::Running;
        let jobs = self.slurm.all_jobs();
        let here = jobs.iter().filter(|job| job.nodes.contains(node.as_str()));
        if let Some(job) = here.map(|job| job.id).find(|job| self.has_begun(*job))
            && all.iter().any(runs)
            && self.could_know()
        {
            self.says(&format!("disturbed: {operation} of {id}, job {job} runs on {node}"));
        }
    }

    /// True if the job runs, and did so before anybody could have been asked about it.
    fn has_begun(&self, job: JobId) -> bool {
        let begun = self.seen().jobs.get(&job).copied();
        begun.is_some_and(|at| Instant::now().saturating_duration_since(at) > LAST_WORD)
    }

    /// A reconcile ends nothing that an earlier one had no chance to see as it is.
    fn hasty(&self, before: &Instance) -> Result<(), String> {
        let ends = !before.state.is_leaving() && before.state != InstanceState::Failed;
        let seen = self.seen();
        let (Who::Reconcile(number), true) = (seen.who, ends) else {
            return Ok(());
        };
        let since = seen.orphans.get(before.id.as_str());
        let earlier = |since: &Instant| {
            let mut others = seen.reconciles[..number].iter();
            others.any(|(_, ended)| ended.is_none_or(|ended| ended >= *since))
        };
        if since.is_some_and(earlier) {
            return Ok(());
        }
        Err(format!("hasty: {} was ended at first sight", before.id))
    }

    /// A change of a node's state: never one that ends a job on a machine that works.
    fn told(&self, told: &StateChange<'_>) {
        {
            let seen = &mut *self.seen();
            seen.told.push((seen.who, told.node.name.clone(), told.action));
        }
        self.disturbs(told);
    }

    fn disturbs(&self, told: &StateChange<'_>) {
        let ends = match told.action {
            NodeAction::PowerDownForce | NodeAction::Down => true,
            NodeAction::PowerDown
            | NodeAction::PowerDownAsap
            | NodeAction::PowerUp
            | NodeAction::Resume
            | NodeAction::Drain
            | NodeAction::Undrain => false,
        };
        let mut running = told.running.iter().filter(|job| self.has_begun(job.id));
        let Some(job) = running.next().filter(|_| ends && self.who() != Who::Nobody) else {
            return;
        };
        let node = &told.node.name;
        let machines = self.seen().machines.clone();
        let works = self.cloud.instances().iter().any(|instance| {
            instance.state == InstanceState::Running
                && machines.get(instance.id.as_str()) == Some(node)
        });
        if works {
            self.says(&format!("disturbed: job {} ran on {node}, told {}", job.id, told.action));
        }
    }

    /// A line of the story.
    pub(crate) fn tells(&self, line: impl FnOnce() -> String) {
        let at = Instant::now().saturating_duration_since(self.begun).as_millis();
        let seen = &mut *self.seen();
        if let Some(story) = &mut seen.story {
            story.push((u64::try_from(at).unwrap(), format!("{:?}: {}", seen.who, line())));
        }
    }

    pub(super) fn says(&self, what: &str) {
        let at = Instant::now().saturating_duration_since(self.begun);
        self.seen().verdict.get_or_insert_with(|| format!("{what} (at {at:?})"));
    }

    pub(super) fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
