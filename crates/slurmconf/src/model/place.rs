//! The places of a node: where its machine may be launched, as features of its line say.
//!
//! `place1=VM.Standard3.Flex.2.32/2/preemptible` is the first choice; a part that is empty is as the node's own. The words are
//! read back by whoever launches, so that slurm.conf alone says where a node may go.

use super::Features;
use std::fmt;
use std::time::Duration;

/// The feature that says whether a node's own machines are preemptible.
const PREEMPTIBLE: &str = "preemptible";

/// The feature that says for how long only preemptible machines are tried.
const GIVE_UP_AFTER: &str = "give_up_after";

/// The feature of a node whose machine is kept when it is not needed.
pub(crate) const WARM: &str = "warm";

/// The words of the third part.
const SPOT: &str = "preemptible";
const ON_DEMAND: &str = "on-demand";

/// One place: what is not given is as the node has it.
///
/// ```
/// use slurmconf::{Features, PlaceChoice};
///
/// let features = Features::from("shape=m1.large,place1=//preemptible,place2=m2.large/b/");
/// let places = features.places();
/// assert_eq!(places[0].preemptible, Some(true));
/// assert_eq!((places[1].shape.as_deref(), places[1].zone.as_deref()), (Some("m2.large"), Some("b")));
/// assert_eq!(places[1].to_string(), "m2.large/b/");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlaceChoice {
    /// Another shape.
    pub shape: Option<String>,
    /// Another zone.
    pub zone: Option<String>,
    /// Whether the machine may be taken away at any time, at a lower price.
    pub preemptible: Option<bool>,
}

impl PlaceChoice {
    fn read(text: &str) -> Self {
        let mut parts = text.split('/').map(|part| (!part.is_empty()).then(|| part.to_owned()));
        let (shape, zone) = (parts.next().flatten(), parts.next().flatten());
        let preemptible = match parts.next().flatten().as_deref() {
            Some(SPOT) => Some(true),
            Some(ON_DEMAND) => Some(false),
            Some(_) | None => None,
        };
        Self { shape, zone, preemptible }
    }
}

impl fmt::Display for PlaceChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |part: &Option<String>| part.clone().unwrap_or_default();
        let kind = match self.preemptible {
            Some(true) => SPOT,
            Some(false) => ON_DEMAND,
            None => "",
        };
        write!(f, "{}/{}/{kind}", text(&self.shape), text(&self.zone))
    }
}

impl Features {
    /// The places of a node, first choice first; none if it has only its own.
    #[must_use]
    pub fn places(&self) -> Vec<PlaceChoice> {
        let place = |number: usize| self.value(&format!("place{number}")).map(PlaceChoice::read);
        (1..).map_while(place).collect()
    }

    /// Whether a node's own machines are preemptible, if its line says so.
    #[must_use]
    pub fn preemptible(&self) -> Option<bool> {
        self.value(PREEMPTIBLE)?.parse().ok()
    }

    /// For how long only preemptible machines are tried, before others are.
    #[must_use]
    pub fn give_up_after(&self) -> Option<Duration> {
        self.value(GIVE_UP_AFTER)?.parse().ok().map(Duration::from_secs)
    }

    /// True if the machine of a node is stopped and kept when Slurm powers the node down.
    #[must_use]
    pub fn is_warm(&self) -> bool {
        self.has(WARM)
    }

    /// Adds what says where a node may go.
    pub fn push_places(
        &mut self,
        places: &[PlaceChoice],
        preemptible: Option<bool>,
        give_up_after: Option<Duration>,
    ) {
        for (number, place) in (1..).zip(places) {
            self.push(format!("place{number}={place}"));
        }
        if let Some(preemptible) = preemptible {
            self.push(format!("{PREEMPTIBLE}={preemptible}"));
        }
        if let Some(after) = give_up_after {
            self.push(format!("{GIVE_UP_AFTER}={}", after.as_secs()));
        }
    }
}
