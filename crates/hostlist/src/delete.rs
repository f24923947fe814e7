//! Removing one occurrence of each host, like Slurm's delete.

use crate::key::{Piece, Stems};
use crate::list::Hostlist;
use crate::span::Span;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

impl Hostlist {
    /// Removes, for each host of `other`, its first occurrence; the order of the rest is kept.
    ///
    /// ```
    /// use hostlist::Hostlist;
    ///
    /// let mut list: Hostlist = "n[1-10],n5,m1".parse()?;
    /// list.remove_first(&"n[3-5]".parse()?);
    /// assert_eq!(list.to_string(), "n[1-2,6-10,5],m1");
    /// # Ok::<(), hostlist::ParseError>(())
    /// ```
    pub fn remove_first(&mut self, other: &Self) {
        let mut stems = Stems::default();
        let mut doomed = Multiset::default();
        let mut runs = other.runs();
        while runs.advance() {
            runs.run().for_each_piece(|piece| {
                doomed.add((stems.id(piece.stem), piece.digits), piece.lo, piece.hi);
            });
        }
        let mut kept = Self::new();
        let mut runs = self.runs();
        while runs.advance() {
            let run = runs.run();
            let range = run.span.filter(|_| run.suffix.is_empty());
            let mut next = range.map_or(0, |span| span.lo);
            run.for_each_piece(|piece| {
                let first = next;
                next = next.saturating_add(piece.hi - piece.lo).saturating_add(1);
                let set = (stems.id(piece.stem), piece.digits);
                doomed.take(set, piece.lo, piece.hi, |lo, hi| match range {
                    Some(Span { width, .. }) => {
                        let own = |number: u64| first + (number - piece.lo);
                        kept.push_range(run.prefix, Span { lo: own(lo), hi: own(hi), width });
                    }
                    None => kept.push_name(&Piece { lo, hi, ..piece }.name()),
                });
            });
        }
        *self = kept;
    }
}

/// Which stem, and how many digits.
type Set = (u32, u32);

/// How many more occurrences of each number are removed, as ranges that do not overlap.
#[derive(Default)]
struct Multiset {
    /// By set and low end: the high end, and how often.
    ranges: BTreeMap<(Set, u64), (u64, usize)>,
}

impl Multiset {
    /// Cuts the range that holds both `number` and the one before it.
    fn cut(&mut self, set: Set, number: u64) {
        let Some((&(found, lo), range)) = self.ranges.range_mut(..(set, number)).next_back() else {
            return;
        };
        let (hi, times) = *range;
        if found == set && hi >= number && lo < number {
            range.0 = number - 1;
            self.ranges.insert((set, number), (hi, times));
        }
    }

    fn cut_around(&mut self, set: Set, lo: u64, hi: u64) {
        self.cut(set, lo);
        if let Some(after) = hi.checked_add(1) {
            self.cut(set, after);
        }
    }

    /// One more of each of `lo..=hi`.
    fn add(&mut self, set: Set, lo: u64, hi: u64) {
        self.cut_around(set, lo, hi);
        let mut gaps = Vec::new();
        let mut next = Some(lo);
        for (&(_, low), (high, times)) in self.ranges.range_mut((set, lo)..=(set, hi)) {
            *times += 1;
            if let Some(from) = next.filter(|from| *from < low) {
                gaps.push((from, low - 1));
            }
            next = high.checked_add(1);
        }
        if let Some(from) = next.filter(|from| *from <= hi) {
            gaps.push((from, hi));
        }
        self.ranges.extend(gaps.into_iter().map(|(low, high)| ((set, low), (high, 1))));
    }

    /// One less of each of `lo..=hi`; calls `keep` with those that are not to be removed.
    fn take(&mut self, set: Set, lo: u64, hi: u64, mut keep: impl FnMut(u64, u64)) {
        self.cut_around(set, lo, hi);
        let mut spent = Vec::new();
        let mut next = Some(lo);
        for (key, (high, times)) in self.ranges.range_mut((set, lo)..=(set, hi)) {
            if let Some(from) = next.filter(|from| *from < key.1) {
                keep(from, key.1 - 1);
            }
            next = high.checked_add(1);
            *times -= 1;
            if *times == 0 {
                spent.push(*key);
            }
        }
        if let Some(from) = next.filter(|from| *from <= hi) {
            keep(from, hi);
        }
        for key in spent {
            self.ranges.remove(&key);
        }
    }
}
