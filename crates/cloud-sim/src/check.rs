//! Whether rules and bounds can have an effect: a misspelt one would make a test pass for nothing.

use crate::clock::Speed;
use crate::error::Error;
use crate::fault::{Fault, Rule};
use crate::route::{WORKING, is_operation};
use crate::settings::{Capacity, Limit, Settings};
use crate::throttle::Throttle;
use hyper::StatusCode;

/// Says what is wrong with what, if anything is.
fn refuse(what: &'static str, wrong: bool, why: impl FnOnce() -> String) -> Result<(), Error> {
    if wrong { Err(Error::NoEffect { what, why: why() }) } else { Ok(()) }
}

fn check_operation(what: &'static str, name: &str) -> Result<(), Error> {
    refuse(what, name != "*" && !is_operation(name), || {
        format!("there is no operation {name}; `*` is for all of them")
    })
}

impl Settings {
    /// Refuses what cannot be, and what could never have an effect.
    pub(crate) fn check(&self) -> Result<(), Error> {
        Speed::new(self.speed)?;
        self.faults.iter().try_for_each(Rule::check)?;
        self.throttle.iter().try_for_each(Throttle::check)?;
        self.check_capacity(&self.capacity)?;
        self.limits.iter().try_for_each(|limit| self.check_limit(limit))
    }

    /// Refuses room where, or for what, there can be no instance.
    pub(crate) fn check_capacity(&self, capacity: &[Capacity]) -> Result<(), Error> {
        capacity.iter().try_for_each(|capacity| {
            self.check_place("capacity", capacity.availability_domain.as_deref())?;
            let shape = capacity.shape.as_deref();
            let known = |name: &str| self.shapes.iter().any(|shape| shape.name == name);
            refuse("capacity", shape.is_some_and(|name| !known(name)), || {
                let known: Vec<&str> =
                    self.shapes.iter().map(|shape| shape.name.as_str()).collect();
                format!("there is no shape {}, only {}", shape.unwrap_or(""), known.join(", "))
            })
        })
    }

    /// Refuses a limit where there can be no instance. Any name will do: the cloud also has limits
    /// that no shape counts against.
    pub(crate) fn check_limit(&self, limit: &Limit) -> Result<(), Error> {
        self.check_place("limit", limit.availability_domain.as_deref())
    }

    fn check_place(&self, what: &'static str, place: Option<&str>) -> Result<(), Error> {
        let known = |name: &str| self.availability_domains.iter().any(|domain| domain == name);
        refuse(what, place.is_some_and(|name| !known(name)), || {
            let known = self.availability_domains.join(", ");
            format!("there is no availability domain {}, only {known}", place.unwrap_or(""))
        })
    }
}

impl Rule {
    pub(crate) fn check(&self) -> Result<(), Error> {
        let what = "fault rule";
        check_operation(what, &self.operation)?;
        refuse(what, !(0.0..=1.0).contains(&self.probability), || {
            format!("probability {} is not from 0 to 1", self.probability)
        })?;
        match &self.fault {
            Fault::Answer { status, .. } => {
                refuse(what, StatusCode::from_u16(*status).is_err(), || {
                    format!("{status} is no status of HTTP")
                })
            }
            Fault::FailLater { .. } => {
                let works = self.operation == "*" || WORKING.contains(&self.operation.as_str());
                refuse(what, !works, || {
                    let Self { operation, .. } = self;
                    format!("{operation} does not fail later, only {}", WORKING.join(", "))
                })
            }
            Fault::DropBefore | Fault::DropAfter | Fault::Delay { .. } => Ok(()),
        }
    }
}

impl Throttle {
    pub(crate) fn check(&self) -> Result<(), Error> {
        let what = "throttle";
        check_operation(what, &self.operation)?;
        let wrong = |number: f64| !number.is_finite() || number < 0.0;
        refuse(what, wrong(self.per_second) || wrong(self.burst), || {
            let Self { per_second, burst, .. } = self;
            format!("per_second {per_second} and burst {burst} have to be numbers from 0 on")
        })
    }
}
