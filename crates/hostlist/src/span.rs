//! A run of numbers as it stands in a name: low, high, and the width they are padded to.

use crate::digits::{MAX_DIGITS, digits};

/// Numbers `lo..=hi`, each printed with at least `width` digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) lo: u64,
    pub(crate) hi: u64,
    pub(crate) width: u32,
}

/// The largest number with this many digits.
pub(crate) fn largest_with(digits: u32) -> u64 {
    #[expect(clippy::indexing_slicing, reason = "evaluated by the compiler")]
    const LARGEST: [u64; MAX_DIGITS] = {
        let mut table = [0; MAX_DIGITS];
        let mut digits = 1;
        while digits < MAX_DIGITS {
            table[digits] = table[digits - 1] * 10 + 9;
            digits += 1;
        }
        table
    };
    usize::try_from(digits).ok().and_then(|digits| LARGEST.get(digits)).copied().unwrap_or(u64::MAX)
}

impl Span {
    /// Numbers in the span; a span of all 2⁶⁴ cannot be made.
    pub(crate) fn count(self) -> u64 {
        (self.hi - self.lo).saturating_add(1)
    }

    /// Length of the lowest number as printed: the order of numbers is by this, then by value.
    pub(crate) fn printed(self) -> u32 {
        if self.lo <= largest_with(self.width) { self.width } else { digits(self.lo) }
    }

    /// True if the two can share one range: one width pads both low ends as they are.
    ///
    /// Only the width of the lower one can do so: a wider one would pad the lower end anew.
    pub(crate) fn joins(self, next: Self) -> bool {
        let padding = |width: u32, value: u64| width.saturating_sub(digits(value));
        self.width == next.width || padding(self.width, next.lo) == padding(next.width, next.lo)
    }

    /// Takes in the span that follows at once, if one width can print both.
    pub(crate) fn absorb(&mut self, next: Self) -> bool {
        let follows = self.hi.checked_add(1) == Some(next.lo) && self.joins(next);
        if follows {
            self.hi = next.hi;
        }
        follows
    }

    /// The first numbers, all printed equally long and with that length as width, and the rest.
    pub(crate) fn split_length(self) -> (Self, Option<Self>) {
        if self.hi <= largest_with(self.width) {
            return (self, None);
        }
        let width = self.printed();
        let hi = self.hi.min(largest_with(width));
        let rest = (hi < self.hi).then(|| Self { lo: hi + 1, ..self });
        (Self { lo: self.lo, hi, width }, rest)
    }

    /// The parts of the span whose numbers are printed equally long, with that length as width.
    pub(crate) fn by_length(self) -> impl Iterator<Item = Self> {
        let mut rest = Some(self);
        core::iter::from_fn(move || {
            let (part, after) = rest?.split_length();
            rest = after;
            Some(part)
        })
    }

    /// The first `count` numbers, and the rest.
    pub(crate) fn split_at(self, count: u64) -> (Self, Option<Self>) {
        if self.count() <= count {
            return (self, None);
        }
        let lo = self.lo + count;
        (Self { hi: lo - 1, ..self }, Some(Self { lo, ..self }))
    }

    /// The span in pieces of `count` numbers, the last one possibly smaller.
    #[cfg(feature = "serde")]
    pub(crate) fn pieces(self, count: u64) -> impl Iterator<Item = Self> {
        let mut rest = Some(self);
        core::iter::from_fn(move || {
            let (piece, after) = rest?.split_at(count);
            rest = after;
            Some(piece)
        })
    }

    /// Bytes of all its numbers together.
    pub(crate) fn bytes(self) -> u64 {
        if self.hi <= largest_with(self.width) {
            return self.count().saturating_mul(u64::from(self.width));
        }
        self.by_length()
            .map(|part| part.count().saturating_mul(u64::from(part.width)))
            .fold(0, u64::saturating_add)
    }
}

/// Adds one to the ASCII digits that end `text`; false when they overflow.
pub(crate) fn increment(text: &mut [u8]) -> bool {
    for byte in text.iter_mut().rev() {
        match byte {
            b'0'..=b'8' => {
                *byte += 1;
                return true;
            }
            _ => *byte = b'0',
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(lo: u64, hi: u64, width: u32) -> Span {
        Span { lo, hi, width }
    }

    #[test]
    fn widths_join_when_neither_low_end_is_padded_anew() {
        for (a, b, joins) in [
            (span(9, 9, 1), span(10, 10, 2), true),
            (span(9, 9, 2), span(10, 10, 2), true),
            (span(9, 9, 1), span(10, 10, 3), false),
            (span(99, 99, 3), span(100, 100, 3), true),
            (span(9, 9, 2), span(10, 10, 3), false),
            (span(1, 2, 1), span(3, 3, 2), false),
        ] {
            assert_eq!(a.joins(b), joins, "{a:?} {b:?}");
        }
    }

    #[test]
    fn parts_of_equal_length() {
        let parts: Vec<_> = span(8, 100, 2).by_length().collect();
        assert_eq!(parts, [span(8, 99, 2), span(100, 100, 3)]);
        let top: Vec<_> = span(u64::MAX - 1, u64::MAX, 1).by_length().collect();
        assert_eq!(top, [span(u64::MAX - 1, u64::MAX, 20)]);
    }
}
