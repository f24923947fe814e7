//! Cool-downs of pools that refused a launch and of nodes that never came up.

use crate::cause::Cause;
use crate::site::{Patience, Place, Pool};
use crate::time::{Utc, is_ahead};
use hostlist::NodeName;
use std::collections::BTreeMap;
use std::fmt;
use std::time::{Duration, SystemTime};

/// The longest that a probe keeps others from trying the same pool.
///
/// A process that dies in the middle of its probe must not close the pool for good.
const PROBE: Duration = Duration::from_mins(5);

/// How long after its cool-down a pool is still taken to refuse machines, if nobody tries it.
const MEMORY: Duration = Duration::from_mins(15);

/// All cool-downs. Planners read them, and the state directory stores them.
///
/// This is a circuit breaker for each pool: a refused launch closes the pool until its time is over. Then it is half open, and
/// one launch at a time may probe it. A launch that succeeds opens it, one that fails closes it again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cooldowns {
    pools: BTreeMap<Pool, Cooldown>,
    nodes: BTreeMap<NodeName, Cooldown>,
    /// When a pool last yielded a machine that failed its health check.
    bad: BTreeMap<Pool, SystemTime>,
}

/// One pool or node that cools down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cooldown {
    /// Why.
    pub cause: Cause,
    /// Since when.
    pub opened: SystemTime,
    /// Until when.
    pub until: SystemTime,
    /// Until when the launch that tries it now may take, if one does.
    pub probed: Option<SystemTime>,
    /// Since when it has refused everything.
    pub since: SystemTime,
}

/// Whether a launch may use a pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Gate {
    /// Launch.
    Open,
    /// One launch may probe it.
    Probe,
    /// Not now.
    Cooling(Cooldown),
}

impl Cooldown {
    /// From when on it may be tried again; a probe under way counts as cooling.
    #[must_use]
    pub(crate) fn ends(&self) -> SystemTime {
        self.probed.map_or(self.until, |end| self.until.max(end))
    }

    /// True while it may not be tried; what was opened by a clock that was ahead is over.
    #[must_use]
    pub(crate) fn lasts(&self, now: SystemTime) -> bool {
        let pause = now < self.until && !is_ahead(self.opened, now);
        let begun = |end: SystemTime| end.checked_sub(PROBE);
        let probe = self.probed.filter(|end| begun(*end).is_none_or(|begun| !is_ahead(begun, now)));
        pause || probe.is_some_and(|end| now < end)
    }

    /// True while the pool is taken to refuse machines: one that was not tried for long after its cool-down may have some
    /// again, and what a clock that was ahead has written says nothing.
    fn counts(&self, now: SystemTime) -> bool {
        let pause = self.until.duration_since(self.opened).unwrap_or_default();
        let forgotten = self.until.checked_add(pause.max(MEMORY));
        forgotten.is_none_or(|end| now < end) && !is_ahead(self.since, now)
    }
}

impl fmt::Display for Cooldown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, next try after {}", self.cause.words(), Utc(self.ends()))
    }
}

impl Cooldowns {
    /// Creates it without cool-downs.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether a launch may try the pool.
    #[must_use]
    pub(crate) fn gate(&self, pool: &Pool, now: SystemTime) -> Gate {
        match self.pools.get(pool) {
            None => Gate::Open,
            Some(entry) if entry.lasts(now) => Gate::Cooling(entry.clone()),
            Some(_) => Gate::Probe,
        }
    }

    /// Whether a launch may try the place: a preemptible pool may have to refuse machines for some time before.
    #[must_use]
    pub(crate) fn gate_of(&self, place: &Place, now: SystemTime) -> Gate {
        let waits = place.patience.as_ref().and_then(|patience| self.waits(patience, now));
        waits.map_or_else(|| self.gate(&place.pool(), now), Gate::Cooling)
    }

    /// What is waited for by a place with patience, if it still is.
    fn waits(&self, patience: &Patience, now: SystemTime) -> Option<Cooldown> {
        let Some(known) = self.pools.get(&patience.pool).filter(|known| known.counts(now)) else {
            // It has refused nothing: it is its turn.
            return Some(cooling(Cause::Capacity, now, patience.after));
        };
        let until = known.since.checked_add(patience.after).unwrap_or(known.since);
        (now < until).then(|| Cooldown {
            opened: known.since,
            until,
            probed: None,
            ..known.clone()
        })
    }

