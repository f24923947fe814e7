//! Checks of the budget and of prices.

use super::Check;
use crate::budget::standing;
use crate::site::Site;
use history::cost::Spending;
use history::millis;
use slurmconf::NodeDef;
use std::collections::BTreeSet;
use std::time::SystemTime;

/// Checks the state of the budget, and that all shapes have a price.
pub(super) fn budget(
    site: &Site,
    nodes: &[NodeDef],
    spending: Option<Spending>,
    now: SystemTime,
) -> Vec<Check> {
    let Some(allowance) = &site.allowance else { return Vec::new() };
    let places = nodes.iter().filter(|def| def.is_cloud()).filter_map(|def| site.places(def));
    let unpriced: BTreeSet<String> =
        places.filter_map(|places| allowance.dearest(&places).err()).collect();
    let unpriced = unpriced.into_iter().map(|shape| {
        Check::fail(format!(
            "{shape} has no price, and is not started while there is a budget: add it to prices.yaml"
        ))
    });
    let state = allowance.budget.state(spending.unwrap_or_default(), millis(now));
    let state = state.map(|state| {
        let spent = standing(&state, &allowance.prices.currency);
        match (state.is_reached(), state.warns) {
            (true, _) => Check::warn(format!(
                "budget: {spent}; no machine is started before the next {}: raise budget, or see cost --by user",
                state.period
            )),
            (false, true) => Check::warn(format!("budget: {spent}; {} left", state.left)),
            (false, false) => Check::ok(format!("budget: {spent}")),
        }
    });
    unpriced.chain(state).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::Allowance;
    use crate::site::Identity;
    use history::cost::{Budget, Price, Prices};
    use slurmconf::Config;

    #[test]
    fn a_budget_is_shown_and_a_missing_price_fails() {
        let config = Config::parse(
            "NodeName=a State=CLOUD Features=shape=small\nNodeName=b State=CLOUD Features=shape=big\n",
        );
        let mut site = Site::new(Identity::by_name());
        let prices = Prices::read("p", "currency: USD\nshapes: {small: 1}\n").unwrap();
        let unit = |units: u64| Price::from_micros(units * 1_000_000);
        let limits = Budget { per_day: Some(unit(10)), ..Budget::default() };
        site.allowance = Some(Allowance { budget: limits, prices });
        let nodes = config.unwrap().nodes;
        let found = |spent: u64| {
            let day = unit(spent).amount();
            let spending = Some(Spending { day, month: day });
            let checks = budget(&site, &nodes, spending, SystemTime::UNIX_EPOCH);
            let line = |check: &Check| format!("{} {}", check.status.as_str(), check.text);
            checks.iter().map(line).collect::<Vec<_>>()
        };
        let missing = "fail big has no price, and is not started while there is a budget: add it to prices.yaml";
        assert_eq!(found(1), [missing, "ok budget: 1.00 of 10.00 USD spent this day"]);
        assert_eq!(found(9), [missing, "warn budget: 9.00 of 10.00 USD spent this day; 1.00 left"]);
        assert!(found(11)[1].contains("no machine is started before the next day"));
        site.allowance = None;
        assert_eq!(budget(&site, &nodes, None, SystemTime::UNIX_EPOCH), []);
    }
}
