//! Resolves ambiguous launches: those that the cloud may or may not have carried out.

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

/// The longest search for a launch without an answer. A busy cloud takes less for a launch.
const LONGEST_SEARCH: Duration = Duration::from_secs(90);

/// How many listings must show nothing before an ambiguous launch is presumed lost.
const ENOUGH_LISTINGS: u32 = 4;

/// Who requested the ambiguous launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asker {
    /// This run, which waited for the answer.
    Us,
    /// An earlier run. Only the time of its request is known.
    Before,
}

/// What to do if the search finds nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum IfNotFound {
    /// Launch after two listings: either the same launch again, which creates no second instance, or a first one.
    Repeat,
    /// Launch, after the search took as long as the instance may take to show up.
    Launch,
    /// Launch with the next token, after an equally long search.
    LaunchWithNextToken,
}

/// The result of a search.
pub(super) enum Searched {
    Found(Vec<Instance>),
    /// No instance, except those on their way out.
    Nothing(BTreeSet<InstanceId>),
}

/// What a lookup by id means for the search.
enum Judged {
    Here(Box<Instance>),
    Leaving,
    NotHere,
}

/// The end of a search, and how many of its listings count as done at the beginning.
struct Window {
    until: Instant,
    listings: u32,
}

impl NodeWork<'_> {
    /// Searches for the instance of an ambiguous launch. Returns it, or one that somebody else launched. None if the
    /// node may launch now: then nothing of it is on its way out any more.
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
            // Other nodes need not wait until these are gone.
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

    /// Adopts the one instance that was found.
    pub(super) fn adopt_found(&mut self, instances: &[Instance]) -> Result<Instance, Failure> {
        let [one] = instances else {
            let ids: Vec<&str> = instances.iter().map(|instance| instance.id.as_str()).collect();
            let text = format!("{} instances: {}", ids.len(), ids.join(", "));
            return Err(Failure::new(Cause::Refused, text));
        };
        self.note_instance(&one.id);
        // Somebody else may have launched it: jobs may run on it.
        self.history = History::Unknown;
        self.shared.open_probes(&self.name);
        self.note_in_place(EventKind::Adopted, &one.id);
        Ok(one.clone())
    }

    /// Searches for the instance of a launch, for as long as it may take to show up.
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
            let shown = match waiter.next(hidden.take()).await? {
                Seen::Listed(shown) => shown,
                Seen::LookedUp(id, found) => match self.judge(&id, found) {
                    Judged::Here(one) => vec![*one],
                    Judged::Leaving if for_launch && !self.has_open_launch() => {
                        return Ok(Searched::Nothing(BTreeSet::from([id])));
                    }
                    Judged::Leaving | Judged::NotHere => continue,
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
            // Listings lag: only the later ones count.
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

    /// Judges a lookup by id, and records what it shows.
    fn judge(&mut self, id: &InstanceId, found: LookedUp) -> Judged {
        match found {
            LookedUp::Instance(one) if one.state.is_leaving() => {
                self.note_termination(id);
                if one.state.is_live() { Judged::Leaving } else { Judged::NotHere }
            }
            LookedUp::Instance(one) => Judged::Here(one),
            // It may exist all the same: a cloud also says so about instances that it hides.
            LookedUp::Missing | LookedUp::NotOurs => {
                self.disown(id);
                Judged::NotHere
            }
            LookedUp::Unknown => Judged::NotHere,
        }
    }

    /// What to do about a launch without an answer: repeat it if the cloud recognizes repeats.
    pub(super) fn repeat_or_launch(&self) -> IfNotFound {
        if self.can_repeat() { IfNotFound::Repeat } else { IfNotFound::Launch }
    }

    /// True if the last launch had no answer, and can be repeated without creating a second instance.
    pub(super) fn can_repeat(&self) -> bool {
        self.knows_repeats() && !self.presumed_lost && self.open_token().is_some()
    }

    /// True if the cloud knows a repeat of a node's launch by its token. Of a batch it has seen another token.
    fn knows_repeats(&self) -> bool {
        self.shared.cloud.batch <= 1 && self.shared.cloud.can(Capability::LaunchToken)
    }

    /// The token of the last launch, if it had no answer.
    pub(super) fn open_token(&self) -> Option<&str> {
        self.record.launch.as_ref().and_then(Launch::open_token)
    }

    fn window(&self, if_not_found: IfNotFound, asker: Asker) -> Window {
        let now = Instant::now();
        match if_not_found {
            // At least one of two listings begins after the answer.
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
