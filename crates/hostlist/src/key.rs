//! Names in one form, whatever way they were written, and stems as small numbers.
//!
//! `n12` can stand in a list as `n[10-13]`, `n1[0-3]` or `n12`. All of them become the stem `n`, two
//! digits, the number 12; two names are equal exactly when these three are.

use crate::digits::{exact, push_number, trailing};
use crate::natural;
use crate::runs::Run;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

/// Names `stem` + `lo..=hi`, each printed with exactly `digits` digits; the bare stem where that is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece<'a> {
    pub(crate) stem: &'a str,
    pub(crate) digits: u32,
    pub(crate) lo: u64,
    pub(crate) hi: u64,
}

impl<'a> Piece<'a> {
    /// The piece of one name. A number too large for a `u64` stays part of the stem.
    pub(crate) fn of_name(name: &'a str) -> Self {
        let split = split_number(name).and_then(|(stem, digits, value)| {
            Some(Self { stem, digits: u32::try_from(digits.len()).ok()?, lo: value?, hi: value? })
        });
        split.unwrap_or(Self { stem: name, digits: 0, lo: 0, hi: 0 })
    }

    /// The first name of the piece.
    pub(crate) fn name(self) -> String {
        let mut name = Vec::from(self.stem);
        if self.digits > 0 {
            push_number(&mut name, self.lo, self.digits);
        }
        String::from_utf8(name).unwrap_or_default()
    }
}

impl Run<'_> {
    /// Calls `action` with the pieces of the run, in order.
    pub(crate) fn for_each_piece(self, mut action: impl FnMut(Piece<'_>)) {
        let Some(span) = self.span.filter(|_| self.suffix.is_empty()) else {
            return self.for_each_name(|name| action(Piece::of_name(name)));
        };
        let (stem, extra, value) = split_number(self.prefix).unwrap_or((self.prefix, "", Some(0)));
        let extra_digits = u32::try_from(extra.len()).unwrap_or(u32::MAX);
        for part in span.by_length() {
            let base = value.and_then(|value| shifted(value, part.width));
            let moved = base.and_then(|base| {
                let digits = extra_digits.checked_add(part.width)?;
                Some((digits, base.checked_add(part.lo)?, base.checked_add(part.hi)?))
            });
            match moved {
                Some((digits, lo, hi)) => action(Piece { stem, digits, lo, hi }),
                None => Run { span: Some(part), ..self }
                    .for_each_name(|name| action(Piece::of_name(name))),
            }
        }
    }
}

/// Splits a name at its trailing digits, with their value if it fits; `None` where it has none.
fn split_number(name: &str) -> Option<(&str, &str, Option<u64>)> {
    let (count, value) = trailing(name);
    let (stem, digits) = name.split_at_checked(name.len() - count)?;
    // The largest value may be one that was clamped.
    let value = if value < u64::MAX { Some(value) } else { exact(digits) };
    (count > 0).then_some((stem, digits, value))
}

/// `value` with `width` more digits behind it.
fn shifted(value: u64, width: u32) -> Option<u64> {
    if value == 0 { Some(0) } else { value.checked_mul(10u64.checked_pow(width)?) }
}

#[cfg(not(feature = "std"))]
type Map<K, V> = alloc::collections::BTreeMap<K, V>;
#[cfg(feature = "std")]
type Map<K, V> = std::collections::HashMap<K, V>;

/// Stems as numbers, in the order they were first seen.
#[derive(Debug, Default)]
pub(crate) struct Stems {
    names: Vec<Arc<str>>,
    ids: Map<Arc<str>, u32>,
    last: u32,
}

impl Stems {
    /// The number of a stem, a new one if it was not seen before.
    pub(crate) fn id(&mut self, stem: &str) -> u32 {
        // Neighbours mostly share their stem.
        if !self.names.is_empty() && self.name(self.last) == stem {
            return self.last;
        }
        self.last = self.ids.get(stem).copied().unwrap_or_else(|| {
            let id = u32::try_from(self.names.len()).unwrap_or(u32::MAX);
            let stem: Arc<str> = stem.into();
            self.names.push(Arc::clone(&stem));
            self.ids.insert(stem, id);
            id
        });
        self.last
    }

    /// The number of a stem that was seen.
    pub(crate) fn find(&self, stem: &str) -> Option<u32> {
        match &self.names[..] {
            [only] => (**only == *stem).then_some(0),
            _ => self.ids.get(stem).copied(),
        }
    }

    /// The number given last.
    pub(crate) fn last(&self) -> u32 {
        self.last
    }

    /// The stem of a number.
    pub(crate) fn name(&self, id: u32) -> &str {
        usize::try_from(id).ok().and_then(|id| self.names.get(id)).map_or("", |name| name)
    }

    /// Gives the stems new numbers in Slurm's order, and changes `ids` to them.
    pub(crate) fn rank<'a>(mut self, ids: impl Iterator<Item = &'a mut u32>) -> Self {
        if self.names.len() < 2 {
            return self;
        }
        let mut order: Vec<(Arc<str>, usize)> = self.names.into_iter().zip(0..).collect();
        order.sort_unstable_by(|(a, _), (b, _)| natural::compare(a, b).then_with(|| a.cmp(b)));
        let mut ranks = vec![0; order.len()];
        for (place, (_, id)) in (0..).zip(&order) {
            if let Some(rank) = ranks.get_mut(*id) {
                *rank = place;
            }
        }
        for id in ids {
            *id =
                usize::try_from(*id).ok().and_then(|id| ranks.get(id)).copied().unwrap_or_default();
        }
        self.names = order.into_iter().map(|(stem, _)| stem).collect();
        self.ids.clear();
        self.last = 0;
        self
    }
}
