//! Reading and writing digits, eight at a time where that can be.

use alloc::vec::Vec;
use core::num::NonZeroU64;

/// Digits of the largest `u64`.
pub(crate) const MAX_DIGITS: usize = 20;

/// Decimal digits of `value`; one for zero.
pub(crate) fn digits(value: u64) -> u32 {
    NonZeroU64::new(value).map_or(1, |value| value.ilog10() + 1)
}

/// `0` in each byte: exclusive or with it turns digits into their values, all else into more than nine.
const ZEROS: u64 = u64::from_ne_bytes([b'0'; 8]);
const HIGH_BITS: u64 = u64::from_ne_bytes([0x80; 8]);
/// Carries every value above nine into the high bit of its byte.
const ABOVE_NINE: u64 = u64::from_ne_bytes([0x80 - 10; 8]);

/// So many digits always fit a `u64`.
const SAFE: usize = 19;

/// The digits at the start of `text`: how many, and their value clamped at 2⁶⁴ − 1 as Slurm has it.
pub(crate) fn leading(text: &str) -> (usize, u64) {
    if let Some((chunk, after)) = text.as_bytes().split_first_chunk() {
        let values = u64::from_le_bytes(*chunk) ^ ZEROS;
        let count = others(values).trailing_zeros() / 8;
        if count == 0 {
            return (0, 0);
        }
        if count < 8 || !after.first().is_some_and(u8::is_ascii_digit) {
            return (
                usize::try_from(count).unwrap_or_default(),
                number(values << (64 - 8 * count)),
            );
        }
    }
    let count = text.bytes().take_while(u8::is_ascii_digit).count();
    (count, clamped(text.get(..count).unwrap_or_default()))
}

/// The digits at the end of `text`: how many, and their value clamped at 2⁶⁴ − 1 as Slurm has it.
pub(crate) fn trailing(text: &str) -> (usize, u64) {
    if let Some((before, chunk)) = text.as_bytes().split_last_chunk() {
        let values = u64::from_le_bytes(*chunk) ^ ZEROS;
        let count = others(values).leading_zeros() / 8;
        if count == 0 {
            return (0, 0);
        }
        if count < 8 || !before.last().is_some_and(u8::is_ascii_digit) {
            let kept = values & (u64::MAX << (64 - 8 * count));
            return (usize::try_from(count).unwrap_or_default(), number(kept));
        }
    }
    let count = text.bytes().rev().take_while(u8::is_ascii_digit).count();
    (count, clamped(text.get(text.len() - count..).unwrap_or_default()))
}

/// The high bit of each byte that is not a digit's value.
fn others(values: u64) -> u64 {
    (((values & !HIGH_BITS) + ABOVE_NINE) | values) & HIGH_BITS
}

/// The number whose digits are the bytes of `values`, the first digit lowest.
fn number(values: u64) -> u64 {
    let pairs = (values.wrapping_mul(10).wrapping_add(values >> 8)) & 0x00ff_00ff_00ff_00ff;
    let fours = (pairs.wrapping_mul(100).wrapping_add(pairs >> 16)) & 0x0000_ffff_0000_ffff;
    (fours.wrapping_mul(10_000).wrapping_add(fours >> 32)) & 0xffff_ffff
}

fn clamped(digits: &str) -> u64 {
    exact(digits).unwrap_or(u64::MAX)
}

/// The value of a string of digits, if it fits.
pub(crate) fn exact(digits: &str) -> Option<u64> {
    let digit = |byte: u8| u64::from(byte & 0xf);
    if digits.len() <= SAFE {
        return Some(digits.bytes().fold(0, |value, byte| value * 10 + digit(byte)));
    }
    digits.bytes().try_fold(0u64, |value, byte| value.checked_mul(10)?.checked_add(digit(byte)))
}

/// Appends `value`, padded with zeros to `width`.
pub(crate) fn push_number(out: &mut Vec<u8>, value: u64, width: u32) {
    if value < 100_000_000 && width <= 8 {
        let values = eight_digits(value);
        let length = width.max(8 - values.trailing_zeros().min(56) / 8);
        let start = out.len();
        // Eight bytes at a fixed length cost less than the few that are wanted at a varying one.
        out.extend_from_slice(&((values | ZEROS) >> (64 - 8 * length)).to_le_bytes());
        out.truncate(start + usize::try_from(length).unwrap_or_default());
        return;
    }
    let mut digits = [b'0'; MAX_DIGITS];
    let mut rest = value;
    for byte in digits.iter_mut().rev() {
        *byte |= u8::try_from(rest % 10).unwrap_or_default();
        rest /= 10;
    }
    let length = usize::try_from(width.max(self::digits(value))).unwrap_or(usize::MAX);
    if let Some(zeros) = length.checked_sub(MAX_DIGITS) {
        out.extend(core::iter::repeat_n(b'0', zeros));
    }
    out.extend_from_slice(digits.get(MAX_DIGITS.saturating_sub(length)..).unwrap_or_default());
}

/// The eight digits of a number below 10⁸ as the bytes of one word, the first digit lowest: the word is
/// halved into fours, pairs and digits, all of them at once.
fn eight_digits(value: u64) -> u64 {
    let fours = (value / 10_000) | (value % 10_000) << 32;
    let hundreds = ((fours * 10_486) >> 20) & 0x0000_007f_0000_007f;
    let pairs = hundreds | (fours - 100 * hundreds) << 16;
    let tens = ((pairs * 103) >> 10) & 0x000f_000f_000f_000f;
    tens | (pairs - 10 * tens) << 8
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn numbers_are_written_padded() {
        for (value, width, text) in [
            (0, 1, "0"),
            (7, 3, "007"),
            (100, 1, "100"),
            (99_999_999, 8, "99999999"),
            (100_000_000, 8, "100000000"),
            (5, 9, "000000005"),
            (u64::MAX, 21, "018446744073709551615"),
        ] {
            let mut out = Vec::new();
            push_number(&mut out, value, width);
            assert_eq!(String::from_utf8(out).unwrap(), text);
        }
    }

    proptest! {
        #[test]
        fn numbers_are_written_as_the_standard_library_writes_them(
            value in prop_oneof![0..200_u64, 0..200_000_000_u64, any::<u64>()], width in 0..25_u32
        ) {
            let mut out = Vec::new();
            push_number(&mut out, value, width);
            let expected = format!("{value:0width$}", width = usize::try_from(width).unwrap());
            prop_assert_eq!(String::from_utf8(out).unwrap(), expected);
        }

        #[test]
        fn eight_at_a_time_reads_what_one_at_a_time_reads(
            other in "[^0-9]?", digits in "[0-9]{0,24}", text in "[ -~é/:]{0,12}"
        ) {
            let value = digits.parse().unwrap_or(if digits.is_empty() { 0 } else { u64::MAX });
            let front = format!("{digits}{other}");
            prop_assert_eq!(leading(&front), (digits.len(), value));
            let back = format!("{text}{other}{digits}");
            let count = back.bytes().rev().take_while(u8::is_ascii_digit).count();
            prop_assert_eq!(trailing(&back).0, count);
            prop_assert_eq!(trailing(&format!("n{digits}")), (digits.len(), value));
            prop_assert_eq!(leading(&format!("{digits}-{text}")), (digits.len(), value));
        }
    }
}
