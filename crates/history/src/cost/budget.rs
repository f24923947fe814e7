//! Budgets and their state.

use super::attribute::PaidMachine;
use super::calendar::{Millis, day_start, month_start, next_day, next_month};
use super::money::{Cost, Price};
use super::prices::Prices;
use std::fmt;
use std::ops::Range;

/// Minimum time to count for a running machine, so that machines that several programs launch at once are not all counted
/// as free.
const AT_LEAST: Millis = 3_600_000;

/// Default percentage of a limit at which to warn.
const WARN_AT: u64 = 80;

/// A budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Limit for a day, in UTC.
    pub per_day: Option<Price>,
    /// Limit for a month, in UTC.
    pub per_month: Option<Price>,
    /// Percentage of a limit at which to warn.
    pub warn_at: u64,
}

impl Default for Budget {
    fn default() -> Self {
        Self { per_day: None, per_month: None, warn_at: WARN_AT }
    }
}

/// The period of a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Period {
    /// A day.
    Day,
    /// A month.
    Month,
}

impl Period {
    /// The start and end of the period around a moment.
    #[must_use]
    pub fn around(self, now: Millis) -> Range<Millis> {
        match self {
            Self::Day => day_start(now)..next_day(now),
            Self::Month => month_start(now)..next_month(now),
        }
    }
}

impl fmt::Display for Period {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Day => "day",
            Self::Month => "month",
        })
    }
}

/// The costs of this day and this month, with at least an hour for each running machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spending {
    /// Today.
    pub day: Cost,
    /// This month.
    pub month: Cost,
}

impl Spending {
    /// Computes the costs of these machines until now. A machine whose end is not before `now` is running.
    ///
    /// A shape without a price costs nothing here; the planner does not start such machines.
    #[must_use]
    pub fn of(machines: &[PaidMachine], prices: &Prices, now: Millis) -> Self {
        let in_period = |period: Period| {
            let window = period.around(now);
            let cost = |machine: &PaidMachine| {
                let price = prices.hour(&machine.shape)?;
                let mut paid = machine.paid(&(window.start..now.max(window.start)));
                if machine.until >= now {
                    paid.end = paid.end.max(paid.start.saturating_add(AT_LEAST)).min(window.end);
                }
                Some(price.during(paid.end.saturating_sub(paid.start)))
            };
            machines.iter().filter_map(cost).sum()
        };
        Self { day: in_period(Period::Day), month: in_period(Period::Month) }
    }

    /// The amount that a machine launched now adds.
    #[must_use]
    pub fn of_launch(price: Price, now: Millis) -> Self {
        let first = |period: Period| price.during((period.around(now).end - now).min(AT_LEAST));
        Self { day: first(Period::Day), month: first(Period::Month) }
    }

    /// Adds two sums.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self { day: self.day + other.day, month: self.month + other.month }
    }

    fn in_period(self, period: Period) -> Cost {
        match period {
            Period::Day => self.day,
            Period::Month => self.month,
        }
    }
}

/// The state of a budget: the limit, for the day or for the month, of which less is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BudgetState {
    /// The period of the limit.
    pub period: Period,
    /// The limit.
    pub limit: Price,
    /// The amount spent.
    pub spent: Cost,
    /// The amount left.
    pub left: Cost,
    /// True if the warning percentage is reached.
    pub warns: bool,
    /// The start of the next period.
    pub renewed: Millis,
}

impl BudgetState {
    /// True if nothing is left, so that no machine is started.
    #[must_use]
    pub fn is_reached(&self) -> bool {
        self.left == Cost::ZERO
    }
}

impl Budget {
    fn limits(&self) -> impl Iterator<Item = (Period, Price)> {
        let day = self.per_day.map(|limit| (Period::Day, limit));
        let month = self.per_month.map(|limit| (Period::Month, limit));
        day.into_iter().chain(month)
    }

