//! Names in bulk: a block of up to a hundred is written once, then only the digits that change.

use crate::digits::push_number;
use crate::list::Hostlist;
use crate::runs::{Run, Runs};
use crate::span::{Span, increment};
use alloc::vec::Vec;

/// A cursor over the names of a list, a block at a time: `while blocks.refill() { blocks.entries() }`.
///
/// Each name comes after the separator, so that a caller who joins them drops the first few bytes.
#[derive(Debug)]
pub(crate) struct Blocks<'a> {
    runs: Runs<'a>,
    separator: &'a str,
    /// Numbers of the run that are printed longer than those of the current block.
    rest: Option<Span>,
    block: Block,
}

impl Hostlist {
    pub(crate) fn blocks<'a>(&'a self, separator: &'a str) -> Blocks<'a> {
        Blocks {
            runs: self.runs(),
            separator,
            rest: None,
            block: Block { bytes: Vec::with_capacity(USUAL), ..Block::default() },
        }
    }
}

impl Blocks<'_> {
    /// Moves to the next block; false at the end.
    pub(crate) fn refill(&mut self) -> bool {
        if self.block.advance() {
            return true;
        }
        if self.rest.is_none() {
            if !self.runs.advance() {
                return false;
            }
            self.rest = self.runs.run().span;
        }
        let run = self.runs.run();
        let part = self.rest.take().map(Span::split_length);
        self.rest = part.and_then(|(_, rest)| rest);
        self.block.start(self.separator, run, part.map(|(part, _)| part));
        true
    }

    /// The block's names, each after a separator, and the length of one such entry.
    pub(crate) fn entries(&self) -> (&[u8], usize) {
        let Block { bytes, entry, first, end, .. } = &self.block;
        (bytes.get(first * entry..end * entry).unwrap_or_default(), *entry)
    }
}

/// Entries of equal length whose numbers differ in the last digits only.
#[derive(Debug, Default)]
struct Block {
    bytes: Vec<u8>,
    /// Length of one entry.
    entry: usize,
    /// The digits that all entries of the block share, as a range of an entry.
    shared: core::ops::Range<usize>,
    /// Entries in the block: 1, 10 or 100.
    size: u16,
    /// The entries that belong to the span: `first..end`.
    first: usize,
    end: usize,
    /// Numbers of the span after those of this block.
    remaining: u64,
}

/// Bytes that hold a block of usual names, so that the first one does not grow its way there.
const USUAL: usize = 1024;

/// Text above this, beside the number, makes a name too long for blocks.
const LONG: usize = 256;

/// Below this many numbers, filling a block of ten (or, tenfold, of a hundred) costs more than it saves.
const WORTHWHILE: u64 = 12;

impl Block {
    /// Fills the block with the first names of `part`, whose numbers are all equally long.
    fn start(&mut self, separator: &str, run: Run<'_>, part: Option<Span>) {
        let (lo, width, numbers) =
            part.map_or((0, 0, 1), |part| (part.lo, part.width, part.count()));
        let varying = match numbers {
            // A hundred very long names would be much memory for little speed.
            _ if separator.len() + run.prefix.len() + run.suffix.len() > LONG || width > 64 => 0,
            0..WORTHWHILE => 0,
            _ if numbers < 10 * WORTHWHILE || width < 2 => 1,
            _ => 2,
        };
        self.size = 10u16.pow(varying);
        self.bytes.clear();
        self.bytes.extend_from_slice(separator.as_bytes());
        self.bytes.extend_from_slice(run.prefix.as_bytes());
        let digits = self.bytes.len();
        let offset = lo % u64::from(self.size);
        if part.is_some() {
            push_number(&mut self.bytes, lo - offset, width);
        }
        let varying = usize::try_from(varying).unwrap_or_default();
        self.shared = digits..self.bytes.len().saturating_sub(varying).max(digits);
        self.bytes.extend_from_slice(run.suffix.as_bytes());
        self.entry = self.bytes.len();
        self.repeat();
        self.first = usize::try_from(offset).unwrap_or_default();
        self.remaining = numbers;
        self.take();
    }

    /// Copies the first entry into all others and sets their last digits.
    fn repeat(&mut self) {
        let (entry, at) = (self.entry, self.shared.end);
        let size = usize::from(self.size);
        self.bytes.resize(entry * size, 0);
        let mut filled = entry;
        while filled < self.bytes.len() {
            let more = filled.min(self.bytes.len() - filled);
            self.bytes.copy_within(..more, filled);
            filled += more;
        }
        if size == 1 {
            return;
        }
        let digits = if size == 10 { 1 } else { 2 };
        let (mut tens, mut units) = (b'0', b'0');
        for name in self.bytes.chunks_exact_mut(entry.max(1)) {
            match name.get_mut(at..at + digits) {
                Some([unit]) => *unit = units,
                Some([ten, unit]) => (*ten, *unit) = (tens, units),
                _ => {}
            }
            (tens, units) = if units == b'9' { (tens + 1, b'0') } else { (tens, units + 1) };
        }
    }

    /// Marks off the entries that belong to the span.
    fn take(&mut self) {
        let room = usize::from(self.size) - self.first;
        let taken = usize::try_from(self.remaining).map_or(room, |remaining| remaining.min(room));
        self.end = self.first + taken;
        self.remaining -= u64::try_from(taken).unwrap_or_default();
    }

    /// Moves to the numbers after those of this block; false when the span is at its end.
    fn advance(&mut self) -> bool {
        if self.remaining == 0 {
            return false;
        }
        let entry = self.entry.max(1);
        let Some((first, others)) = self.bytes.split_at_mut_checked(entry) else { return false };
        let Some(digits) = first.get_mut(self.shared.clone()) else { return false };
        increment(digits);
        // A digit that is not zero did not overflow, so nothing before it changed.
        let changed = digits.iter().rposition(|digit| *digit != b'0').unwrap_or(0);
        for (at, digit) in (self.shared.start..).zip(digits.iter()).skip(changed) {
            for name in others.chunks_exact_mut(entry) {
                if let Some(byte) = name.get_mut(at) {
                    *byte = *digit;
                }
            }
        }
        self.first = 0;
        self.take();
        true
    }
}
