//! What happens to a cluster, besides what programs do.

use crate::simulation::env::{Env, Host};
use crate::simulation::world::Sim;
use cloud_core::{InstanceId, InstanceState};
use fastrand::Rng;
use hostlist::{Hostlist, NodeName};
use slurmctl::memory::{Call, JobSpec};
use slurmctl::{JobState, NodeAction};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::time::Instant;

/// How far a clock jumps at most, in milliseconds.
const LONGEST_JUMP: i64 = 12 * 3_600_000;

/// How far listings may be behind while launches are not recorded.
const SHORT_LAG: Duration = Duration::from_secs(3);

/// How long what has to wait does so.
const LATER: Duration = Duration::from_secs(5);

/// Something that happens to the cluster.
#[derive(Debug)]
pub(crate) enum Happening {
    Job(JobSpec),
    Crash,
    Unreachable(bool),
    /// A machine disappears.
    Vanish,
    /// A machine is switched off.
    SwitchOff,
    /// Somebody powers a node down while it may be on its way up.
    PowerDown,
    /// One of the calls so far comes once more.
    Repeat,
    /// This call comes once more.
    Again(Call),
    /// The state directory is lost.
    Forget,
    /// slurmctld does as it is told, and its answers get lost.
    LoseAnswers(usize),
    /// The cloud takes a machine back, if it can one with a job.
    Preempt,
    /// It is gone.
    Gone(InstanceId),
    /// The clock of a controller, or of all, jumps by so many milliseconds, or is right again.
    Jump(Option<Host>, Option<i64>),
    /// A controller can only read the state, or write it again.
    ReadOnly(Host, bool),
    /// The state directory is saved.
    Backup,
    /// It is restored, as it was when it was saved.
    Restore,
    /// Somebody reconciles by hand.
    Reconcile(Host),
}

/// What will happen, and when.
pub(crate) fn happenings(
    rng: &mut Rng,
    env: &Env,
    until: Instant,
) -> BTreeMap<Instant, Vec<Happening>> {
    let mut all: BTreeMap<Instant, Vec<Happening>> = BTreeMap::new();
    let troubled = until.saturating_duration_since(env.begun).as_secs();
    let mut add = |seconds: u64, what| {
        all.entry(env.begun + Duration::from_secs(seconds)).or_default().push(what);
    };
    for _ in 0..rng.usize(1..=3) {
        let mut job =
            JobSpec::new(rng.usize(1..=env.nodes.len()), Duration::from_secs(rng.u64(5..120)));
        job.cpus = rng.bool().then_some(1);
        add(rng.u64(0..troubled / 2), Happening::Job(job));
    }
    for _ in 0..rng.usize(0..=4) {
        let at = rng.u64(5..troubled);
        match rng.u8(0..14) {
            0 => add(at, Happening::Crash),
            1 => {
                add(at, Happening::Unreachable(true));
                add(at + rng.u64(1..90), Happening::Unreachable(false));
            }
            2 => add(at, Happening::Vanish),
            3 => add(at, Happening::SwitchOff),
            4 => add(at, Happening::PowerDown),
            6 => add(at, Happening::LoseAnswers(rng.usize(1..=4))),
            7 => add(at, Happening::Preempt),
            8 => {
                let host = rng.bool().then(|| rng.usize(0..env.controllers.len()));
                let by = rng.i64(-LONGEST_JUMP..LONGEST_JUMP);
                add(at, Happening::Jump(host, Some(by)));
                if rng.bool() {
                    add(at + rng.u64(1..300), Happening::Jump(host, None));
                }
            }
            9 => add(at, Happening::Reconcile(rng.usize(0..env.controllers.len()))),
            10 | 11 if env.may_forget => add(at, Happening::Forget),
            12 if env.may_forget && env.judge.lag <= SHORT_LAG => {
                let host = rng.usize(0..env.controllers.len());
                add(at, Happening::ReadOnly(host, true));
                add(at + rng.u64(1..300), Happening::ReadOnly(host, false));
            }
            13 if env.may_forget => {
                add(at, Happening::Backup);
                add(at + rng.u64(1..300), Happening::Restore);
            }
            _ => add(at, Happening::Repeat),
        }
    }
    all
}

