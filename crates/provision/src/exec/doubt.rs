//! Launches that may or may not have been carried out.

use super::end::remove;
use super::engine::Engine;
use super::failure::Failure;
use super::tools::Tools;
use super::work::{Aim, Life, Phase, Then, Vain, Work};
use crate::cause::Cause;
use crate::report::Outcome;
use crate::state::{EventKind, Launch};
use cloud_core::{Capability, Instance, InstanceId};
use hostlist::NodeName;
use std::collections::BTreeSet;
use std::time::Duration;
use tokio::time::Instant;

/// How often a launch may be in doubt before the node is given up.
const MOST_DOUBTS: u32 = 3;

/// How long a listing may be behind a launch.
const DOUBT: Duration = Duration::from_secs(10);

/// The longest that a launch without an answer is looked for: more than a cloud takes for one, however busy.
const LONGEST_DOUBT: Duration = Duration::from_secs(90);

/// Looks that show nothing before a launch in doubt is taken for lost.
const ENOUGH_LOOKS: u32 = 4;

/// Who asked for a launch that is in doubt.
#[derive(Clone, Copy)]
enum Asker {
    /// This run, which has waited for the answer.
    Us,
    /// A run before, of which is only known when it asked.
    Before,
}

impl Engine<'_> {
    /// Looks before it launches again.
    pub(super) fn doubt(&mut self, node: &NodeName, failure: Failure, then: Vain) {
        let Some(work) = self.works.get_mut(node) else {
            return;
        };
        work.doubts += 1;
        if work.doubts > MOST_DOUBTS {
            self.fail(node, failure);
            return;
        }
        work.failure = Some(failure);
        work.goes_in_doubt(then, Asker::Us, self.tools);
        self.look_soon();
    }

    /// The instance that was made with the token is gone, and so is the token: the next launch has another, and might come
    /// beside a machine of whoever ended that one.
    pub(super) fn used_up(&mut self, node: &NodeName) {
        let Some(work) = self.works.get_mut(node) else {
            return;
        };
        work.next_generation();
        work.goes_in_doubt(Vain::Soon, Asker::Us, self.tools);
        self.look_soon();
    }

    /// A launch that may or may not have been carried out.
    pub(super) fn judge_doubt(&mut self, node: &NodeName, shown: &[Instance]) {
        let now = self.tools.now();
        let Some(work) = self.works.get_mut(node) else {
            return;
        };
        let here: Vec<&Instance> = shown
            .iter()
            .filter(|instance| !instance.state.is_leaving())
            .filter(|instance| !work.record.is_terminated(&instance.id, now))
            .collect();
        match here[..] {
            [] => {
                let leaving = shown.iter().filter(|instance| instance.state.is_live());
                let leaving = leaving.map(|instance| instance.id.clone()).collect();
                self.nothing_found(node, leaving);
            }
            [one] => {
                work.notes_instance(now, &one.id);
                // Whatever was launched before it: jobs may run on this one.
                work.life = Life::Unknown;
                match work.aim {
                    Aim::Up(_) => {
                        work.goes(Phase::Watch(one.id.clone()));
                        self.opens_probes(node);
                        self.tools.note_node(EventKind::Adopted, node, one.id.as_str());
                        self.seen(node, one);
                    }
                    Aim::Gone { .. } => {
                        let then = Then::Over(Outcome::Down);
                        work.goes(remove(vec![one.id.clone()], then));
                    }
                }
            }
            [..] => {
                let ids = here.iter().map(|instance| instance.id.clone()).collect();
                self.several_found(node, ids);
            }
        }
    }

    /// Nothing but what is on its way out, if anything.
    fn nothing_found(&mut self, node: &NodeName, leaving: BTreeSet<InstanceId>) {
        let Some(work) = self.works.get_mut(node) else {
            return;
        };
        let Phase::Doubt { until, looks, .. } = &mut work.phase else {
            return;
        };
        // What was shown at once may be what was there before: listings are behind.
        let settled = Instant::now() + DOUBT / 2 >= *until;
        *looks += u32::from(settled);
        let (late, enough) = (Instant::now() >= *until, *looks >= ENOUGH_LOOKS);
        if let Some(id) = work.record.instance() {
            // Known by its id, and to ask for that is surer than a listing: once at least, however late the first look is.
            if late && *looks > 1 {
                work.instance = Some(id);
                let text = "it is not known what has become of an earlier launch";
                self.fail(node, Failure::new(Cause::Ambiguous, text));
            } else {
                self.ask_for(node, id);
            }
            return;
        }
        if !late || !enough {
            return;
        }
        match work.aim {
            Aim::Up(_) => self.launch_after(node, leaving),
            Aim::Gone { .. } => {
                work.forgets_launch();
                let outcome = if work.ended { Outcome::Down } else { Outcome::Nothing };
                work.goes(Phase::Over(outcome));
            }
        }
    }

    /// The doubt is over: launches when these are gone, and not beside them.
    fn launch_after(&mut self, node: &NodeName, leaving: BTreeSet<InstanceId>) {
        let Some(work) = self.works.get_mut(node) else {
            return;
        };
        if let Phase::Doubt { then, .. } = work.phase {
            match then {
                Vain::NextToken => work.next_generation(),
                Vain::Launch => work.settled = true,
                Vain::Soon => {}
            }
        }
        if leaving.is_empty() {
            work.goes(Phase::Launch);
        } else {
            // Others need not wait for what this one tries when they are gone.
            self.ends_probes(node);
            self.await_gone(node, leaving, Then::Launch);
        }
    }

    /// What a launch has made that was in doubt is on its way out, if it is not gone.
    pub(super) fn found_leaving(&mut self, node: &NodeName, id: &InstanceId, gone: bool) {
        let now = self.tools.now();
        let Some(work) = self.works.get_mut(node) else {
            return;
        };
        work.notes_termination(id, now);
        // An answer of before, when another launch is in doubt by now, says nothing of that one.
        if work.is_up_wanted() && !gone && !work.has_open_launch() {
            self.launch_after(node, BTreeSet::from([id.clone()]));
        }
    }

    fn several_found(&mut self, node: &NodeName, ids: Vec<InstanceId>) {
        let Some(work) = self.works.get_mut(node) else {
            return;
        };
        match work.aim {
            Aim::Gone { .. } => work.goes(remove(ids, Then::Over(Outcome::Down))),
            Aim::Up(_) => {
                let words: Vec<&str> = ids.iter().map(InstanceId::as_str).collect();
                let text = format!("{} instances: {}", ids.len(), words.join(", "));
                self.fail(node, Failure::new(Cause::Refused, text));
            }
        }
    }
}

