//! What happens to a cluster, besides what programs do.

use crate::simulation::env::Env;
use crate::simulation::world::Sim;
use cloud_core::InstanceState;
use fastrand::Rng;
use hostlist::Hostlist;
use slurmctl::NodeAction;
use slurmctl::memory::{Call, JobSpec};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// Something that happens to the cluster.
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
    for _ in 0..rng.usize(0..=3) {
        let at = rng.u64(5..troubled);
        match rng.u8(0..8) {
            0 => add(at, Happening::Crash),
            1 => {
                add(at, Happening::Unreachable(true));
                add(at + rng.u64(1..90), Happening::Unreachable(false));
            }
            2 => add(at, Happening::Vanish),
            3 => add(at, Happening::SwitchOff),
            4 => add(at, Happening::PowerDown),
            5 => add(at, Happening::Repeat),
            6 => add(at, Happening::LoseAnswers(rng.usize(1..=4))),
            _ if env.may_forget => add(at, Happening::Forget),
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
        match what {
            Happening::Job(spec) => {
                let _ = env.slurm.submit_job(spec);
            }
            Happening::Crash => env.slurm.crash(),
            Happening::Unreachable(gone) => env.slurm.set_unreachable(gone),
            Happening::Vanish | Happening::SwitchOff => {
                let running: Vec<_> = env
                    .ours()
                    .into_iter()
                    .filter(|instance| instance.state == InstanceState::Running)
                    .collect();
                if let Some(instance) = self.rng.choice(&running) {
                    let state = match what {
                        Happening::Vanish => InstanceState::Terminated,
                        _ => InstanceState::Stopped,
                    };
                    assert!(env.cloud.force(&instance.id, state));
                }
            }
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
        }
    }
}
