//! What jobs and idle time cost is what machines cost, to the cent, whatever has happened.

use history::Event;
use history::Lives;
use history::cost::{self, Owner, Price, Prices};
use proptest::prelude::*;
use std::ops::Range;

/// What may happen to one of a few nodes.
#[derive(Clone, Copy, Debug)]
enum Act {
    /// A machine is launched, also where one runs whose end nobody has logged.
    Launch,
    /// The machine that the node has is adopted, or one that the log does not know.
    Adopt,
    Rebuild,
    /// Slurm puts the node's jobs back in the queue.
    Return,
    /// Jobs begin or change, or the last one ends.
    Busy(u8),
    Idle,
    Terminate,
    /// The end of the machine before this one is noticed at last.
    TerminateOld,
}

/// When it happens: so long after the last event, on a clock that may be set back.
type Happening = (Act, u8, i64);

fn happenings() -> impl Strategy<Value = Vec<Happening>> {
    let act = prop_oneof![
        3 => Just(Act::Launch),
        1 => Just(Act::Adopt),
        1 => Just(Act::Rebuild),
        1 => Just(Act::Return),
        4 => (0..8_u8).prop_map(Act::Busy),
        2 => Just(Act::Idle),
        2 => Just(Act::Terminate),
        1 => Just(Act::TerminateOld),
    ];
    let step = prop_oneof![8 => 0..40_000_000_i64, 1 => -90_000_000..0_i64];
    proptest::collection::vec((act, 0..3_u8, step), 0..60)
}

/// A machine as the cloud bills it.
#[derive(Debug)]
struct Billed {
    node: u8,
    instance: usize,
    shape: &'static str,
    from: u64,
    until: Option<u64>,
    /// The node has another one.
    replaced: bool,
}

const BEGIN: u64 = 1_793_491_200_000;

/// The log, and the machines that are paid for, each kept by a rule of one line.
fn played(happenings: &[Happening]) -> (Vec<Event>, Vec<Billed>, u64) {
    let (mut at, mut last) = (BEGIN, BEGIN);
    let (mut lines, mut machines) = (Vec::new(), Vec::<Billed>::new());
    for (number, (act, node, step)) in happenings.iter().enumerate() {
        at = at.saturating_add_signed(*step).max(BEGIN - 100_000_000);
        last = last.max(at);
        let open = |machine: &&mut Billed| {
            machine.node == *node && machine.until.is_none() && !machine.replaced
        };
        let current = machines.iter_mut().find(open);
        let id = current.as_ref().map(|machine| machine.instance);
        let named = |id: usize| format!(r#","instance":"i{id}""#);
        let mut shape = "";
        let (kind, more) = match act {
            Act::Launch | Act::Adopt if matches!(act, Act::Launch) || id.is_none() => {
                if let Some(old) = current {
                    (old.until, old.replaced) = (Some(at), true);
                }
                shape = if number % 2 == 0 { "a" } else { "b" };
                let machine = Billed {
                    node: *node,
                    instance: number,
                    shape,
                    from: at,
                    until: None,
                    replaced: false,
                };
                machines.push(machine);
                (if matches!(act, Act::Launch) { "launched" } else { "adopted" }, named(number))
            }
            Act::Launch | Act::Adopt => ("adopted", id.map(named).unwrap_or_default()),
            Act::Rebuild => ("rebuilt", String::new()),
            Act::Return => ("returned_to_slurm", String::new()),
            Act::Busy(jobs) => {
                let jobs: Vec<u8> = (0..3).filter(|job| jobs & (1 << job) != 0).collect();
                ("busy", format!(r#","jobs":{jobs:?}"#))
            }
            Act::Idle => ("idle", String::new()),
            Act::Terminate => {
                let Some(machine) = current else { continue };
                machine.until = Some(at);
                ("terminated", named(machine.instance))
            }
            Act::TerminateOld => {
                let old = |machine: &&mut Billed| machine.node == *node && machine.replaced;
                let Some(machine) = machines.iter_mut().find(old) else { continue };
                (machine.until, machine.replaced) = (Some(at), false);
                ("terminated", named(machine.instance))
            }
        };
        let shape = if shape.is_empty() { String::new() } else { format!(r#","shape":"{shape}""#) };
        lines.push(format!(
            r#"{{"at":{at},"run":"r","event":"{kind}","node":"n{node}"{more}{shape}}}"#
        ));
    }
    let events = lines.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    (events, machines, last + 1)
}

fn millis_in(window: &Range<u64>, machine: &Billed, now: u64) -> u64 {
    let until = machine.until.unwrap_or(now).max(machine.from);
    until.min(window.end).saturating_sub(machine.from.max(window.start))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn jobs_and_idle_time_cost_what_the_machines_of_a_log_cost(
        happenings in happenings(), begin in 0..200_000_000_u64, length in 0..900_000_000_u64,
    ) {
        let (events, billed, now) = played(&happenings);
        let window = BEGIN - 100_000_000 + begin..BEGIN - 100_000_000 + begin + length;
        let prices = Prices::read("p", "currency: USD\nshapes: {a: 0.0638, b: 3.333333}\n").unwrap();
        let lives = Lives::of(&events);
        let machines = cost::machines(&lives, now, |_| 4, |_| None);
        let owner = |job: u32| Owner { job: job.to_string(), ..Owner::default() };
        let runs = cost::runs(&lives, now, owner);
        let (shares, unpriced) = cost::attribute(&machines, &runs, &window, &prices);
        prop_assert!(unpriced.is_empty(), "{:?}", unpriced);
        let micros = |machine: &Billed| if machine.shape == "a" { 63_800_u64 } else { 3_333_333 };
        let of = |machine: &Billed| u128::from(millis_in(&window, machine, now)) * u128::from(micros(machine));
        let whole: u128 = billed.iter().map(of).sum();
        let cents = (whole + 18_000_000_000) / 36_000_000_000;
        let sum = |is_job: bool| {
            shares.iter().filter(|share| share.owner.is_some() == is_job).map(|share| share.cost).sum::<cost::Cost>()
        };
        prop_assert_eq!((sum(true) + sum(false)).cents(), cents, "{:?}\n{:?}", billed, machines);
        // Machine by machine, without any rounding.
        let mut told: Vec<cost::Cost> = machines.iter().map(|machine| {
            shares.iter().filter(|share| std::ptr::eq(share.machine, machine)).map(|share| share.cost).sum()
        }).collect();
        let mut due: Vec<cost::Cost> = billed.iter().map(|machine| {
            Price::from_micros(1).during(u64::try_from(of(machine)).unwrap())
        }).collect();
        told.sort();
        due.sort();
        prop_assert_eq!(told, due);
    }
}
