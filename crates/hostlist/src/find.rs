//! Finding names.

use crate::key::{Piece, Stems};
use crate::list::Hostlist;
use alloc::collections::BinaryHeap;
use alloc::vec::Vec;
use core::cmp::Reverse;

/// The position of each name; built at the first search.
pub(crate) struct Index {
    stems: Stems,
    groups: Vec<Group>,
    /// The low ends of the segments, kept apart so that a search touches little memory.
    lows: Vec<u64>,
    segments: Vec<Segment>,
}

/// Stem and number of digits as one sortable number.
fn group_key(stem: u32, digits: u32) -> u64 {
    u64::from(stem) << 32 | u64::from(digits)
}

/// The segments of one stem and one number of digits: `start..end`.
struct Group {
    key: u64,
    start: usize,
    end: usize,
}

/// A range of numbers of one group.
#[derive(Clone, Copy)]
struct Entry {
    group: u64,
    lo: u64,
    hi: u64,
    /// The position of its first name.
    position: usize,
}

/// Numbers of one group whose first occurrences follow each other; segments do not overlap.
struct Segment {
    hi: u64,
    position: usize,
}

impl Index {
    pub(crate) fn new(list: &Hostlist) -> Self {
        let mut stems = Stems::default();
        let mut entries = Vec::with_capacity(list.items().len());
        let mut position = 0;
        let mut runs = list.runs();
        while runs.advance() {
            runs.run().for_each_piece(|Piece { stem, digits, lo, hi }| {
                let group = group_key(stems.id(stem), digits);
                entries.push(Entry { group, lo, hi, position });
                let count =
                    usize::try_from(hi - lo).map_or(usize::MAX, |last| last.saturating_add(1));
                position = position.saturating_add(count);
            });
        }
        entries.sort_by_key(|entry| (entry.group, entry.lo));
        let mut index = Self { stems, groups: Vec::new(), lows: Vec::new(), segments: Vec::new() };
        for group in entries.chunk_by(|a, b| a.group == b.group) {
            index.add(group);
        }
        index
    }

    /// Cuts the entries of a group, sorted by low end, into segments.
    fn add(&mut self, entries: &[Entry]) {
        let start = self.lows.len();
        // The entries that hold the current number. They all count up alike, so that the one whose numbers
        // stand earliest does so for all that it shares with others.
        let mut open: BinaryHeap<Reverse<(i128, u64)>> = BinaryHeap::new();
        let mut rest = entries.iter().peekable();
        let mut at = 0;
        loop {
            while open.peek().is_some_and(|Reverse((_, hi))| *hi < at) {
                open.pop();
            }
            if open.is_empty() {
                let Some(next) = rest.peek() else { break };
                at = next.lo;
            }
            while let Some(entry) = rest.next_if(|entry| entry.lo == at) {
                open.push(Reverse((lead(entry), entry.hi)));
            }
            let Some(&Reverse((lead, hi))) = open.peek() else { break };
            let until = rest.peek().map_or(hi, |next| hi.min(next.lo - 1));
            self.lows.push(at);
            let position = usize::try_from(lead + i128::from(at)).unwrap_or(usize::MAX);
            self.segments.push(Segment { hi: until, position });
            let Some(next) = until.checked_add(1) else { break };
            at = next;
        }
        let key = entries.first().map_or(0, |entry| entry.group);
        self.groups.push(Group { key, start, end: self.lows.len() });
    }

    fn position(&self, name: &str) -> Option<usize> {
        let Piece { stem, digits, lo: value, .. } = Piece::of_name(name);
        let key = group_key(self.stems.find(stem)?, digits);
        let group = self.groups.binary_search_by_key(&key, |group| group.key).ok()?;
        let Group { start, end, .. } = self.groups.get(group)?;
        let lows = self.lows.get(*start..*end)?;
        let at = lows.partition_point(|lo| *lo <= value).checked_sub(1)?;
        let segment = self.segments.get(start + at).filter(|segment| value <= segment.hi)?;
        Some(segment.position.saturating_add(usize::try_from(value - lows.get(at)?).ok()?))
    }
}

/// The difference between position and number, which is the same for all names of an entry.
fn lead(entry: &Entry) -> i128 {
    i128::try_from(entry.position).unwrap_or(i128::MAX) - i128::from(entry.lo)
}

impl Hostlist {
    /// True when the name is in the list. Zeros count: `n02` is not in `n[1-3]`.
    ///
    /// The first call builds an index; others take time logarithmic in the number of ranges. An expression with several
    /// brackets has a range for each value of all but the last, and one with text after the last bracket a range for
    /// each host.
    #[must_use]
    pub fn contains(&self, name: &str) -> bool {
        self.position(name).is_some()
    }

    /// The index of the first occurrence of a name.
    ///
    /// ```
    /// let list: hostlist::Hostlist = "m,nid0000[2-7]".parse()?;
    /// assert_eq!(list.position("nid00003"), Some(2));
    /// assert_eq!(list.position("nid3"), None);
    /// # Ok::<(), hostlist::ParseError>(())
    /// ```
    #[must_use]
    pub fn position(&self, name: &str) -> Option<usize> {
        self.index().position(name)
    }
}
