//! Names in one form, whatever way they were written, and stems as small numbers.
//!
//! `n12` can stand in a list as `n[10-13]`, `n1[0-3]` or `n12`. All of them become the stem `n`, two
//! digits, the number 12; two names are equal exactly when these three are.

use crate::natural;
use crate::runs::Run;
use crate::span::{exact, push_number, split_number};
use std::collections::HashMap;

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
        let split = split_number(name).and_then(|(stem, digits)| {
            let value = exact(digits)?;
            Some(Self { stem, digits: u32::try_from(digits.len()).ok()?, lo: value, hi: value })
        });
        split.unwrap_or(Self { stem: name, digits: 0, lo: 0, hi: 0 })
    }

    /// The first name of the piece.
    pub(crate) fn name(self) -> String {
        let mut name = String::from(self.stem);
        if self.digits > 0 {
            push_number(&mut name, self.lo, self.digits);
        }
        name
    }
}

impl Run<'_> {
    /// Calls `action` with the pieces of the run, in order.
    pub(crate) fn for_each_piece(self, mut action: impl FnMut(Piece<'_>)) {
        let Some(span) = self.span.filter(|_| self.suffix.is_empty()) else {
            return self.for_each_name(|name| action(Piece::of_name(name)));
        };
        let (stem, extra) = split_number(self.prefix).unwrap_or((self.prefix, ""));
        let extra_digits = u32::try_from(extra.len()).unwrap_or(u32::MAX);
        for part in span.by_length() {
            let base = if extra.is_empty() { Some(0) } else { shifted(extra, part.width) };
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

/// The value of `digits` with `width` more digits behind it.
fn shifted(digits: &str, width: u32) -> Option<u64> {
    match exact(digits)? {
        0 => Some(0),
        value => value.checked_mul(10u64.checked_pow(width)?),
    }
}

/// Stems as numbers, in the order they were first seen.
#[derive(Default)]
pub(crate) struct Stems {
    names: Vec<String>,
    ids: HashMap<String, usize>,
    last: usize,
}

impl Stems {
    /// The number of a stem, a new one if it was not seen before.
    pub(crate) fn id(&mut self, stem: &str) -> usize {
        // Neighbours mostly share their stem.
        if self.names.get(self.last).is_some_and(|last| last == stem) {
            return self.last;
        }
        self.last = self.ids.get(stem).copied().unwrap_or_else(|| {
            self.names.push(stem.to_owned());
            self.ids.insert(stem.to_owned(), self.names.len() - 1);
            self.names.len() - 1
        });
        self.last
    }

    /// The stems in Slurm's order, and for each number its place in that order.
    pub(crate) fn ranked(&self) -> (Vec<&str>, Vec<usize>) {
        let mut order: Vec<(&str, usize)> =
            self.names.iter().map(String::as_str).zip(0..).collect();
        order.sort_unstable_by(|a, b| natural::compare(a.0, b.0).then_with(|| a.0.cmp(b.0)));
        let mut rank = vec![0; order.len()];
        for (place, (_, id)) in order.iter().enumerate() {
            if let Some(rank) = rank.get_mut(*id) {
                *rank = place;
            }
        }
        (order.into_iter().map(|(stem, _)| stem).collect(), rank)
    }
}
