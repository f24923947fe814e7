//! The cloud's other side: faults, capacity, limits, clock and records.

use crate::clock::{Change, Speed};
use crate::error::Error;
use crate::fault::Rule;
use crate::instance::Instance;
use crate::limits;
use crate::record::Recorded;
use crate::settings::{Capacity, Limit};
use crate::shared::{Shared, lock};
use crate::state::State;
use crate::throttle::{Buckets, Throttle};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What a machine is told by its metadata service.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Notice {
    /// It is about to be taken away: its state is seen to be TERMINATING from inside, while it still runs.
    pub preemption: bool,
    /// When it is going to be rebooted for maintenance, as in RFC 3339.
    pub maintenance: Option<String>,
}

/// Sets and reads what clients cannot.
#[derive(Clone, Debug)]
pub struct Admin {
    pub(crate) shared: Arc<Shared>,
}

impl Admin {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self { shared }
    }

    /// Adds a fault rule and gives its number; refuses one that could never happen.
    pub fn add_fault(&self, rule: Rule) -> Result<u64, Error> {
        rule.check()?;
        Ok(lock(&self.shared.faults).add(rule))
    }

    /// Takes every fault rule away.
    pub fn clear_faults(&self) {
        lock(&self.shared.faults).clear();
    }

    /// The rules in force, by number.
    #[must_use]
    pub fn faults(&self) -> Vec<(u64, Rule)> {
        lock(&self.shared.faults).list().to_vec()
    }

    /// Sets how many instances fit; replaces all earlier settings.
    pub fn set_capacity(&self, capacity: Vec<Capacity>) -> Result<(), Error> {
        self.shared.with(|world| {
            world.settings.check_capacity(&capacity)?;
            world.capacity = capacity;
            Ok(())
        })
    }

    /// Sets one service limit.
    pub fn set_limit(&self, limit: Limit) -> Result<(), Error> {
        self.shared.with(|world| {
            world.settings.check_limit(&limit)?;
            limits::set(&mut world.limits, limit);
            Ok(())
        })
    }

    /// Sets the service limits; replaces all earlier ones.
    pub fn set_limits(&self, limits: Vec<Limit>) -> Result<(), Error> {
        self.shared.with(|world| {
            limits.iter().try_for_each(|limit| world.settings.check_limit(limit))?;
            world.limits = limits;
            Ok(())
        })
    }

    /// Sets how many requests are accepted; replaces all earlier settings.
    pub fn set_throttle(&self, throttle: Vec<Throttle>) -> Result<(), Error> {
        throttle.iter().try_for_each(Throttle::check)?;
        *lock(&self.shared.buckets) = Buckets::new(throttle);
        Ok(())
    }

    /// Delays every response; the work itself is done at once.
    pub fn set_latency(&self, latency: Duration) {
        *lock(&self.shared.latency) = latency;
    }

    /// Sets how many times as fast as ours the cloud's clock runs; zero stops it.
    pub fn set_speed(&self, speed: f64) -> Result<(), Error> {
        let speed = Some(Speed::new(speed)?);
        self.set_clock(Change { speed, ..Change::default() })
    }

    /// Moves the cloud's clock forward; what was due until then happens at once.
    pub fn advance(&self, by: Duration) -> Result<(), Error> {
        self.set_clock(Change { advance: Some(by), ..Change::default() })
    }

    /// Puts the clock that dates are checked against this many seconds off.
    pub fn set_skew(&self, seconds: i64) -> Result<(), Error> {
        self.set_clock(Change { skew: Some(seconds), ..Change::default() })
    }

    pub(crate) fn set_clock(&self, change: Change) -> Result<(), Error> {
        self.shared.with(|world| {
            world.clock.change(change, Instant::now())?;
            world.catch_up();
            world.wake();
            Ok(())
        })
    }

    /// The newest requests, oldest first.
    #[must_use]
    pub fn requests(&self) -> Vec<Recorded> {
        lock(&self.shared.records).after(0)
    }

    /// How many requests there were of each operation.
    #[must_use]
    pub fn counts(&self) -> BTreeMap<String, u64> {
        lock(&self.shared.records).counts().clone()
    }

    /// The most requests that were under way at a time.
    #[must_use]
    pub fn most_in_flight(&self) -> u64 {
        lock(&self.shared.records).most_in_flight()
    }

    /// How many requests had a token that was used before with another request.
    #[must_use]
    pub fn token_mismatches(&self) -> u64 {
        self.shared.with(|world| world.token_mismatches)
    }

    /// Forgets the requests and their counts.
    pub fn clear_requests(&self) {
        lock(&self.shared.records).clear();
    }

    /// Every instance there is, in the order of launch.
    #[must_use]
    pub fn instances(&self) -> Vec<Instance> {
        self.shared.with(|world| {
            let mut records: Vec<_> = world.instances.values().collect();
            records.sort_by_key(|record| record.number);
            records.into_iter().map(|record| record.instance.clone()).collect()
        })
    }

    /// How often an instance has booted.
    #[must_use]
    pub fn boots(&self, id: &str) -> Option<u64> {
        self.shared.with(|world| Some(world.instances.get(id)?.boots))
    }

    /// The address that an instance has or will have.
    #[must_use]
    pub fn address(&self, id: &str) -> Option<Ipv4Addr> {
        self.shared.with(|world| Some(world.instances.get(id)?.vnic.address))
    }

    /// Puts an instance into a state, as if by another's hand, and leaves it there. One that is
    /// TERMINATED stays so.
    pub fn set_state(&self, id: &str, state: State) -> Result<(), Error> {
        self.shared.with(|world| world.force(id, state))
    }

    /// Announces something to an instance, by its metadata service; replaces what was announced before. What is
    /// announced does not happen by itself.
    pub fn announce(&self, id: &str, notice: &Notice) -> Result<(), Error> {
        self.shared.with(|world| {
            let record = world.instances.get_mut(id);
            let record = record.ok_or_else(|| Error::NoInstance { id: id.to_owned() })?;
            record.preempted = notice.preemption;
            record.instance.time_maintenance_reboot_due.clone_from(&notice.maintenance);
            Ok(())
        })
    }

    /// Lets the machines end at once when the cloud does, or while it does: what runs there is killed,
    /// and the program for the end is not waited for, nor begun.
    pub fn hurry(&self) {
        self.shared.hurry.send_replace(true);
    }

    /// Ends every session; the next request with a session token is refused.
    #[expect(clippy::must_use_candidate, reason = "how many there were matters to few")]
    pub fn end_sessions(&self) -> usize {
        lock(&self.shared.federation).end_sessions()
    }

    /// Sets how long new session tokens are valid.
    pub fn set_session_lifetime(&self, lifetime: Duration) -> Result<(), Error> {
        lock(&self.shared.federation).set_lifetime(lifetime)
    }
}
