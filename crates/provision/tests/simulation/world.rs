//! A cluster that lives: jobs come, machines boot, programs are called and killed, things break.

use crate::common::run::{self, Run};
use crate::simulation::check;
use crate::simulation::env::{self, Env, Fault, Wrap};
use crate::simulation::happening::{Happening, happenings};
use crate::simulation::judge::Who;
use crate::simulation::kill::Killable;
use cloud_core::{Instance, InstanceState};
use fastrand::Rng;
use futures_util::future::LocalBoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use hostlist::{Hostlist, NodeName};
use provision::Cancel;
use provision::Report;
use provision::plan::JobGroup;
use slurmctl::ResumeRequest;
use slurmctl::memory::{Call, Registration};
use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep, sleep_until};

/// How long things go wrong, and how long they may take to come right.
const TROUBLED: Duration = Duration::from_mins(12);
const HEALING: Duration = Duration::from_hours(1);

/// How often the timer calls reconcile.
const RECONCILE: Duration = Duration::from_mins(1);

/// How often machines that boot are looked at.
const BOOTING: Duration = Duration::from_secs(3);

/// A process that has ended.
enum Ended {
    Reconcile(Who),
    /// By itself.
    Well,
    Killed(Call),
}

pub(crate) struct Sim {
    pub(crate) rng: Rng,
    pub(crate) env: Arc<Env>,
    programs: FuturesUnordered<LocalBoxFuture<'static, Ended>>,
    pub(crate) happenings: BTreeMap<Instant, Vec<Happening>>,
    pub(crate) reconciles: Instant,
    pub(crate) reconciling: bool,
    /// How many programs have begun.
    pub(crate) begun: usize,
    /// What slurmctld has called so far.
    pub(crate) calls: Vec<Call>,
    /// Machines that have registered, by instance, with how often they had booted.
    pub(crate) registered: BTreeMap<String, (NodeName, usize)>,
    /// Those of them that Slurm took for their nodes.
    pub(crate) known: BTreeMap<String, NodeName>,
    pub(crate) booted: BTreeMap<(String, usize), Instant>,
    pub(crate) calm_at: Instant,
    pub(crate) calm: bool,
    pub(crate) fault: Option<Fault>,
    /// How the nodes were seen by Slurm, and what it called, if anybody wants to know.
    pub(crate) story: Option<Vec<(u64, String)>>,
    pub(crate) nodes: BTreeMap<NodeName, String>,
}

/// Lives through one seed; the error says what went wrong.
pub(crate) async fn run(seed: u64, wrap: &Wrap) -> Result<(), String> {
    Sim::new(seed, wrap).await.live().await
}

impl Sim {
    async fn new(seed: u64, wrap: &Wrap) -> Self {
        let mut rng = Rng::with_seed(seed);
        let env = env::make(&mut rng, wrap).await;
        env::trouble(&mut rng, &env);
        let calm_at = env.begun + TROUBLED;
        let happenings = happenings(&mut rng, &env, calm_at);
        Self {
            reconciles: env.begun + RECONCILE,
            rng,
            env,
            programs: FuturesUnordered::new(),
            happenings,
            reconciling: false,
            begun: 0,
            calls: Vec::new(),
            registered: BTreeMap::new(),
            known: BTreeMap::new(),
            booted: BTreeMap::new(),
            calm_at,
            calm: false,
            fault: wrap.fault,
            story: None,
            nodes: BTreeMap::new(),
        }
    }

    async fn live(&mut self) -> Result<(), String> {
        let end = self.calm_at + HEALING;
        loop {
            self.calm_down();
            self.happen().await;
            let all = self.env.cloud.instances();
            let watched = self.machines(&all);
            for call in self.env.slurm.tick() {
                self.call(call, true);
            }
            self.tell();
            if self.calm {
                check::waiting_jobs(&self.env)?;
            }
            self.env.judge.look(&all);
            self.env.judge.verdict()?;
            self.timer();
            let settled = self.calm && self.programs.is_empty() && self.happenings.is_empty();
            if settled && check::is_settled(&self.env, &all) {
                return check::at_the_end(&self.env);
            }
            if Instant::now() >= end {
                return check::at_the_end(&self.env).and_then(|()| Err("never at rest".into()));
            }
            let wake = self.wakes(watched).min(end);
            tokio::select! {
                biased;
                Some(ended) = self.programs.next(), if !self.programs.is_empty() => {
                    self.ended(ended);
                }
                () = sleep_until(wake) => {}
            }
        }
    }