    /// Closes a pool that refused a launch, for this long from now on.
    pub fn close(&mut self, pool: Pool, cause: Cause, now: SystemTime, pause: Duration) {
        let mut entry = cooling(cause, now, pause);
        let known = self.pools.get(&pool).filter(|known| known.counts(now));
        entry.since = known.map_or(now, |known| known.since);
        self.pools.insert(pool, entry);
    }

    /// Notes that a launch tries the pool from now on, by a run that has this long for it. The
    /// outcome may never be recorded: the run may die, or not be able to store it.
    pub fn probe(&mut self, pool: &Pool, now: SystemTime, patience: Duration) {
        if let Some(entry) = self.pools.get_mut(pool) {
            entry.probed = now.checked_add(patience.min(PROBE));
        }
    }

    /// Ends a probe without a result; the next launch may probe.
    pub(crate) fn end_probe(&mut self, pool: &Pool) {
        if let Some(entry) = self.pools.get_mut(pool) {
            entry.probed = None;
        }
    }

    /// Opens a pool that accepted a launch.
    pub(crate) fn open(&mut self, pool: &Pool) {
        self.pools.remove(pool);
    }

    /// Notes that a pool has yielded a machine that failed its health check.
    pub fn note_bad(&mut self, pool: Pool, now: SystemTime) {
        self.bad.insert(pool, now);
    }

    /// When the pool last yielded a machine that failed its health check.
    #[must_use]
    pub(crate) fn last_bad(&self, pool: &Pool) -> Option<SystemTime> {
        self.bad.get(pool).copied()
    }

    /// Every pool that has yielded such a machine, in order.
    pub(crate) fn bad(&self) -> impl Iterator<Item = (&Pool, SystemTime)> {
        self.bad.iter().map(|(pool, at)| (pool, *at))
    }

    /// Keeps a node out of service for this long from now on.
    pub fn rest(&mut self, node: NodeName, cause: Cause, now: SystemTime, pause: Duration) {
        self.nodes.insert(node, cooling(cause, now, pause));
    }

    /// The rest that a node takes, over or not; it is there until [`wake`](Self::wake).
    #[must_use]
    pub(crate) fn resting(&self, node: &NodeName) -> Option<&Cooldown> {
        self.nodes.get(node)
    }

    /// Forgets the rest of a node that is back in service.
    pub(crate) fn wake(&mut self, node: &NodeName) {
        self.nodes.remove(node);
    }

    /// The pools, in order.
    pub(crate) fn pools(&self) -> impl Iterator<Item = (&Pool, &Cooldown)> {
        self.pools.iter()
    }

    /// The nodes, in order.
    pub(crate) fn nodes(&self) -> impl Iterator<Item = (&NodeName, &Cooldown)> {
        self.nodes.iter()
    }

    /// Restores a stored pool.
    pub(crate) fn restore_pool(&mut self, pool: Pool, entry: Cooldown) {
        self.pools.insert(pool, entry);
    }

    /// Restores a stored node.
    pub(crate) fn restore_node(&mut self, node: NodeName, entry: Cooldown) {
        self.nodes.insert(node, entry);
    }
}

