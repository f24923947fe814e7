//! Whether rules and bounds can have an effect: a misspelt one would make a test pass for nothing.

use crate::clock::Speed;
use crate::error::Error;
use crate::fault::{Fault, Rule};
use crate::route;
use crate::settings::{Capacity, CloudSettings, Limit, default_limits};
use crate::throttle::Throttle;
use hyper::StatusCode;
use hyper::header::{HeaderName, HeaderValue};
use std::collections::BTreeSet;

/// Describes what is wrong with a value, if anything is.
fn refuse(what: &'static str, wrong: bool, why: impl FnOnce() -> String) -> Result<(), Error> {
    if wrong { Err(Error::NoEffect { what, why: why() }) } else { Ok(()) }
}

/// What rules and bounds can be about.
pub(crate) struct Api {
    pub(crate) is_operation: fn(&str) -> bool,
    /// The operations that can fail after they were accepted.
    pub(crate) fail_later: &'static [&'static str],
}

const OCI: Api = Api { is_operation: route::is_operation, fail_later: &route::WORKING };

fn check_operation(what: &'static str, name: &str, api: &Api) -> Result<(), Error> {
    refuse(what, name != "*" && !(api.is_operation)(name), || {
        format!("there is no operation {name}; `*` is for all of them")
    })
}

/// Refuses what cannot end a request: below 200 the answer is still to come.
fn check_status(what: &'static str, status: u16) -> Result<(), Error> {
    let right = StatusCode::from_u16(status).is_ok_and(|status| !status.is_informational());
    refuse(what, !right, || format!("{status} is no status of an answer"))
}

/// What is written by the cloud itself: another length or form would not be that of the body.
const OWN: [&str; 3] = ["content-length", "content-type", "transfer-encoding"];

fn check_header(what: &'static str, name: &str, value: &str) -> Result<(), Error> {
    let known = HeaderName::try_from(name).is_ok() && HeaderValue::try_from(value).is_ok();
    refuse(what, !known, || format!("`{name}: {value}` is no header of HTTP"))?;
    let own = OWN.iter().any(|own| own.eq_ignore_ascii_case(name));
    refuse(what, own, || format!("{name} is not a rule's to say"))
}

impl CloudSettings {
    /// Refuses what cannot be, and what could never have an effect.
    pub(crate) fn check(&self) -> Result<(), Error> {
        Speed::new(self.speed)?;
        self.faults.iter().try_for_each(Rule::check)?;
        self.throttle.iter().try_for_each(Throttle::check)?;
        self.check_capacity(&self.capacity)?;
        self.limits.iter().try_for_each(|limit| self.check_limit(limit))?;
        check_status("token_mismatch", self.token_mismatch.status)
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

    /// Refuses a limit where there can be no instance, or that none counts against. Those of the
    /// default are there also where a script has other shapes.
    pub(crate) fn check_limit(&self, limit: &Limit) -> Result<(), Error> {
        self.check_place("limit", limit.availability_domain.as_deref())?;
        let usual = default_limits();
        let usual = usual.iter().map(|limit| limit.name.as_str());
        let of_shapes = self.shapes.iter().flat_map(|shape| &shape.limits).map(String::as_str);
        let known: BTreeSet<&str> = of_shapes.chain(usual).collect();
        refuse("limit", !known.contains(limit.name.as_str()), || {
            let known: Vec<&str> = known.iter().copied().collect();
            format!("no shape counts against {}, only against {}", limit.name, known.join(", "))
        })
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
        self.check_for(&OCI)
    }

    pub(crate) fn check_for(&self, api: &Api) -> Result<(), Error> {
        let what = "fault rule";
        check_operation(what, &self.operation, api)?;
        let likely = self.probability > 0.0 && self.probability <= 1.0;
        refuse(what, !likely, || {
            format!("probability {} is not above 0 and up to 1", self.probability)
        })?;
        refuse(what, self.count == Some(0), || "count 0 is never".to_owned())?;
        match &self.fault {
            Fault::Answer { status, headers, .. } => {
                check_status(what, *status)?;
                headers.iter().try_for_each(|(name, value)| check_header(what, name, value))
            }
            Fault::Delay { millis } => {
                refuse(what, *millis == 0, || "a delay of 0 is none".to_owned())
            }
            Fault::FailLater { .. } => {
                let any = self.operation == "*" && !api.fail_later.is_empty();
                let works = any || api.fail_later.contains(&self.operation.as_str());
                refuse(what, !works, || {
                    let Self { operation, .. } = self;
                    format!("{operation} does not fail later, only {}", api.fail_later.join(", "))
                })
            }
            Fault::DropBefore | Fault::DropAfter => Ok(()),
        }
    }
}

impl Throttle {
    pub(crate) fn check(&self) -> Result<(), Error> {
        self.check_for(&OCI)
    }

    pub(crate) fn check_for(&self, api: &Api) -> Result<(), Error> {
        let what = "throttle";
        check_operation(what, &self.operation, api)?;
        let wrong = |number: f64| !number.is_finite() || number < 0.0;
        refuse(what, wrong(self.per_second) || wrong(self.burst), || {
            let Self { per_second, burst, .. } = self;
            format!("per_second {per_second} and burst {burst} have to be numbers from 0 on")
        })
    }
}
