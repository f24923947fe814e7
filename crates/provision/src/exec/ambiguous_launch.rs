//! Launches that may or may not have been carried out are resolved: looked for until it is known.

use super::listing::{LookedUp, Seen, Wait, Waiter};
use super::node::History;
use super::node::NodeWork;
use crate::cause::Cause;
use crate::failure::Failure;
use crate::state::{EventKind, Launch};
use cloud_core::{Capability, Instance, InstanceId};
use std::collections::BTreeSet;
use std::time::Duration;
use tokio::time::Instant;

/// How long a listing is usually behind a launch.
const LISTING_LAG: Duration = Duration::from_secs(10);

/// How long a listing may be behind a launch that nobody knows the instance of.
const LONGEST_LAG: Duration = Duration::from_secs(65);

/// The longest that a launch without an answer is looked for: more than a cloud takes for one, however busy.
const LONGEST_SEARCH: Duration = Duration::from_secs(90);

/// Listings that show nothing before an ambiguous launch is taken for lost.
const ENOUGH_LISTINGS: u32 = 4;

/// Who asked for a launch that is ambiguous.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asker {
    /// This run, which has waited for the answer.
    Us,
    /// A run before, of which is only known when it asked.
    Before,
}

/// What comes after an ambiguous launch was looked for in vain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum IfNotFound {
    /// A launch after a listing or two: the same once more, which makes no second instance, or one with nothing
    /// ambiguous but what others do.
    Repeat,
    /// Any launch: it was looked for as long as it may take to show up.
    Launch,
    /// Any launch, with the next token.
    LaunchWithNextToken,
}

/// What a search has brought.
pub(super) enum Searched {
    Found(Vec<Instance>),
    /// Nothing but what is on its way out, if anything.
    Nothing(BTreeSet<InstanceId>),
}

/// What an instance means that was asked for by itself.
enum Judged {
    Here(Box<Instance>),
    Leaving,
    NotHere,
}

/// Until when a launch is looked for, and how many listings count as done.
struct Window {
    until: Instant,
    listings: u32,
}

