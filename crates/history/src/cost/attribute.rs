//! Attributes the costs of machines to the jobs that ran on them.

use super::calendar::{Millis, day_start, next_day};
use super::money::{Cost, Price};
use super::prices::Prices;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// Thousandths per core, the unit of a job's share of a machine.
const MILLI: u64 = 1000;

/// The paid time of a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PaidMachine {
    /// Its node.
    pub node: String,
    /// The shape as in the price file: with the size of a flexible shape, and the suffix ` preemptible`.
    pub shape: String,
    /// Its zone.
    pub zone: Option<String>,
    /// Number of CPUs in Slurm; 0 if unknown.
    pub cpus: u32,
    /// The launch.
    pub from: Millis,
    /// The end, or now.
    pub until: Millis,
}

impl PaidMachine {
    /// The name of the pool: shape and zone, as in cool-downs.
    #[must_use]
    pub fn pool(&self) -> String {
        self.zone
            .as_ref()
            .map_or_else(|| self.shape.clone(), |zone| format!("{} in {zone}", self.shape))
    }

    /// The paid time within a window; empty if the clock was set back and the end is before the launch.
    pub(super) fn paid(&self, window: &Range<Millis>) -> Range<Millis> {
        let from = self.from.max(window.start);
        from..self.until.min(window.end).max(from)
    }
}

/// A job and its owner.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Owner {
    /// The job's id.
    pub job: String,
    /// The user's name.
    pub user: String,
    /// The account.
    pub account: String,
    /// The partition.
    pub partition: String,
}

/// One run of a job; a job that was requeued has several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobRun {
    /// The job and its owner.
    pub owner: Owner,
    /// Its nodes, with the thousandths of a CPU on each.
    pub nodes: Vec<(String, u64)>,
    /// The start.
    pub from: Millis,
    /// The end, or now.
    pub until: Millis,
}

/// A share of the cost of a machine on one day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share<'a> {
    /// The machine.
    pub machine: &'a PaidMachine,
    /// The job that used it; none for idle time.
    pub owner: Option<&'a Owner>,
    /// The start of the day.
    pub day: Millis,
    /// The amount.
    pub cost: Cost,
}

/// Splits the CPUs of a job over its nodes, whose CPUs are given. The result is in thousandths.
///
/// Slurm's accounting has only the sum. A job with all CPUs gets those of each node; for others, an even distribution is
/// assumed.
#[must_use]
pub fn spread(allocated: u32, nodes: &[u32]) -> Vec<u64> {
    let all: u64 = nodes.iter().map(|cpus| u64::from(*cpus)).sum();
    if u64::from(allocated) == all {
        return nodes.iter().map(|cpus| u64::from(*cpus) * MILLI).collect();
    }
    let count = u64::try_from(nodes.len()).unwrap_or(u64::MAX).max(1);
    vec![u64::from(allocated) * MILLI / count; nodes.len()]
}

/// Splits the costs of machines in a window by the CPUs of jobs. CPUs without a job are idle.
///
/// The shares of a machine add up to its exact cost. Jobs that together have more CPUs than the machine share it in
/// proportion. Shapes without a price are returned with the milliseconds that their machines ran.
#[must_use]
pub fn attribute<'a>(
    machines: &'a [PaidMachine],
    runs: &'a [JobRun],
    window: &Range<Millis>,
    prices: &Prices,
) -> (Vec<Share<'a>>, BTreeMap<&'a str, u64>) {
    let mut on_node: BTreeMap<&str, Vec<Use<'a>>> = BTreeMap::new();
    for run in runs {
        for (node, share) in run.nodes.iter().filter(|(_, share)| *share > 0) {
            let used = Use { owner: &run.owner, share: *share, from: run.from, until: run.until };
            on_node.entry(node).or_default().push(used);
        }
    }
    let mut shares = Vec::new();
    let mut unpriced: BTreeMap<&str, u64> = BTreeMap::new();
    for machine in machines {
        let paid = machine.paid(window);
        match prices.hour(&machine.shape) {
            Some(price) => {
                let uses =
                    on_node.get(machine.node.as_str()).map(Vec::as_slice).unwrap_or_default();
                split(machine, price, &paid, uses, &mut shares);
            }
            None => *unpriced.entry(&machine.shape).or_default() += paid.end - paid.start,
        }
    }
    unpriced.retain(|_, millis| *millis > 0);
    (shares, unpriced)
}

/// The share of a job in a node.
#[derive(Clone, Copy)]
struct Use<'a> {
    owner: &'a Owner,
    share: u64,
    from: Millis,
    until: Millis,
}