impl Sim {
    /// Now and then a call comes twice, a moment later.
    pub(crate) fn doubles(&mut self, call: &Call) {
        if !self.calm && self.rng.u8(0..8) == 0 {
            let at = Instant::now() + Duration::from_millis(self.rng.u64(1..5_000));
            self.happenings.entry(at).or_default().push(Happening::Again(call.clone()));
        }
    }

    pub(crate) async fn happen(&mut self) {
        let now = Instant::now();
        while let Some(entry) = self.happenings.first_entry() {
            if *entry.key() > now {
                return;
            }
            for what in entry.remove() {
                self.happens(what).await;
            }
        }
    }

    async fn happens(&mut self, what: Happening) {
        let env = Arc::clone(&self.env);
        if self.story.is_some() {
            self.note(format!("{what:?}"));
        }
        match what {
            // Nobody could know of a launch that is recorded nowhere and not listed yet.
            Happening::Forget | Happening::Restore
                if env.seen.launches.are_hidden(env.judge.lag) =>
            {
                self.happenings.entry(Instant::now() + LATER).or_default().push(what);
            }
            Happening::Job(spec) => {
                let _ = env.slurm.submit_job(spec);
            }
            Happening::Crash => {
                env.slurm.crash();
                // The other controller takes over, if there is one.
                self.active = (self.active + 1) % self.timers.len();
            }
            Happening::Unreachable(gone) => env.slurm.set_unreachable(gone),
            Happening::Vanish => self.force_one(InstanceState::Terminated),
            Happening::SwitchOff => self.force_one(InstanceState::Stopped),
            Happening::PowerDown => {
                let node = self.rng.choice(&env.nodes).cloned();
                let list: Hostlist = node.iter().collect();
                let action = NodeAction::PowerDownForce;
                let slurm: &dyn slurmctl::Controller = &env.slurm;
                let _ = slurm.set_state(&list, action, None).await;
            }
            Happening::Repeat => {
                if let Some(call) = self.rng.choice(&self.calls).cloned() {
                    self.call(call, false);
                }
            }
            Happening::Again(call) => self.call(call, false),
            Happening::Forget => env.state.forget(),
            Happening::LoseAnswers(calls) => env.slurm.lose_answers(calls),
            Happening::Preempt => self.preempt(),
            Happening::Gone(id) => {
                let _ = env.cloud.force(&id, InstanceState::Terminated);
            }
            Happening::Jump(host, by) => {
                let all = env.controllers.iter().enumerate();
                for (_, controller) in all.filter(|(at, _)| host.is_none_or(|host| host == *at)) {
                    match by {
                        Some(by) => controller.ahead.fetch_add(by, Ordering::Relaxed),
                        None => controller.ahead.swap(0, Ordering::Relaxed),
                    };
                }
            }
            Happening::ReadOnly(host, so) => {
                env.controllers[host].read_only.store(so, Ordering::Relaxed);
                env.seen.shows_whole(so);
            }
            Happening::Backup => env.backup.make(&env.state),
            Happening::Restore => env.backup.restore(&env.state),
            Happening::Reconcile(host) => self.reconcile(host, false),
        }
    }

    /// A machine that runs is in this state from now on.
    fn force_one(&mut self, state: InstanceState) {
        let mut running = self.env.ours();
        running.retain(|instance| instance.state == InstanceState::Running);
        if let Some(instance) = self.rng.choice(&running) {
            assert!(self.env.cloud.force(&instance.id, state));
        }
    }

    /// The cloud takes a machine back: one with a job, if there is any.
    fn preempt(&mut self) {
        let jobs = self.env.slurm.all_jobs();
        let works = |node: &NodeName| {
            let mut running = jobs.iter().filter(|job| job.state == JobState::Running);
            running.any(|job| job.nodes.contains(node.as_str()))
        };
        let known: Vec<(&String, &NodeName)> = self.known.iter().collect();
        let busy = known.iter().map(|(_, node)| *node).find(|node| works(node));
        let taken = known.iter().find(|(_, node)| busy.is_none_or(|busy| busy == *node));
        let Some(id) = taken.map(|(id, _)| InstanceId::new(id.as_str())) else {
            return;
        };
        if self.env.cloud.force(&id, InstanceState::Terminating) {
            let at = Instant::now() + Duration::from_secs(self.rng.u64(1..60));
            self.happenings.entry(at).or_default().push(Happening::Gone(id));
        }
    }
}