impl NodeWork<'_> {
    /// Finds out what a launch has done. An instance if it has made one, or another has; none if the next launch may be
    /// asked for, when nothing of the node is on its way out any more.
    pub(super) async fn resolve_launch(
        &mut self,
        mut if_not_found: IfNotFound,
        mut asker: Asker,
    ) -> Result<Option<Instance>, Failure> {
        loop {
            let leaving = match self.search(if_not_found, asker, true).await? {
                Searched::Found(instances) => return self.adopt_found(&instances).map(Some),
                Searched::Nothing(leaving) => leaving,
            };
            match if_not_found {
                IfNotFound::Repeat => {}
                IfNotFound::Launch => self.presumed_lost = true,
                IfNotFound::LaunchWithNextToken => self.next_generation(),
            }
            if leaving.is_empty() {
                return Ok(None);
            }
            // Others need not wait for what this one tries when they are gone.
            self.shared.end_probes(&self.name);
            if let Some(found) = self.gone_or_found(leaving).await? {
                return Ok(Some(found));
            }
            if !self.has_open_launch() || self.presumed_lost {
                return Ok(None);
            }
            (if_not_found, asker) = (self.repeat_or_launch(), Asker::Before);
        }
    }

    /// Takes the one instance that has come to light: no other one is needed.
    pub(super) fn adopt_found(&mut self, instances: &[Instance]) -> Result<Instance, Failure> {
        let [one] = instances else {
            let ids: Vec<&str> = instances.iter().map(|instance| instance.id.as_str()).collect();
            let text = format!("{} instances: {}", ids.len(), ids.join(", "));
            return Err(Failure::new(Cause::Refused, text));
        };
        self.note_instance(&one.id);
        // Whatever was launched before it: jobs may run on this one.
        self.history = History::Unknown;
        self.shared.open_probes(&self.name);
        let tools = self.shared.tools;
        let event = tools.event(EventKind::Adopted).of(&self.name).with(one.id.as_str());
        tools.note(&event.in_place(self.place.clone()).for_jobs(self.shared.jobs_of(&self.name)));
        Ok(one.clone())
    }

    /// Looks for what a launch has made, for as long as it may take to show up.
    pub(super) async fn search(
        &mut self,
        if_not_found: IfNotFound,
        asker: Asker,
        for_launch: bool,
    ) -> Result<Searched, Failure> {
        let Window { until, mut listings } = self.window(if_not_found, asker);
        let mut waiter = Waiter::new(self.shared, &self.name, Wait::Ambiguous);
        if asker == Asker::Us {
            waiter.hurry();
        }
        let mut hidden: Option<InstanceId> = None;
        loop {
            let shown = match hidden.take() {
                None => waiter.listed().await?,
                Some(id) => match waiter.look_up(&id).await? {
                    Seen::Listed(shown) => shown,
                    Seen::LookedUp(found) => match self.judge(&id, found) {
                        Judged::Here(one) => vec![*one],
                        Judged::Leaving if for_launch && !self.has_open_launch() => {
                            return Ok(Searched::Nothing(BTreeSet::from([id])));
                        }
                        Judged::Leaving | Judged::NotHere => continue,
                    },
                },
            };
            let now = self.shared.tools.now();
            let is_here = |one: &Instance| {
                !one.state.is_leaving() && !self.record.is_terminated(&one.id, now)
            };
            let (here, others): (Vec<Instance>, Vec<Instance>) =
                shown.into_iter().partition(is_here);
            if !here.is_empty() {
                return Ok(Searched::Found(here));
            }
            // What was shown at once may be what was there before: listings are behind.
            listings += u32::from(Instant::now() + LISTING_LAG / 2 >= until);
            let late = Instant::now() >= until;
            if let Some(id) = self.record.instance() {
                // A lookup by id is surer than a listing: do at least one, however late the first listing is.
                if late && listings > 1 {
                    self.instance = Some(id);
                    let text = "it is not known what has become of an earlier launch";
                    return Err(Failure::new(Cause::Ambiguous, text));
                }
                hidden = Some(id);
            } else if late && listings >= ENOUGH_LISTINGS {
                let leaving = others.into_iter().filter(|one| one.state.is_live());
                return Ok(Searched::Nothing(leaving.map(|one| one.id).collect()));
            }
        }
    }

    /// What an instance means that was asked for by itself; what is known of it is written down.
    fn judge(&mut self, id: &InstanceId, found: LookedUp) -> Judged {
        match found {
            LookedUp::Instance(one) if one.state.is_leaving() => {
                self.note_termination(id);
                if one.state.is_live() { Judged::Leaving } else { Judged::NotHere }
            }
            LookedUp::Instance(one) => Judged::Here(one),
            // It may be there all the same: a cloud also says so of what it does not show.
            LookedUp::Missing | LookedUp::NotOurs => {
                self.disown(id);
                Judged::NotHere
            }
            LookedUp::Unknown => Judged::NotHere,
        }
    }

    /// What comes after a launch without an answer: its repeat, where the cloud knows it as one.
    pub(super) fn repeat_or_launch(&self) -> IfNotFound {
        if self.can_repeat() { IfNotFound::Repeat } else { IfNotFound::Launch }
    }

    /// True if the last launch had no answer, and can be asked for again without making a second instance.
    pub(super) fn can_repeat(&self) -> bool {
        self.knows_repeats() && !self.presumed_lost && self.open_token().is_some()
    }

    fn knows_repeats(&self) -> bool {
        self.shared.cloud.can(Capability::LaunchToken)
    }

    /// The token of the last launch, if that had no answer.
    pub(super) fn open_token(&self) -> Option<&str> {
        self.record.launch.as_ref().and_then(Launch::open_token)
    }

    fn window(&self, if_not_found: IfNotFound, asker: Asker) -> Window {
        let now = Instant::now();
        match if_not_found {
            // Of two listings, one at least begins after the answer.
            IfNotFound::Repeat => Window { until: now, listings: ENOUGH_LISTINGS - 2 },
            IfNotFound::Launch | IfNotFound::LaunchWithNextToken => {
                Window { until: now + self.shows_up_within(asker), listings: 0 }
            }
        }
    }

    /// How long a launch may take to show up. The cloud may still work on a launch whose answer nobody waits for any more, for
    /// as long again as it has kept us waiting, and the listing may lag behind.
    fn shows_up_within(&self, asker: Asker) -> Duration {
        let unanswered = self.record.launch.as_ref().filter(|launch| launch.id().is_none());
        let Some(launch) = unanswered else {
            return LISTING_LAG;
        };
        let age = launch.age(self.shared.tools.now());
        let left = match asker {
            Asker::Us => age.max(LONGEST_LAG),
            Asker::Before => LONGEST_SEARCH.saturating_sub(age),
        };
        left.clamp(LISTING_LAG, LONGEST_SEARCH)
    }
}