fn cooling(cause: Cause, now: SystemTime, pause: Duration) -> Cooldown {
    let until = now.checked_add(pause).unwrap_or(now);
    Cooldown { cause, opened: now, until, probed: None, since: now }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cloud_core::{ShapeName, Zone};
    use std::time::UNIX_EPOCH;

    fn pool(zone: &str) -> Pool {
        Pool { shape: ShapeName::new("a"), zone: Some(Zone::new(zone)) }
    }

    fn at(seconds: u64) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(seconds)
    }

    #[test]
    fn a_closed_pool_is_probed_by_one_launch_and_opens_with_it() {
        let mut all = Cooldowns::new();
        all.close(pool("1"), Cause::Capacity, at(0), Duration::from_mins(10));
        assert!(matches!(all.gate(&pool("1"), at(599)), Gate::Cooling(_)));
        assert_eq!(all.gate(&pool("1"), at(600)), Gate::Probe);
        all.probe(&pool("1"), at(600), Duration::from_mins(2));
        assert!(matches!(all.gate(&pool("1"), at(660)), Gate::Cooling(_)));
        all.open(&pool("1"));
        assert_eq!(all.gate(&pool("1"), at(660)), Gate::Open);
    }

    #[test]
    fn a_pool_cools_alone() {
        let mut all = Cooldowns::new();
        all.close(pool("1"), Cause::Quota, at(0), Duration::from_mins(1));
        assert_eq!(all.gate(&pool("2"), at(0)), Gate::Open);
        assert!(
            matches!(all.gate(&pool("1"), at(59)), Gate::Cooling(entry) if entry.until == at(60))
        );
    }

    #[test]
    fn a_probe_that_died_does_not_close_the_pool_for_good() {
        let mut all = Cooldowns::new();
        all.close(pool("1"), Cause::Capacity, at(0), Duration::from_mins(1));
        all.probe(&pool("1"), at(100), Duration::MAX);
        assert!(matches!(all.gate(&pool("1"), at(399)), Gate::Cooling(_)));
        assert_eq!(all.gate(&pool("1"), at(400)), Gate::Probe);
    }

    #[test]
    fn a_probe_ends_with_the_time_of_its_run() {
        let mut all = Cooldowns::new();
        all.close(pool("1"), Cause::Capacity, at(0), Duration::from_secs(2));
        all.probe(&pool("1"), at(100), Duration::from_secs(15));
        assert!(
            matches!(all.gate(&pool("1"), at(114)), Gate::Cooling(entry) if entry.ends() == at(115))
        );
        assert_eq!(all.gate(&pool("1"), at(115)), Gate::Probe);
    }

    #[test]
    fn a_probe_that_fails_closes_the_pool_again() {
        let mut all = Cooldowns::new();
        all.close(pool("1"), Cause::Capacity, at(0), Duration::from_mins(1));
        all.probe(&pool("1"), at(60), PROBE);
        all.close(pool("1"), Cause::Capacity, at(61), Duration::from_mins(1));
        assert!(
            matches!(all.gate(&pool("1"), at(120)), Gate::Cooling(entry) if entry.probed.is_none())
        );
        assert_eq!(all.gate(&pool("1"), at(121)), Gate::Probe);
    }

    #[test]
    fn a_clock_that_was_ahead_does_not_close_the_pool_for_years() {
        let year = 365 * 86_400;
        let mut all = Cooldowns::new();
        all.close(pool("1"), Cause::Capacity, at(year), Duration::from_mins(1));
        assert_eq!(all.gate(&pool("1"), at(0)), Gate::Probe);
        all.close(pool("1"), Cause::Capacity, at(0), Duration::from_mins(1));
        all.probe(&pool("1"), at(year), PROBE);
        assert_eq!(all.gate(&pool("1"), at(61)), Gate::Probe);
        all.close(pool("1"), Cause::Capacity, at(30), Duration::from_mins(1));
        assert!(matches!(all.gate(&pool("1"), at(0)), Gate::Cooling(_)), "clocks are never equal");
    }

    #[test]
    fn a_place_with_patience_waits_again_for_a_pool_that_was_not_tried_for_long() {
        let minutes = |number: u64| at(60 * number);
        let patience = Patience { pool: pool("1"), after: Duration::from_mins(10) };
        let place = Place { patience: Some(patience), ..Place::new("b") };
        let waits = |all: &Cooldowns, now| matches!(all.gate_of(&place, now), Gate::Cooling(_));
        let mut all = Cooldowns::new();
        assert!(waits(&all, minutes(0)), "nothing was refused");
        all.close(pool("1"), Cause::Capacity, minutes(0), Duration::from_mins(2));
        assert!(waits(&all, minutes(9)));
        assert_eq!(all.gate_of(&place, minutes(10)), Gate::Open);
        all.close(pool("1"), Cause::Capacity, minutes(12), Duration::from_mins(2));
        assert_eq!(all.gate_of(&place, minutes(28)), Gate::Open, "it has refused all along");
        assert!(waits(&all, minutes(29)), "a quarter of an hour after its last cool-down");
        all.close(pool("1"), Cause::Capacity, minutes(30), Duration::from_mins(2));
        assert!(waits(&all, minutes(39)), "it has refused for nine minutes");
    }

    #[test]
    fn a_probe_of_an_open_pool_closes_nothing() {
        let mut all = Cooldowns::new();
        all.probe(&pool("1"), at(0), PROBE);
        assert_eq!(all.gate(&pool("1"), at(0)), Gate::Open);
    }
}
