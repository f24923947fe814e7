//! One node in the hands of the executor.

use super::failure::Failure;
use crate::report::{NodeReport, Outcome};
use crate::site::{Place, Wanted};
use crate::state::{Launch, NodeLock, NodeRecord};
use cloud_core::{InstanceId, LaunchToken};
use hostlist::NodeName;
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::time::{Duration, SystemTime};
use tokio::time::Instant;

/// What a node is to become.
#[derive(Clone, Debug)]
pub(crate) enum Aim {
    /// Up; with an instance of its own if it has to be launched.
    Up(Option<Wanted>),
    /// Gone; for certain, or as good as.
    Gone { certain: bool },
}

/// What comes after an instance has gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Then {
    Launch,
    Over(Outcome),
}

/// What comes after a launch in doubt was looked for in vain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Vain {
    /// A launch after a look or two: the same once more, which makes no second instance, or one with nothing in doubt but
    /// what others do.
    Soon,
    /// Any launch: it was looked for as long as it may take to show up.
    Launch,
    /// The same with the next token.
    NextToken,
}

/// What is known of the instance that a start has in hand, and of what runs on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Life {
    /// It was there before: jobs may run on it.
    Unknown,
    /// Launched by this run, and not yet seen running.
    Fresh,
    /// Launched by this run, and seen running: it may have registered.
    Ran,
    /// It failed: nothing runs on it.
    Dead,
}

/// What Slurm says of a node that it was to take back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Word {
    Taken,
    /// It is up, or has a job.
    InUse,
    /// It is neither up nor on its way.
    Idle,
    /// Slurm does not answer, or was not asked.
    None,
}

impl Life {
    /// True if the instance may be ended.
    pub(crate) fn may_end(self, word: Word) -> bool {
        match (word, self) {
            (Word::Taken, _) | (_, Self::Dead) => true,
            (Word::InUse, Self::Unknown | Self::Fresh | Self::Ran) => false,
            (Word::Idle, life) => life != Self::Unknown,
            (Word::None, life) => life == Self::Fresh,
        }
    }
}

/// Where a node stands.
#[derive(Clone, Debug)]
pub(crate) enum Phase {
    /// These are to be told to go, one after the other; `told` have been.
    Remove { ids: Vec<InstanceId>, told: BTreeSet<InstanceId>, then: Then },
    /// These have been told to go, and are waited for.
    AwaitGone { ids: BTreeSet<InstanceId>, until: Instant, then: Then },
    /// A launch may or may not have been carried out: look before anything else.
    Doubt { until: Instant, looks: u32, then: Vain },
    /// A launch is to be asked for.
    Launch,
    /// A stopped instance is to be started.
    Start(InstanceId),
    /// It is on its way up.
    Watch(InstanceId),
    /// Nothing more to do.
    Over(Outcome),
}