    fn note(&mut self, line: String) {
        let at = Instant::now().saturating_duration_since(self.env.begun).as_millis();
        if let Some(story) = &mut self.story {
            story.push((u64::try_from(at).unwrap(), line));
        }
    }

    /// Writes down how Slurm sees its nodes, where that has changed.
    fn tell(&mut self) {
        if self.story.is_none() {
            return;
        }
        for node in self.env.slurm.all_nodes() {
            let now = format!("{} at {} ({})", node.state, node.address, node.reason_text());
            if self.nodes.get(&node.name) != Some(&now) {
                self.note(format!("{} is {now}", node.name));
                self.nodes.insert(node.name, now);
            }
        }
    }

    fn calm_down(&mut self) {
        if !self.calm && Instant::now() >= self.calm_at {
            self.calm = true;
            self.env.slurm.set_unreachable(false);
            env::calm(&self.env);
        }
    }

    /// The next moment at which something happens by itself.
    fn wakes(&self, watched: bool) -> Instant {
        let now = Instant::now();
        let soon = now + Duration::from_millis(1);
        let mut wake = self.reconciles;
        if !self.calm {
            wake = wake.min(self.calm_at);
        }
        if let Some(next) = self.env.slurm.next_event() {
            wake = wake.min(next);
        }
        if let Some((next, _)) = self.happenings.first_key_value() {
            wake = wake.min(*next);
        }
        if watched {
            wake = wake.min(now + BOOTING);
        }
        wake.max(soon)
    }

    /// Machines that run register, and those that do not are missed. True if others are on their
    /// way, or have not been heard.
    fn machines(&mut self, all: &[Instance]) -> bool {
        let mut up = BTreeSet::new();
        let mut watched = false;
        for instance in all.iter().filter(|instance| self.env.owns(instance)) {
            watched |= match instance.state {
                InstanceState::Pending => true,
                InstanceState::Running => !self.registered.contains_key(instance.id.as_str()),
                InstanceState::Stopping
                | InstanceState::Terminating
                | InstanceState::Stopped
                | InstanceState::Terminated
                | InstanceState::Failed
                | InstanceState::Other(_) => false,
            };
            let running = instance.state == InstanceState::Running;
            let (Some(address), true) = (instance.address, running) else {
                continue;
            };
            let id = instance.id.as_str().to_owned();
            let boots = self.env.cloud.boots(&instance.id).unwrap_or(0);
            let node = NodeName::new(instance.tags.get("node").unwrap()).unwrap();
            up.insert(id.clone());
            if self.registered.get(&id).is_some_and(|(_, known)| *known == boots) {
                continue;
            }
            let now = Instant::now();
            let booted = *self.booted.entry((id.clone(), boots)).or_insert(now);
            match self.env.slurm.register(&node, &address.to_string(), booted) {
                Registration::Unheard => {}
                Registration::Accepted => {
                    self.known.insert(id.clone(), node.clone());
                    self.registered.insert(id, (node, boots));
                }
                Registration::OldBoot | Registration::StaysDown => {
                    self.registered.insert(id, (node, boots));
                }
            }
        }
        let gone: Vec<String> =
            self.registered.keys().filter(|id| !up.contains(*id)).cloned().collect();
        for id in gone {
            if let Some((node, _)) = self.registered.remove(&id)
                && !self.registered.values().any(|(other, _)| *other == node)
            {
                self.env.slurm.lost(&node);
            }
        }
        self.known.retain(|id, _| up.contains(id));
        self.env.judge.knows(self.known.clone());
        watched
    }

    fn timer(&mut self) {
        if Instant::now() < self.reconciles {
            return;
        }
        self.reconciles += RECONCILE;
        if self.reconciling || self.fault == Some(Fault::Idle) {
            return;
        }
        self.reconciling = true;
        let env = Arc::clone(&self.env);
        let cancel = self.cancel();
        let who = self.env.judge.reconciles();
        let process = async move {
            cancelled(cancel, async |cancel| {
                env.program(cancel, async |run| run::reconcile(run).await).await
            })
            .await
        };
        let process = Killable::new(process, self.kill(), Arc::clone(&self.env.judge), who);
        self.programs.push(Box::pin(async move {
            let _ = process.await;
            Ended::Reconcile(who)
        }));
    }