/// The shares of one machine.
fn split<'a>(
    machine: &'a PaidMachine,
    price: Price,
    paid: &Range<Millis>,
    uses: &[Use<'a>],
    shares: &mut Vec<Share<'a>>,
) {
    let uses: Vec<&Use<'a>> =
        uses.iter().filter(|used| used.from < paid.end && used.until > paid.start).collect();
    let mut cuts: BTreeSet<Millis> = uses.iter().flat_map(|used| [used.from, used.until]).collect();
    let mut midnight = next_day(paid.start);
    while midnight < paid.end {
        cuts.insert(midnight);
        midnight = next_day(midnight);
    }
    cuts.insert(paid.end);
    let mut from = paid.start;
    for cut in cuts.into_iter().filter(|cut| *cut > paid.start && *cut <= paid.end) {
        let part =
            Share { machine, owner: None, day: day_start(from), cost: price.during(cut - from) };
        let active = uses.iter().filter(|used| used.from <= from && used.until >= cut);
        share_out(part, &active.map(|used| **used).collect::<Vec<_>>(), shares);
        from = cut;
    }
}

/// Splits an interval during which no job starts or ends.
fn share_out<'a>(whole: Share<'a>, active: &[Use<'a>], shares: &mut Vec<Share<'a>>) {
    let used: u64 = active.iter().map(|used| used.share).sum();
    let of = used.max(u64::from(whole.machine.cpus) * MILLI);
    let mut left = whole.cost;
    for used in active {
        let cost = whole.cost.part(used.share, of);
        left = left.less(cost);
        shares.push(Share { owner: Some(used.owner), cost, ..whole });
    }
    if left == Cost::ZERO {
        return;
    }
    // The remainder of the division is not idle time if the machine is fully used.
    match shares.last_mut().filter(|_| used == of && used > 0) {
        Some(last) => last.cost += left,
        None => shares.push(Share { cost: left, ..whole }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const HOUR: Millis = 3_600_000;

    fn machine(node: &str, from: Millis, until: Millis) -> PaidMachine {
        let (node, shape) = (node.to_owned(), "a".to_owned());
        PaidMachine { node, shape, zone: None, cpus: 4, from, until }
    }

    fn run(job: &str, node: &str, cpus: u64, time: Range<Millis>) -> JobRun {
        let owner = Owner { job: job.to_owned(), ..Owner::default() };
        JobRun {
            owner,
            nodes: vec![(node.to_owned(), cpus * MILLI)],
            from: time.start,
            until: time.end,
        }
    }

    fn prices(text: &str) -> Prices {
        Prices::read("p", &format!("currency: USD\nshapes: {{{text}}}\n")).unwrap()
    }

    fn shown(machines: &[PaidMachine], runs: &[JobRun]) -> Vec<String> {
        let prices = prices("a: 4");
        let (shares, _) = attribute(machines, runs, &(0..Millis::MAX), &prices);
        let mut sums: BTreeMap<&str, Cost> = BTreeMap::new();
        for share in shares {
            *sums.entry(share.owner.map_or("idle", |owner| owner.job.as_str())).or_default() +=
                share.cost;
        }
        sums.iter().map(|(name, cost)| format!("{name} {cost}")).collect()
    }

    #[test]
    fn a_machine_is_shared_by_the_cpus_that_jobs_have_of_it() {
        let hour = [machine("n1", 0, HOUR)];
        for (what, runs, expected) in [
            ("no job", vec![], vec!["idle 4.00"]),
            ("all of it", vec![run("1", "n1", 4, 0..HOUR)], vec!["1 4.00"]),
            ("a quarter", vec![run("1", "n1", 1, 0..HOUR)], vec!["1 1.00", "idle 3.00"]),
            ("half of the time", vec![run("1", "n1", 4, 0..HOUR / 2)], vec!["1 2.00", "idle 2.00"]),
            ("elsewhere", vec![run("1", "n2", 4, 0..HOUR)], vec!["idle 4.00"]),
            (
                "more than it has",
                vec![run("1", "n1", 4, 0..HOUR), run("2", "n1", 4, 0..HOUR)],
                vec!["1 2.00", "2 2.00"],
            ),
            (
                "one after the other",
                vec![run("1", "n1", 4, 0..HOUR / 4), run("2", "n1", 2, HOUR / 4..HOUR)],
                vec!["1 1.00", "2 1.50", "idle 1.50"],
            ),
            ("longer than it was there", vec![run("1", "n1", 4, 0..9 * HOUR)], vec!["1 4.00"]),
            (
                "a clock that was set back",
                vec![run("1", "n1", 4, Range { start: HOUR, end: 0 })],
                vec!["idle 4.00"],
            ),
        ] {
            assert_eq!(shown(&hour, &runs), expected, "{what}");
        }
    }

    #[test]
    fn a_job_that_has_all_its_nodes_has_all_of_each() {
        assert_eq!(spread(12, &[4, 8]), [4000, 8000]);
        assert_eq!(spread(3, &[4, 8]), [1500, 1500]);
        assert_eq!(spread(2, &[]), [0_u64; 0]);
    }

    #[test]
    fn a_shape_without_a_price_is_named_with_its_time() {
        let machines = [machine("n1", 0, HOUR), machine("n2", 0, 2 * HOUR)];
        let prices = prices("b: 1");
        let (shares, unpriced) = attribute(&machines, &[], &(0..Millis::MAX), &prices);
        assert_eq!((shares.len(), unpriced), (0, BTreeMap::from([("a", 3 * HOUR)])));
    }

    /// Times around a few days, so that lives and jobs overlap, end before they begin, and cross midnight.
    fn time() -> impl Strategy<Value = Millis> {
        0_u64..400_000_000
    }

    fn machines() -> impl Strategy<Value = Vec<PaidMachine>> {
        // Few nodes: machines of one node follow, overlap and repeat one another, as rebuilds and lost events make them.
        let one = (0_u8..4, 0_u8..3, 0_u32..9, time(), time()).prop_map(
            |(node, shape, cpus, from, until)| {
                let shape = ["a", "b", "c.Flex.3.7"]
                    .get(usize::from(shape))
                    .copied()
                    .unwrap_or("a")
                    .to_owned();
                PaidMachine { node: format!("n{node}"), shape, zone: None, cpus, from, until }
            },
        );
        prop::collection::vec(one, 0..12)
    }

    fn runs() -> impl Strategy<Value = Vec<JobRun>> {
        // Few jobs: runs of one job repeat, as requeues make them, even on the same nodes at the same time.
        let nodes = prop::collection::vec((0_u8..5, 0_u64..9000), 0..4);
        let one = (0_u8..6, nodes, time(), time()).prop_map(|(job, nodes, from, until)| {
            let nodes =
                nodes.into_iter().map(|(node, share)| (format!("n{node}"), share)).collect();
            JobRun { owner: Owner { job: job.to_string(), ..Owner::default() }, nodes, from, until }
        });
        prop::collection::vec(one, 0..24)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]
        #[test]
        fn jobs_and_idle_time_cost_what_machines_cost(
            machines in machines(), runs in runs(), begin in time(), end in time(),
        ) {
            let prices = prices("a: 0.0638, b: {hour: 3.333333}, c.Flex: {ocpu: 0.025, memory_gb: 0.0015}");
            let window = begin.min(end)..begin.max(end);
            let (shares, unpriced) = attribute(&machines, &runs, &window, &prices);
            prop_assert!(unpriced.is_empty());
            // Computed independently, machine by machine, in whole millionths of a unit times milliseconds.
            let micros = |shape: &str| match shape { "a" => 63_800, "b" => 3_333_333, _ => 3 * 25_000 + 7 * 1_500 };
            let mut whole = 0_u128;
            for (index, machine) in machines.iter().enumerate() {
                let (from, until) = (machine.from.max(window.start), machine.until.min(window.end));
                let expected = u128::from(until.saturating_sub(from)) * micros(&machine.shape);
                let own = shares.iter().filter(|share| std::ptr::eq(share.machine, &raw const machines[index]));
                let own: Cost = own.map(|share| share.cost).sum();
                prop_assert_eq!(own, Price::from_micros(1).during(u64::try_from(expected).unwrap()));
                whole += expected;
            }
            let (mut jobs, mut idle) = (Cost::ZERO, Cost::ZERO);
            for share in &shares {
                *(if share.owner.is_some() { &mut jobs } else { &mut idle }) += share.cost;
            }
            let cents = (whole + 18_000_000_000) / 36_000_000_000;
            prop_assert_eq!((jobs + idle).cents(), cents);
            prop_assert_eq!(super::super::in_cents(&[jobs, idle]).iter().sum::<u128>(), cents);
            // No job pays for a time in which it had no CPU.
            for share in &shares {
                prop_assert!(share.day >= day_start(window.start) && share.day < window.end.max(1));
            }
        }
    }
}
