//! Looking names up.

use crate::key::Piece;
use crate::list::Hostlist;
use std::collections::BTreeMap;

/// Where each name stands; made once, at the first look-up.
pub(crate) struct Index {
    /// By stem, then by number of digits.
    stems: BTreeMap<String, BTreeMap<u32, Group>>,
}

/// The ranges with one stem and one number of digits, by low end.
#[derive(Default)]
struct Group {
    /// Apart from the rest, so that a search touches little memory.
    lows: Vec<u64>,
    entries: Vec<Entry>,
}

struct Entry {
    lo: u64,
    hi: u64,
    /// Where its first name stands in the list.
    position: usize,
    /// The highest number of this entry and those before it: a search that goes backwards ends where
    /// this is too low.
    reach: u64,
}

impl Index {
    pub(crate) fn new(list: &Hostlist) -> Self {
        let mut stems: BTreeMap<String, BTreeMap<u32, Group>> = BTreeMap::new();
        let mut position = 0;
        let mut runs = list.runs();
        while runs.advance() {
            runs.run().for_each_piece(|Piece { stem, digits, lo, hi }| {
                let groups = match stems.get_mut(stem) {
                    Some(groups) => groups,
                    None => stems.entry(stem.to_owned()).or_default(),
                };
                let group = groups.entry(digits).or_default();
                group.entries.push(Entry { lo, hi, position, reach: hi });
                let count =
                    usize::try_from(hi - lo).map_or(usize::MAX, |last| last.saturating_add(1));
                position = position.saturating_add(count);
            });
        }
        stems.values_mut().flat_map(BTreeMap::values_mut).for_each(Group::prepare);
        Self { stems }
    }

    fn position(&self, name: &str) -> Option<usize> {
        let Piece { stem, digits, lo: value, .. } = Piece::of_name(name);
        self.stems.get(stem)?.get(&digits)?.position(value)
    }
}

impl Group {
    fn prepare(&mut self) {
        self.entries.sort_unstable_by_key(|entry| entry.lo);
        let mut reach = 0;
        for entry in &mut self.entries {
            reach = entry.hi.max(reach);
            entry.reach = reach;
        }
        self.lows = self.entries.iter().map(|entry| entry.lo).collect();
    }

    fn position(&self, value: u64) -> Option<usize> {
        let after = self.lows.partition_point(|lo| *lo <= value);
        let candidates = self.entries.get(..after)?.iter().rev();
        candidates
            .take_while(|entry| entry.reach >= value)
            .filter(|entry| entry.hi >= value)
            .map(|entry| entry.position + usize::try_from(value - entry.lo).unwrap_or_default())
            .min()
    }
}

impl Hostlist {
    /// True when the name is in the list. Zeros count: `n02` is not in `n[1-3]`.
    ///
    /// The first look-up makes an index, the others take time logarithmic in the number of ranges.
    #[must_use]
    pub fn contains(&self, name: &str) -> bool {
        self.position(name).is_some()
    }

    /// Where the name first stands in the list, counted from 0.
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
