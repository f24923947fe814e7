//! A cluster that lives: jobs come, machines boot, programs are called and killed, things break.

use crate::simulation::check;
use crate::simulation::env::{self, Env, Fault, Host, Wrap};
use crate::simulation::happening::{Happening, happenings};
use crate::simulation::judge::Who;
use crate::simulation::trouble;
use fastrand::Rng;
use futures_util::future::LocalBoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use hostlist::NodeName;
use slurmctl::memory::Call;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

/// How long things go wrong, and how long they may take to come right.
const TROUBLED: Duration = Duration::from_mins(12);
const HEALING: Duration = Duration::from_hours(1);

/// How often the timer calls reconcile.
pub(crate) const RECONCILE: Duration = Duration::from_mins(1);

/// How often machines that boot are looked at.
const BOOTING: Duration = Duration::from_secs(3);

/// A process that has ended.
pub(crate) enum Ended {
    /// A reconcile, and the controller whose timer has called it.
    Reconcile(Who, Option<Host>),
    /// By itself.
    Well,
    Killed(Call),
}

pub(crate) struct Sim {
    pub(crate) rng: Rng,
    pub(crate) env: Arc<Env>,
    pub(crate) programs: FuturesUnordered<LocalBoxFuture<'static, Ended>>,
    pub(crate) happenings: BTreeMap<Instant, Vec<Happening>>,
    /// When the timer of each controller calls next.
    pub(crate) timers: Vec<Instant>,
    /// Controllers whose timers wait for their reconciles.
    pub(crate) reconciling: BTreeSet<Host>,
    /// Where slurmctld runs.
    pub(crate) active: Host,
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
    pub(crate) async fn new(seed: u64, wrap: &Wrap) -> Self {
        let mut rng = Rng::with_seed(seed);
        let env = env::make(&mut rng, wrap).await;
        trouble::trouble(&mut rng, &env);
        let calm_at = env.begun + TROUBLED;
        let happenings = happenings(&mut rng, &env, calm_at);
        Self {
            timers: timers(&mut rng, &env),
            rng,
            env,
            programs: FuturesUnordered::new(),
            happenings,
            reconciling: BTreeSet::new(),
            active: 0,
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

    pub(crate) async fn live(&mut self) -> Result<(), String> {
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
            self.timers();
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

    pub(crate) fn note(&mut self, line: String) {
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
            trouble::calm(&self.env);
        }
    }

    /// The next moment at which something happens by itself.
    fn wakes(&self, watched: bool) -> Instant {
        let now = Instant::now();
        let soon = now + Duration::from_millis(1);
        let mut wake = self.timers.iter().min().copied().unwrap_or(soon);
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
}

/// The timers of two controllers are not in step.
fn timers(rng: &mut Rng, env: &Env) -> Vec<Instant> {
    let mut first = |host: Host| {
        let later = if host == 0 { 0 } else { rng.u64(0..RECONCILE.as_secs()) };
        env.begun + RECONCILE + Duration::from_secs(later)
    };
    (0..env.controllers.len()).map(&mut first).collect()
}
