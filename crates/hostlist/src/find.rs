//! Looking names up.

use crate::key::Piece;
use crate::list::Hostlist;
use std::collections::BTreeMap;

/// Where each name stands; made once, at the first look-up.
pub(crate) struct Index {
    stems: BTreeMap<String, Vec<Entry>>,
}

/// Numbers `lo..=hi` with this many digits, the first of them at `position`.
struct Entry {
    digits: u32,
    lo: u64,
    hi: u64,
    position: usize,
    /// The highest number of this entry and those before it with as many digits: a search that goes
    /// backwards ends where this is too low.
    reach: u64,
}

impl Index {
    pub(crate) fn new(list: &Hostlist) -> Self {
        let mut stems: BTreeMap<String, Vec<Entry>> = BTreeMap::new();
        let mut position = 0;
        let mut runs = list.runs();
        while runs.advance() {
            runs.run().for_each_piece(|Piece { stem, digits, lo, hi }| {
                let entry = Entry { digits, lo, hi, position, reach: hi };
                match stems.get_mut(stem) {
                    Some(entries) => entries.push(entry),
                    None => {
                        stems.insert(stem.to_owned(), vec![entry]);
                    }
                }
                let count =
                    usize::try_from(hi - lo).map_or(usize::MAX, |last| last.saturating_add(1));
                position = position.saturating_add(count);
            });
        }
        for entries in stems.values_mut() {
            entries.sort_unstable_by_key(|entry| (entry.digits, entry.lo, entry.position));
            let mut before = (0, 0);
            for entry in entries {
                if before.0 == entry.digits {
                    entry.reach = entry.hi.max(before.1);
                }
                before = (entry.digits, entry.reach);
            }
        }
        Self { stems }
    }

    fn position(&self, name: &str) -> Option<usize> {
        let Piece { stem, digits, lo: value, .. } = Piece::of_name(name);
        let entries = self.stems.get(stem)?;
        let after = entries.partition_point(|entry| (entry.digits, entry.lo) <= (digits, value));
        let candidates = entries.get(..after)?.iter().rev();
        candidates
            .take_while(|entry| entry.digits == digits && entry.reach >= value)
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
