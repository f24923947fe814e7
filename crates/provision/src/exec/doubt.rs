//! Launches that may or may not have been carried out.

use super::ask::{DOUBT, LONGEST_DOUBT};
use super::end::remove;
use super::engine::Engine;
use super::failure::Failure;
use super::tools::Tools;
use super::work::{Aim, Life, Phase, Then, Work};
use crate::outcome::Outcome;
use crate::report::Cause;
use crate::state::EventKind;
use cloud_core::{Capability, Instance, InstanceId};
use hostlist::NodeName;
use std::time::Duration;
use tokio::time::Instant;

/// Looks that show nothing before a launch in doubt is taken for lost.
const ENOUGH_LOOKS: u32 = 4;

impl Engine<'_> {
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
            [] => self.nothing_found(node),
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

    fn nothing_found(&mut self, node: &NodeName) {
        let Some(work) = self.works.get_mut(node) else {
            return;
        };
        let Phase::Doubt { until, looks, next_generation } = &mut work.phase else {
            return;
        };
        // What was shown at once may be what was there before: listings are behind.
        let settled = Instant::now() + DOUBT / 2 >= *until;
        *looks += u32::from(settled);
        let (late, enough) = (Instant::now() >= *until, *looks >= ENOUGH_LOOKS);
        if let Some(id) = work.record.instance() {
            // Known by its id, and to ask for that is surer than a listing.
            if late {
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
        let next_generation = *next_generation;
        match work.aim {
            Aim::Up(_) => {
                // The intent stays on record until the next launch replaces it.
                if next_generation {
                    work.next_generation();
                }
                work.goes(Phase::Launch);
            }
            Aim::Gone { .. } => {
                work.forgets_launch();
                let outcome = if work.ended { Outcome::Down } else { Outcome::Nothing };
                work.goes(Phase::Over(outcome));
            }
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
            Then::Launch if self.has_open_launch() => self.begins_in_doubt(tools),
            Then::Launch => self.goes(Phase::Launch),
            Then::Over(Outcome::Down) if self.sweeps && self.has_open_launch() => {
                self.begins_in_doubt(tools);
            }
            Then::Over(outcome) => self.goes(Phase::Over(outcome)),
        }
    }

    /// In doubt from the beginning: what was asked for before may still show up.
    pub(crate) fn begins_in_doubt(&mut self, tools: &Tools<'_>) {
        let until = Instant::now() + self.doubt_left(tools);
        self.goes(Phase::Doubt { until, looks: 0, next_generation: false });
    }

    /// How long it may take to show up. The cloud does not see that nobody waits for its answer any more: it may be
    /// at work on it yet and, where it knows no repeats, would launch another.
    fn doubt_left(&self, tools: &Tools<'_>) -> Duration {
        let knows_repeats = tools.cloud.capabilities().has(Capability::LaunchToken);
        match &self.record.launch {
            Some(launch) if launch.id().is_none() && !knows_repeats => {
                LONGEST_DOUBT.saturating_sub(launch.age(tools.now())).max(DOUBT)
            }
            Some(_) | None => DOUBT,
        }
    }
}