    /// After how many waits the next process is killed, if it is: as often early as late.
    fn kill(&mut self) -> Option<u32> {
        (!self.calm && self.rng.u8(0..10) < 3).then(|| {
            let most = 1 << self.rng.u32(1..10);
            self.rng.u32(0..most)
        })
    }

    /// When the next process is told to stop, if it is.
    fn cancel(&mut self) -> Option<Duration> {
        let told = !self.calm && self.rng.u8(0..10) == 0;
        told.then(|| Duration::from_millis(self.rng.u64(0..60_000)))
    }

    pub(crate) fn call(&mut self, call: Call, fresh: bool) {
        if self.story.is_some() {
            self.note(format!("{call:?}"));
        }
        if fresh {
            self.calls.push(call.clone());
            self.doubles(&call);
        }
        let env = Arc::clone(&self.env);
        let called = call.clone();
        if self.fault == Some(Fault::Idle) && matches!(call, Call::ResumeFail { .. }) {
            return;
        }
        let (cancel, fault) = (self.cancel(), self.fault);
        let process = async move {
            cancelled(cancel, async |cancel| {
                env.program(cancel, async |run| program(run, &called, fault).await).await
            })
            .await
        };
        let judge = Arc::clone(&self.env.judge);
        self.begun += 1;
        let process = Killable::new(process, self.kill(), judge, Who::Program(self.begun));
        self.programs.push(Box::pin(async move {
            match process.await {
                Some(_) => Ended::Well,
                None => Ended::Killed(call),
            }
        }));
    }

    /// A process has ended; one that was killed is called again, at times.
    fn ended(&mut self, ended: Ended) {
        match ended {
            Ended::Reconcile(who) => {
                self.env.judge.ended(who);
                self.reconciling = false;
            }
            Ended::Well => {}
            Ended::Killed(call) => {
                if self.rng.bool() {
                    self.call(call, false);
                }
            }
        }
    }
}

/// The program that slurmctld calls.
async fn program(run: &Run<'_>, call: &Call, fault: Option<Fault>) -> Report {
    match call {
        Call::Resume { nodes, request } => run::start(run, &names(nodes), &groups(request)).await,
        Call::Suspend { nodes } if fault == Some(Fault::StopsAll) => {
            run::stop_now(run, &names(nodes)).await
        }
        Call::Suspend { nodes } => run::stop(run, &names(nodes)).await,
        Call::ResumeFail { nodes } => run::failed(run, &names(nodes)).await,
        Call::RebootJob { nodes, .. } | Call::Reboot { nodes } => {
            panic!("no reboots here: {nodes}")
        }
    }
}

/// A process that is told to stop after a while, if it is.
async fn cancelled<T>(after: Option<Duration>, process: impl AsyncFnOnce(Cancel) -> T) -> T {
    let Some(after) = after else {
        return process(Cancel::never()).await;
    };
    let (signal, cancel) = Cancel::new();
    let mut process = pin!(process(cancel));
    tokio::select! {
        biased;
        ended = &mut process => return ended,
        () = sleep(after) => signal.cancel(),
    }
    process.await
}

fn names(nodes: &Hostlist) -> Vec<NodeName> {
    nodes.node_names().unwrap()
}

fn groups(request: &ResumeRequest) -> Vec<JobGroup> {
    let group = |job: &slurmctl::JobNodes| JobGroup::new(job.id, names(&job.nodes));
    request.jobs.iter().map(group).collect()
}

/// A life, line by line: what was asked of the cloud, what programs noted, and how it ended.
pub(crate) async fn trace(seed: u64, wrap: &Wrap) -> Vec<String> {
    let mut sim = Sim::new(seed, wrap).await;
    sim.story = Some(Vec::new());
    let ended = sim.live().await;
    let asked = sim.env.cloud.history().into_iter();
    let noted = sim.env.state.events().into_iter();
    let epoch = u64::try_from(env::EPOCH.as_millis()).unwrap();
    let mut lines: Vec<(u64, String)> = asked
        .map(|event| (u64::try_from(event.at.as_millis()).unwrap(), format!("{event:?}")))
        .chain(noted.map(|event| (event.at - epoch, event.to_line().trim_end().to_owned())))
        .chain(sim.story.unwrap_or_default())
        .collect();
    lines.sort_by_key(|(at, _)| *at);
    lines.push((u64::MAX, format!("{ended:?}")));
    lines
        .into_iter()
        .map(|(at, line)| format!("{:.3} {line}", Duration::from_millis(at).as_secs_f64()))
        .collect()
}
