//! The order in which Slurm sorts prefixes.

use core::cmp::Ordering;

/// Compares as Slurm does: runs of digits by value, or left-aligned if either begins with a zero; other
/// bytes as C's signed `char`, so that non-ASCII comes before everything, even before the end.
pub(crate) fn compare(left: &str, right: &str) -> Ordering {
    let (mut left, mut right) = (left.as_bytes(), right.as_bytes());
    loop {
        let (Some((&a, rest_a)), Some((&b, rest_b))) = (left.split_first(), right.split_first())
        else {
            return signed(left.first()).cmp(&signed(right.first()));
        };
        if !(a.is_ascii_digit() && b.is_ascii_digit()) {
            match signed(Some(&a)).cmp(&signed(Some(&b))) {
                Ordering::Equal => (left, right) = (rest_a, rest_b),
                unequal => return unequal,
            }
            continue;
        }
        let (run_a, after_a) = left.split_at(run(left));
        let (run_b, after_b) = right.split_at(run(right));
        // A run with a leading zero is a fraction to Slurm; a slice compares left-aligned by itself.
        let by_length =
            if a == b'0' || b == b'0' { Ordering::Equal } else { run_a.len().cmp(&run_b.len()) };
        match by_length.then_with(|| run_a.cmp(run_b)) {
            Ordering::Equal => (left, right) = (after_a, after_b),
            unequal => return unequal,
        }
    }
}

fn run(text: &[u8]) -> usize {
    text.iter().take_while(|byte| byte.is_ascii_digit()).count()
}

fn signed(byte: Option<&u8>) -> i8 {
    byte.map_or(0, |byte| i8::from_ne_bytes([*byte]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_by_value_zeros_left_aligned_and_non_ascii_first() {
        let sorted =
            ["é", "", "2x", "N", "a", "n", "n00", "n01", "n1", "n2", "n9", "n10", "n10a", "na"];
        for (i, a) in sorted.iter().enumerate() {
            for (j, b) in sorted.iter().enumerate() {
                assert_eq!(compare(a, b), i.cmp(&j), "{a} {b}");
            }
        }
    }
}
