//! A run of numbers as it stands in a name: low, high, and the width they are padded to.

use std::num::NonZeroU64;

/// Numbers `lo..=hi`, each printed with at least `width` digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) lo: u64,
    pub(crate) hi: u64,
    pub(crate) width: u32,
}

/// Decimal digits of `value`; one for zero.
pub(crate) fn digits(value: u64) -> u32 {
    NonZeroU64::new(value).map_or(1, |value| value.ilog10() + 1)
}

/// The largest number with this many digits.
pub(crate) fn largest_with(digits: u32) -> u64 {
    10u64.checked_pow(digits).map_or(u64::MAX, |power| power - 1)
}

impl Span {
    /// Numbers in the span; a span of all 2⁶⁴ cannot be made.
    pub(crate) fn count(self) -> u64 {
        (self.hi - self.lo).saturating_add(1)
    }

    /// Length of the lowest number as printed: the order of numbers is by this, then by value.
    pub(crate) fn printed(self) -> u32 {
        self.width.max(digits(self.lo))
    }

    /// Whether the two can share one range: one width pads both low ends as they are.
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
        let width = self.printed();
        let hi = self.hi.min(largest_with(width));
        let rest = (hi < self.hi).then(|| Self { lo: hi + 1, ..self });
        (Self { lo: self.lo, hi, width }, rest)
    }

    /// The parts of the span whose numbers are printed equally long, with that length as width.
    pub(crate) fn by_length(self) -> impl Iterator<Item = Self> {
        let mut rest = Some(self);
        std::iter::from_fn(move || {
            let (part, after) = rest?.split_length();
            rest = after;
            Some(part)
        })
    }

    /// Bytes of all its numbers together.
    pub(crate) fn bytes(self) -> u64 {
        self.by_length()
            .map(|part| part.count().saturating_mul(u64::from(part.width)))
            .fold(0, u64::saturating_add)
    }
}

/// Appends `value`, padded with zeros to `width`.
pub(crate) fn push_number(out: &mut String, value: u64, width: u32) {
    let mut digits = [b'0'; 20];
    let mut length = 0;
    let mut rest = value;
    for byte in digits.iter_mut().rev() {
        *byte = b'0' | u8::try_from(rest % 10).unwrap_or_default();
        rest /= 10;
        length += 1;
        if rest == 0 {
            break;
        }
    }
    for _ in length..width {
        out.push('0');
    }
    let start = digits.len().saturating_sub(usize::try_from(length).unwrap_or_default());
    out.push_str(
        digits.get(start..).and_then(|digits| std::str::from_utf8(digits).ok()).unwrap_or_default(),
    );
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

/// Splits a name at its trailing digits, `None` where it has none.
pub(crate) fn split_number(name: &str) -> Option<(&str, &str)> {
    let digits = name.bytes().rev().take_while(u8::is_ascii_digit).count();
    if digits == 0 { None } else { name.split_at_checked(name.len() - digits) }
}

/// The value of a string of digits, as Slurm reads it: clamped at 2⁶⁴ − 1.
pub(crate) fn clamped(digits: &str) -> u64 {
    exact(digits).unwrap_or(u64::MAX)
}

/// The value of a string of digits, if it fits.
pub(crate) fn exact(digits: &str) -> Option<u64> {
    /// So many digits always fit.
    const SAFE: usize = 19;
    let digit = |byte: u8| u64::from(byte & 0xf);
    if digits.len() <= SAFE {
        return Some(digits.bytes().fold(0, |value, byte| value * 10 + digit(byte)));
    }
    digits.bytes().try_fold(0u64, |value, byte| value.checked_mul(10)?.checked_add(digit(byte)))
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

    #[test]
    fn numbers_are_written_padded() {
        for (value, width, text) in
            [(0, 1, "0"), (7, 3, "007"), (100, 1, "100"), (u64::MAX, 21, "018446744073709551615")]
        {
            let mut out = String::new();
            push_number(&mut out, value, width);
            assert_eq!(out, text);
        }
    }
}