/// One node in the hands of the executor.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each says what goes on beside the phase")]
pub(crate) struct Work {
    pub(crate) node: NodeName,
    lock: Option<Box<dyn NodeLock>>,
    pub(crate) record: NodeRecord,
    pub(crate) aim: Aim,
    pub(crate) phase: Phase,
    /// Which of the places is next.
    pub(crate) place: usize,
    /// Repeats of the request that is next.
    pub(crate) tries: u32,
    /// How often it was not known what a launch had done.
    pub(crate) doubts: u32,
    pub(crate) launches: u32,
    /// The launch that is asked for repeats one without an answer, which may be under way yet: a refusal says nothing of
    /// that one.
    pub(crate) repeats: bool,
    /// The last launch, if it had no answer, was looked for as long as it may take to show up. It stays on record until the
    /// next replaces it: who comes after us looks again.
    pub(crate) settled: bool,
    /// Nothing is asked before.
    pub(crate) not_before: Instant,
    /// Nothing is ended before Slurm has said whether the node is in use.
    pub(crate) unheard: bool,
    /// Slurm is asked whether it wants the node again before one of its instances is ended.
    pub(crate) confirms: bool,
    /// When it last said that it does not.
    pub(crate) confirmed: Option<Instant>,
    /// A request is under way.
    pub(crate) asking: bool,
    /// Slurm is being told.
    pub(crate) telling: bool,
    /// Nothing is launched until it is known whether the job's nodes are released.
    pub(crate) held: bool,
    /// Looks in a row that did not show the instance.
    pub(crate) missed: u32,
    /// A look has shown it.
    pub(crate) seen: bool,
    /// Looks that showed it stopped.
    pub(crate) stalled: u32,
    /// Starts of it that came too early, or may not have arrived.
    pub(crate) unstarted: u32,
    pub(crate) instance: Option<InstanceId>,
    pub(crate) address: Option<IpAddr>,
    /// Slurm is told of what becomes of it.
    pub(crate) tells: bool,
    /// Whatever shows up for the node goes, and not only what was seen.
    pub(crate) sweeps: bool,
    /// An instance was told to go.
    pub(crate) ended: bool,
    pub(crate) life: Life,
    pub(crate) failure: Option<Failure>,
    pub(crate) begun: Instant,
    pub(crate) launched: Option<Instant>,
}

impl Work {
    pub(crate) fn new(
        node: NodeName,
        lock: Option<Box<dyn NodeLock>>,
        aim: Aim,
        phase: Phase,
    ) -> Self {
        let now = Instant::now();
        let record = lock.as_ref().map(|lock| lock.record()).unwrap_or_default();
        Self {
            node,
            lock,
            record,
            aim,
            phase,
            place: 0,
            tries: 0,
            doubts: 0,
            launches: 0,
            repeats: false,
            settled: false,
            not_before: now,
            unheard: false,
            confirms: false,
            confirmed: None,
            asking: false,
            telling: false,
            held: false,
            missed: 0,
            seen: false,
            stalled: 0,
            unstarted: 0,
            instance: None,
            address: None,
            tells: true,
            sweeps: false,
            ended: false,
            life: Life::Unknown,
            failure: None,
            begun: now,
            launched: None,
        }
    }

    /// The lock, for whoever goes on with the node.
    pub(crate) fn into_lock(self) -> Option<Box<dyn NodeLock>> {
        self.lock
    }

    pub(crate) fn wanted(&self) -> Option<&Wanted> {
        match &self.aim {
            Aim::Up(wanted) => wanted.as_ref(),
            Aim::Gone { .. } => None,
        }
    }

    /// The place that is next, or that the instance is in.
    pub(crate) fn place(&self) -> Option<&Place> {
        self.wanted()?.places.get(self.place)
    }

    pub(crate) fn is_up_wanted(&self) -> bool {
        matches!(self.aim, Aim::Up(_))
    }

    pub(crate) fn is_over(&self) -> bool {
        matches!(self.phase, Phase::Over(_)) && !self.asking && !self.telling
    }

    /// True if nothing is to come of it any more, whatever is answered.
    pub(crate) fn is_given_up(&self) -> bool {
        match self.phase {
            Phase::Over(_) | Phase::Remove { then: Then::Over(_), .. } => true,
            Phase::Remove { then: Then::Launch, .. }
            | Phase::AwaitGone { .. }
            | Phase::Doubt { .. }
            | Phase::Launch
            | Phase::Start(_)
            | Phase::Watch(_) => false,
        }
    }

    /// True if it waits for what a listing shows.
    pub(crate) fn needs_look(&self) -> bool {
        match self.phase {
            Phase::AwaitGone { .. } | Phase::Doubt { .. } | Phase::Watch(_) => true,
            Phase::Remove { .. } | Phase::Launch | Phase::Start(_) | Phase::Over(_) => false,
        }
    }

    /// Goes on to another phase; what was counted for the one before counts no more.
    pub(crate) fn goes(&mut self, phase: Phase) {
        self.phase = phase;
        self.tries = 0;
        self.missed = 0;
        self.seen = false;
        self.stalled = 0;
    }

