//! Lists as sets: union, difference, intersection, by name, whatever way the names were written.

use crate::key::Stems;
use crate::list::Hostlist;
use crate::span::Span;
use alloc::vec::Vec;

/// The start or the end of a piece of one of the two lists.
#[derive(Clone, Copy)]
struct Event {
    stem: u32,
    digits: u32,
    number: u64,
    /// At one number, beginnings come before ends.
    ends: bool,
    second: bool,
}

impl Event {
    fn order(&self) -> (u64, u64, bool) {
        (u64::from(self.stem) << 32 | u64::from(self.digits), self.number, self.ends)
    }
}

impl Hostlist {
    /// The hosts that are in either list, each once, in Slurm's order.
    ///
    /// ```
    /// use hostlist::Hostlist;
    ///
    /// let (a, b): (Hostlist, Hostlist) = ("n[1-5]".parse()?, "n[4-8]".parse()?);
    /// assert_eq!(a.union(&b).to_string(), "n[1-8]");
    /// assert_eq!(a.difference(&b).to_string(), "n[1-3]");
    /// assert_eq!(a.symmetric_difference(&b).to_string(), "n[1-3,6-8]");
    /// assert_eq!(a.intersection(&b).to_string(), "n[4-5]");
    /// # Ok::<(), hostlist::ParseError>(())
    /// ```
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        combine(self, other, |first, second| first || second)
    }

    /// The hosts that are in this list and not in the other, each once, in Slurm's order.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Self {
        combine(self, other, |first, second| first && !second)
    }

    /// The hosts that are in exactly one of the two lists, each once, in Slurm's order.
    #[must_use]
    pub fn symmetric_difference(&self, other: &Self) -> Self {
        combine(self, other, |first, second| first != second)
    }

    /// The hosts that are in both lists, each once, in Slurm's order.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        combine(self, other, |first, second| first && second)
    }
}

/// Keeps the hosts for which `keep(in first, in second)` is true.
fn combine(first: &Hostlist, second: &Hostlist, keep: impl Fn(bool, bool) -> bool) -> Hostlist {
    let (events, stems) = events(first, second);
    let mut list = Hostlist::new();
    sweep(&events, keep, |event, lo, hi| {
        let stem = stems.name(event.stem);
        match event.digits {
            0 => list.push_name(stem),
            width => {
                list.push_range(stem, Span { lo, hi, width });
            }
        }
    });
    list
}

/// The starts and ends of the pieces of both lists, sorted.
fn events(first: &Hostlist, second: &Hostlist) -> (Vec<Event>, Stems) {
    let mut stems = Stems::default();
    let mut events = Vec::with_capacity(2 * (first.items().len() + second.items().len()));
    for (list, second) in [(first, false), (second, true)] {
        let mut runs = list.runs();
        while runs.advance() {
            runs.run().for_each_piece(|piece| {
                let (stem, digits) = (stems.id(piece.stem), piece.digits);
                events.push(Event { stem, digits, number: piece.lo, ends: false, second });
                events.push(Event { stem, digits, number: piece.hi, ends: true, second });
            });
        }
    }
    let stems = stems.rank(events.iter_mut().map(|event| &mut event.stem));
    // Stable, because it makes use of the order that lists mostly have.
    events.sort_by_key(Event::order);
    (events, stems)
}

/// Goes through the events and calls `push` with the numbers kept, `lo..=hi`, and the event that ends them.
fn sweep(
    events: &[Event],
    keep: impl Fn(bool, bool) -> bool,
    mut push: impl FnMut(&Event, u64, u64),
) {
    let (mut in_first, mut in_second) = (0_usize, 0_usize);
    let mut since = None;
    for event in events {
        let depth = if event.second { &mut in_second } else { &mut in_first };
        *depth = if event.ends { depth.saturating_sub(1) } else { *depth + 1 };
        let kept = keep(in_first > 0, in_second > 0);
        let (last_before, first_from) = if event.ends {
            (Some(event.number), event.number.checked_add(1))
        } else {
            (event.number.checked_sub(1), Some(event.number))
        };
        match since {
            None if kept => since = first_from,
            Some(lo) if !kept => {
                since = None;
                if let Some(hi) = last_before.filter(|hi| lo <= *hi) {
                    push(event, lo, hi);
                }
            }
            None | Some(_) => {}
        }
    }
}