    /// The state of the budget after this spending; none if it has no limit.
    #[must_use]
    pub fn state(&self, spending: Spending, now: Millis) -> Option<BudgetState> {
        let state = |(period, limit): (Period, Price)| {
            let (spent, whole) = (spending.in_period(period), limit.amount());
            BudgetState {
                period,
                limit,
                spent,
                left: whole.less(spent),
                warns: spent >= whole.percent(self.warn_at),
                renewed: period.around(now).end,
            }
        };
        self.limits().map(state).min_by_key(|state| state.left)
    }

    /// The first limit that this spending exceeds.
    #[must_use]
    pub fn exceeded(&self, spending: Spending) -> Option<(Period, Price)> {
        self.limits().find(|(period, limit)| spending.in_period(*period) > limit.amount())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Millis = 3_600_000;
    const DAY: Millis = 24 * HOUR;

    fn machine(from: Millis, until: Millis) -> PaidMachine {
        let (node, shape) = ("n1".to_owned(), "a".to_owned());
        PaidMachine { node, shape, zone: None, cpus: 1, from, until }
    }

    fn spent(machines: &[PaidMachine], now: Millis) -> (String, String) {
        let prices = Prices::read("p", "currency: USD\nshapes: {a: 1}\n").unwrap();
        let spending = Spending::of(machines, &prices, now);
        (spending.day.to_string(), spending.month.to_string())
    }

    #[test]
    fn a_machine_counts_from_its_launch_in_each_period_and_for_an_hour_at_least() {
        let now = 3 * DAY + 5 * HOUR;
        for (what, machine, day, month) in [
            ("ended today", machine(now - 3 * HOUR, now - HOUR), "2.00", "2.00"),
            ("ended yesterday", machine(2 * DAY, 2 * DAY + HOUR), "0.00", "1.00"),
            ("ended at once", machine(now - 600_000, now - 300_000), "0.08", "0.08"),
            ("runs since yesterday", machine(2 * DAY + 20 * HOUR, now), "5.00", "9.00"),
            ("launched just now", machine(now, now), "1.00", "1.00"),
            ("launched by a clock that is ahead", machine(now + HOUR, Millis::MAX), "1.00", "1.00"),
            ("ended before it began", machine(now - HOUR, now - 2 * HOUR), "0.00", "0.00"),
        ] {
            assert_eq!(spent(&[machine], now), (day.to_owned(), month.to_owned()), "{what}");
        }
        let late = 3 * DAY - HOUR / 2;
        assert_eq!(spent(&[machine(late, late)], late), ("0.50".to_owned(), "1.00".to_owned()));
    }

    #[test]
    fn of_two_limits_the_tighter_one_is_shown() {
        let unit = |units: u64| Price::from_micros(units * 1_000_000);
        let budget = Budget { per_day: Some(unit(10)), per_month: Some(unit(100)), warn_at: 80 };
        let spending = |day: u64, month: u64| Spending {
            day: unit(day).amount(),
            month: unit(month).amount(),
        };
        let state = |day, month| budget.state(spending(day, month), 0).unwrap();
        let early = state(2, 20);
        assert_eq!(
            (early.period, early.left.to_string(), early.warns),
            (Period::Day, "8.00".to_owned(), false)
        );
        let late = state(2, 95);
        assert_eq!(
            (late.period, late.left.to_string(), late.warns),
            (Period::Month, "5.00".to_owned(), true)
        );
        assert_eq!((state(8, 8).warns, state(8, 8).is_reached()), (true, false));
        assert_eq!((state(11, 11).is_reached(), state(11, 11).renewed), (true, DAY));
        assert_eq!(budget.exceeded(spending(10, 100)), None);
        assert_eq!(budget.exceeded(spending(11, 11)), Some((Period::Day, unit(10))));
        assert_eq!(budget.exceeded(spending(1, 101)), Some((Period::Month, unit(100))));
        assert_eq!(Budget::default().state(spending(1, 1), 0), None);
    }
}
