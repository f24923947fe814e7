//! What machines have cost so far, and what may be spent.

use crate::site::{Place, Site};
use crate::state::State;
use crate::world::{Fleet, Roster, World};
use cloud_core::{Instance, InstanceState};
use history::cost::{self, Budget, BudgetState, Millis, PaidMachine, Price, Prices, Spending};
use history::{Life, Lives, millis};
use hostlist::NodeName;
use std::collections::BTreeSet;
use std::time::{Duration, SystemTime};

/// What may be spent, and what machines cost.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Allowance {
    /// How much may be spent.
    pub budget: Budget,
    /// What machines cost.
    pub prices: Prices,
}

impl Allowance {
    /// What a node costs in an hour in the dearest of its places; the shape that has no price, if one has none.
    pub(crate) fn dearest(&self, places: &[Place]) -> Result<Price, String> {
        let mut dearest = Price::default();
        for place in places {
            let shape = place.pool().shape;
            let price = self.prices.hour(shape.as_str());
            dearest = dearest.max(price.ok_or_else(|| shape.to_string())?);
        }
        Ok(dearest)
    }
}

/// The shape that slurm.conf gives a node, as prices know it.
fn shape_of(node: &NodeName, conf: &Roster<'_>, site: &Site) -> Option<String> {
    let places = site.places(conf.get(node)?)?;
    places.first().map(|place| place.pool().shape.to_string())
}

/// The machines that are paid for, from the log of events and from what the cloud lists.
///
/// A machine that the log has and a complete listing has not is gone: it ended when it was last heard of. One that is
/// listed and not in the log runs since the cloud says.
#[must_use]
pub fn machines(
    lives: &Lives,
    fleet: &Fleet,
    conf: &Roster<'_>,
    site: &Site,
    now: SystemTime,
) -> Vec<PaidMachine> {
    let at = millis(now);
    let is_paid = |instance: &&Instance| {
        let costs_nothing = [InstanceState::Terminating, InstanceState::Stopped];
        instance.state.is_live() && !costs_nothing.contains(&instance.state)
    };
    let listed: BTreeSet<&str> =
        fleet.instances().filter(is_paid).map(|it| it.id.as_str()).collect();
    let shape = |name: &str| {
        NodeName::new(name).ok().and_then(|node| shape_of(&node, conf, site)).map(ordinary)
    };
    let mut known = lives.clone();
    for life in known.lives.iter_mut().filter(|life| life.end.is_none()) {
        let instance = life.instance.as_deref();
        if fleet.is_complete() && instance.is_some_and(|id| !listed.contains(id)) {
            let at = last_heard(life);
            let how = history::Ending::Unseen;
            life.end = Some(history::End { at, how, reason: None, cause: None });
        }
    }
    let mut machines = cost::machines(&known, at, |_| 0, shape);
    let logged: BTreeSet<&str> =
        lives.lives.iter().filter_map(|life| life.instance.as_deref()).collect();
    let unlogged = fleet.instances().filter(is_paid).filter(|it| !logged.contains(it.id.as_str()));
    for instance in unlogged {
        let node = site.identity.node_of(instance);
        let known = node.as_ref().and_then(|node| shape_of(node, conf, site));
        let listed = instance.shape.as_ref().map(ToString::to_string);
        machines.push(PaidMachine {
            node: node.map(|node| node.to_string()).unwrap_or_default(),
            shape: known.or(listed).unwrap_or_default(),
            zone: instance.zone.as_ref().map(ToString::to_string),
            cpus: 0,
            from: instance.created.map_or(at, millis),
            until: at,
        });
    }
    machines
}

/// A life says by itself whether its machine may be taken away at any time.
fn ordinary(shape: String) -> String {
    shape.strip_suffix(" preemptible").map(str::to_owned).unwrap_or(shape)
}

/// The last moment that the log has of a life.
fn last_heard(life: &Life) -> Millis {
    let work = life.work.iter().flat_map(|work| [Some(work.from), work.to]);
    let moments = [life.asked, life.launched, life.running, life.up, life.registered];
    let moments = moments.into_iter().chain(work).flatten();
    moments.chain(life.rebuilt.iter().copied()).max().unwrap_or_default()
}

impl World<'_> {
    /// How the budget stands; none without one.
    #[must_use]
    pub(crate) fn budget_state(&self) -> Option<BudgetState> {
        let allowance = self.site.allowance.as_ref()?;
        allowance.budget.state(self.spending?, millis(self.now))
    }
}

/// How a budget stands, in a few words: `18.40 of 20.00 USD spent this day`.
#[must_use]
pub fn standing(state: &BudgetState, currency: &str) -> String {
    let BudgetState { spent, limit, period, .. } = state;
    format!("{spent} of {limit} {currency} spent this {period}")
}

/// When the next day or month begins.
#[must_use]
pub(crate) fn renewal(state: &BudgetState) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_millis(state.renewed)
}

/// What is spent by the log of events alone, if there is a budget.
#[must_use]
pub fn spent_by_log(
    state: &dyn State,
    conf: &Roster<'_>,
    site: &Site,
    now: SystemTime,
) -> Option<Spending> {
    let log = state.history().unwrap_or_default();
    spending(&Lives::of(&log.events), &Fleet::default(), conf, site, now)
}

/// What is spent, if there is a budget.
#[must_use]
pub(crate) fn spending(
    lives: &Lives,
    fleet: &Fleet,
    conf: &Roster<'_>,
    site: &Site,
    now: SystemTime,
) -> Option<Spending> {
    let allowance = site.allowance.as_ref()?;
    let machines = machines(lives, fleet, conf, site, now);
    Some(Spending::of(&machines, &allowance.prices, millis(now)))
}