    /// Asks again later, a little later each time; false after too many times.
    pub(crate) fn retries(&mut self, most: u32, asked: Option<Duration>) -> bool {
        if self.tries >= most {
            return false;
        }
        let pause = Duration::from_millis(500 << self.tries.min(5));
        self.tries += 1;
        self.not_before = Instant::now() + pause.max(asked.unwrap_or_default());
        true
    }

    /// Writes down that a launch is about to be asked for.
    pub(crate) fn notes_launch(&mut self, now: SystemTime, token: Option<&LaunchToken>) {
        self.record.launch = Some(Launch::asked(now).with_token(token));
        self.settled = false;
        self.keep();
    }

    /// Writes down what a launch has made, or was found to have made.
    pub(crate) fn notes_instance(&mut self, now: SystemTime, id: &InstanceId) {
        self.instance = Some(id.clone());
        self.record.launch = Some(Launch::answered(now, id));
        self.keep();
    }

    /// Takes an instance that is there, where it is if that is known.
    pub(crate) fn adopts(&mut self, now: SystemTime, id: &InstanceId, address: Option<IpAddr>) {
        self.address = address;
        if self.record.instance().as_ref() == Some(id) {
            self.instance = Some(id.clone());
        } else {
            self.notes_instance(now, id);
        }
    }

    /// True if a launch was asked for and never answered.
    pub(crate) fn has_open_launch(&self) -> bool {
        self.record.is_open()
    }

    /// Writes down that an instance was told to go.
    pub(crate) fn notes_termination(&mut self, id: &InstanceId, now: SystemTime) {
        self.record.terminate(id, now);
        self.keep();
    }

    /// Writes down that an instance is gone: where another has ended what our last launch made, there is nothing in doubt.
    pub(crate) fn notes_gone(&mut self, id: &InstanceId, now: SystemTime) {
        if self.record.instance().as_ref() == Some(id) {
            self.notes_termination(id, now);
        }
    }

    /// Writes down that the launch made nothing.
    pub(crate) fn forgets_launch(&mut self) {
        self.record.launch = None;
        self.keep();
    }

    /// Writes down that the instance is gone by another's hand.
    pub(crate) fn forgets_instance(&mut self, now: SystemTime) {
        if let Some(id) = self.instance.take() {
            self.notes_termination(&id, now);
        }
    }

    /// Writes down that an instance is not there, or not ours any more.
    pub(crate) fn disowns(&mut self, id: &InstanceId) {
        if self.instance.as_ref() == Some(id) {
            self.instance = None;
        }
        self.record.forget(id);
        self.keep();
    }

    /// The next launch is another one, and not a repeat.
    ///
    /// Generations run 0, 1, 3, 7 …, so a process that lost its record reaches an unused one in a few tries.
    pub(crate) fn next_generation(&mut self) {
        self.record.generation = self.record.generation.saturating_mul(2).saturating_add(1);
        self.record.launch = None;
        self.keep();
    }

    pub(crate) fn keep(&mut self) {
        if let Some(lock) = &mut self.lock {
            // What cannot be written is only one of the nets that is missing.
            let _ = lock.keep(&self.record);
        }
    }

    pub(crate) fn report(&self, outcome: Outcome) -> NodeReport {
        let mut report = NodeReport::new(outcome);
        report.instance = self.instance.as_ref().map(|id| id.as_str().to_owned());
        report.launches = self.launches;
        report.launched_after = self.launched.map(|at| at.saturating_duration_since(self.begun));
        report.took = Instant::now().saturating_duration_since(self.begun);
        if let Some(failure) = &self.failure
            && !outcome.is_success()
        {
            report.cause = Some(failure.cause);
            report.reason = Some(failure.text.clone());
            report.request_id.clone_from(&failure.request_id);
        } else if let (Some(failure), Outcome::Nothing) = (&self.failure, outcome) {
            report.reason = Some(failure.text.clone());
        }
        report
    }
}
