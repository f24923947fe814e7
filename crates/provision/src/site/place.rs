//! Where an instance may be launched, and what shares a supply of machines.

use cloud_core::{ShapeName, SubnetId, Zone};
use std::fmt;
use std::time::Duration;

/// What shares one supply of machines, and cools down together.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pool {
    /// The shape, with its size if it leaves that open, and with a word if it is preemptible.
    pub shape: ShapeName,
    /// The zone.
    pub zone: Option<Zone>,
}

impl Pool {
    /// The pool as the log of events has it: whether it is preemptible is a word of its shape.
    #[must_use]
    pub(crate) fn recorded(&self) -> history::RecordedPlace {
        let shape = Some(self.shape.to_string());
        let zone = self.zone.as_ref().map(ToString::to_string);
        history::RecordedPlace { shape, zone, preemptible: false }
    }
}

impl fmt::Display for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.shape.fmt(f)?;
        self.zone.as_ref().map_or(Ok(()), |zone| write!(f, " in {zone}"))
    }
}

/// Where an instance may be launched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The shape, with its size if it leaves that open.
    pub shape: ShapeName,
    /// The zone; the cloud chooses if none is given.
    pub zone: Option<Zone>,
    /// The network; the provider's configuration chooses if none is given.
    pub subnet: Option<SubnetId>,
    /// May be taken away at any time.
    pub preemptible: bool,
    /// It is tried only after a preemptible pool has refused machines for some time.
    pub patience: Option<Patience>,
}

/// For how long a pool has to have refused machines before another place is tried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Patience {
    /// The pool that is waited for.
    pub pool: Pool,
    /// For how long.
    pub after: Duration,
}

impl Place {
    /// A place of which only the shape is given.
    #[must_use]
    pub(crate) fn new(shape: &str) -> Self {
        Self {
            shape: ShapeName::new(shape),
            zone: None,
            subnet: None,
            preemptible: false,
            patience: None,
        }
    }

    /// The pool it draws from: what may be taken away at any time has a supply and a quota of its own.
    #[must_use]
    pub(crate) fn pool(&self) -> Pool {
        let kind = if self.preemptible { " preemptible" } else { "" };
        let shape = ShapeName::new(format!("{}{kind}", self.shape));
        Pool { shape, zone: self.zone.clone() }
    }

    /// The place as the log of events has it.
    #[must_use]
    pub(crate) fn recorded(&self) -> history::RecordedPlace {
        history::RecordedPlace {
            shape: Some(self.shape.to_string()),
            zone: self.zone.as_ref().map(ToString::to_string),
            preemptible: self.preemptible,
        }
    }
}

/// The places with patience: what is not preemptible waits until a preemptible pool has refused machines for this long. A
/// preemptible place that has no such counterpart gets one at the end.
pub(super) fn with_patience(places: Vec<Place>, after: Duration) -> Vec<Place> {
    let spot: Vec<Place> = places.iter().filter(|place| place.preemptible).cloned().collect();
    let Some(first) = spot.first() else { return places };
    let waits = |pool: Pool| Some(Patience { pool, after });
    let patient = |place: Place| {
        let same = spot.iter().find(|other| is_counterpart(other, &place)).unwrap_or(first);
        Place { patience: waits(same.pool()), ..place }
    };
    let is_spot = |place: &Place| place.preemptible;
    let mut all: Vec<Place> = places
        .into_iter()
        .map(|place| if is_spot(&place) { place } else { patient(place) })
        .collect();
    for place in spot {
        if !all.iter().any(|other| !other.preemptible && is_counterpart(other, &place)) {
            let patience = waits(place.pool());
            all.push(Place { preemptible: false, patience, ..place });
        }
    }
    all
}

/// True if two places differ in whether they are preemptible alone.
fn is_counterpart(one: &Place, other: &Place) -> bool {
    (&one.shape, &one.zone, &one.subnet) == (&other.shape, &other.zone, &other.subnet)
}
