//! A name with several brackets, or with text after the last one.

use crate::digits::push_number;
use crate::list::{Hostlist, Text};
use crate::span::Span;
use alloc::vec::Vec;

/// `literal[spans]literal[spans]…suffix`, not expanded.
#[derive(Clone, Debug)]
pub(crate) struct Product {
    /// All brackets but the last, left to right.
    pub(crate) outer: Vec<Part>,
    pub(crate) last: Part,
    pub(crate) suffix: Text,
}

/// A bracket and the text before it.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    pub(crate) literal: Text,
    /// Never empty.
    pub(crate) spans: Vec<Span>,
}

impl Part {
    /// Values in the bracket.
    pub(crate) fn count(&self) -> u64 {
        self.spans.iter().map(|span| span.count()).fold(0, u64::saturating_add)
    }

    /// Bytes of all its values together.
    fn bytes(&self) -> u64 {
        self.spans.iter().map(|span| span.bytes()).fold(0, u64::saturating_add)
    }
}

impl Product {
    fn parts(&self) -> impl Iterator<Item = &Part> {
        self.outer.iter().chain([&self.last])
    }

    /// Hosts it stands for.
    pub(crate) fn count(&self) -> u64 {
        self.parts().map(Part::count).fold(1, u64::saturating_mul)
    }

    /// Bytes of all its names together.
    pub(crate) fn bytes(&self) -> u64 {
        let hosts = self.count();
        let literal: u64 =
            self.parts().map(|part| part.literal.len()).sum::<u64>() + self.suffix.len();
        self.parts()
            .map(|part| (hosts / part.count().max(1)).saturating_mul(part.bytes()))
            .fold(hosts.saturating_mul(literal), u64::saturating_add)
    }
}

/// Goes through the values of the outer brackets as Slurm does: the leftmost moves fastest. With two
/// brackets that is row by row; with three it is not, and Slurm's order is the one that counts.
#[derive(Debug)]
pub(crate) struct Walk<'a> {
    list: &'a Hostlist,
    product: &'a Product,
    /// For each outer bracket: which span, and the value in it.
    picks: Vec<(usize, u64)>,
    /// The text before the last bracket, for the current picks.
    prefix: Vec<u8>,
    /// Which span of the last bracket.
    last: usize,
}

impl<'a> Walk<'a> {
    /// Stands on the first run.
    pub(crate) fn new(list: &'a Hostlist, product: &'a Product) -> Self {
        let first = |part: &Part| (0, part.spans.first().map_or(0, |span| span.lo));
        let picks = product.outer.iter().map(first).collect();
        let mut walk = Self { list, product, picks, prefix: Vec::new(), last: 0 };
        walk.write_prefix();
        walk
    }

    /// Moves to the next run; false at the end.
    pub(crate) fn advance(&mut self) -> bool {
        self.last += 1;
        if self.last < self.product.last.spans.len() {
            return true;
        }
        self.last = 0;
        for (pick, part) in self.picks.iter_mut().zip(&self.product.outer) {
            if let Some(next) = next_pick(*pick, part) {
                *pick = next;
                self.write_prefix();
                return true;
            }
            *pick = (0, part.spans.first().map_or(0, |span| span.lo));
        }
        false
    }

    fn write_prefix(&mut self) {
        self.prefix.clear();
        for (&(which, value), part) in self.picks.iter().zip(&self.product.outer) {
            self.prefix.extend_from_slice(self.list.text(part.literal).as_bytes());
            let width = part.spans.get(which).map_or(0, |span| span.width);
            push_number(&mut self.prefix, value, width);
        }
        self.prefix.extend_from_slice(self.list.text(self.product.last.literal).as_bytes());
    }

    pub(crate) fn prefix(&self) -> &str {
        core::str::from_utf8(&self.prefix).unwrap_or_default()
    }

    pub(crate) fn span(&self) -> Option<Span> {
        self.product.last.spans.get(self.last).copied()
    }

    pub(crate) fn suffix(&self) -> &'a str {
        self.list.text(self.product.suffix)
    }
}

fn next_pick((which, value): (usize, u64), part: &Part) -> Option<(usize, u64)> {
    let span = part.spans.get(which)?;
    if value < span.hi {
        return Some((which, value + 1));
    }
    part.spans.get(which + 1).map(|span| (which + 1, span.lo))
}