impl Work {
    /// What was in the way has gone; an earlier launch may still show up.
    pub(crate) fn goes_on(&mut self, then: Then, tools: &Tools<'_>) {
        match then {
            Then::Launch if self.has_open_launch() && !self.settled => self.begins_in_doubt(tools),
            Then::Launch => self.goes(Phase::Launch),
            Then::Over(Outcome::Down) if self.sweeps && self.has_open_launch() => {
                self.begins_in_doubt(tools);
            }
            Then::Over(outcome) => self.goes(Phase::Over(outcome)),
        }
    }

    /// In doubt from the beginning: what was asked for before may still show up.
    pub(crate) fn begins_in_doubt(&mut self, tools: &Tools<'_>) {
        self.goes_in_doubt(self.may_repeat(tools), Asker::Before, tools);
    }

    /// As long as it may take to show up, whatever comes after it.
    pub(super) fn doubts_fully(&mut self, tools: &Tools<'_>) {
        self.goes_in_doubt(Vain::Launch, Asker::Before, tools);
    }

    fn goes_in_doubt(&mut self, then: Vain, asker: Asker, tools: &Tools<'_>) {
        let now = Instant::now();
        let (until, looks) = match then {
            // Of two looks, one at least begins after the answer.
            Vain::Soon => (now, ENOUGH_LOOKS - 2),
            Vain::Launch | Vain::NextToken => (now + self.doubt_lasts(asker, tools), 0),
        };
        self.goes(Phase::Doubt { until, looks, then });
    }

    /// What comes after a launch without an answer: its repeat, where the cloud knows it as one.
    pub(super) fn may_repeat(&self, tools: &Tools<'_>) -> Vain {
        if self.can_repeat(tools) { Vain::Soon } else { Vain::Launch }
    }

    /// True if the last launch had no answer, and can be asked for again without making a second instance.
    pub(super) fn can_repeat(&self, tools: &Tools<'_>) -> bool {
        let knows_repeats = tools.cloud.capabilities().has(Capability::LaunchToken);
        knows_repeats && self.is_up_wanted() && !self.settled && self.open_token().is_some()
    }

    /// The token of the last launch, if that had no answer.
    pub(super) fn open_token(&self) -> Option<&str> {
        self.record.launch.as_ref().and_then(Launch::open_token)
    }

    /// How long a launch may take to show up. The cloud does not see that nobody waits for its answer any more: it may be
    /// at work on it yet and, where it knows no repeats, would launch another. Who kept us waiting may take as long again.
    fn doubt_lasts(&self, asker: Asker, tools: &Tools<'_>) -> Duration {
        let knows_repeats = tools.cloud.capabilities().has(Capability::LaunchToken);
        let unanswered = self.record.launch.as_ref().filter(|launch| launch.id().is_none());
        let Some(launch) = unanswered.filter(|_| !knows_repeats) else {
            return DOUBT;
        };
        let age = launch.age(tools.now());
        let left = match asker {
            Asker::Us => age,
            Asker::Before => LONGEST_DOUBT.saturating_sub(age),
        };
        left.clamp(DOUBT, LONGEST_DOUBT)
    }
}
