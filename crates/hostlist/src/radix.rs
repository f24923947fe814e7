//! Sorting many rows by a number: one pass for each digit of the key that is not the same in all.

use alloc::vec::Vec;

/// Below this, comparing is faster than counting.
const FEW: usize = 512;

/// Two passes sort the numbers of a large cluster, and the counts still fit the first cache.
const DIGIT_BITS: usize = 11;

/// Sorts by `high`, then by `low`; rows with equal keys stay in the order they had.
pub(crate) fn sort<T: Copy>(rows: &mut Vec<T>, high: impl Fn(&T) -> u64, low: impl Fn(&T) -> u64) {
    if rows.len() < FEW {
        rows.sort_by_key(|row| (high(row), low(row)));
        return;
    }
    let mut spare = rows.clone();
    sort_by(rows, &mut spare, low);
    sort_by(rows, &mut spare, high);
}

fn sort_by<T: Copy>(rows: &mut Vec<T>, spare: &mut Vec<T>, key: impl Fn(&T) -> u64) {
    let Some(first) = rows.first().map(&key) else { return };
    let varying = rows.iter().fold(0, |bits, row| bits | (key(row) ^ first));
    for shift in (0..u64::BITS).step_by(DIGIT_BITS) {
        let digit = |key: u64| {
            usize::try_from((key >> shift) & ((1 << DIGIT_BITS) - 1)).unwrap_or_default()
        };
        if digit(varying) == 0 {
            continue;
        }
        let mut places = [0; 1 << DIGIT_BITS];
        for row in rows.iter() {
            if let Some(count) = places.get_mut(digit(key(row))) {
                *count += 1;
            }
        }
        let mut next = 0;
        for place in &mut places {
            (next, *place) = (next + *place, next);
        }
        for row in rows.iter() {
            let Some(place) = places.get_mut(digit(key(row))) else { continue };
            if let Some(target) = spare.get_mut(*place) {
                *target = *row;
            }
            *place += 1;
        }
        core::mem::swap(rows, spare);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sorts_as_the_standard_library_does_and_stably() {
        let mut state = 7_u64;
        let mut random = || {
            state = state.wrapping_mul(0x2d99_787a_9f5b_2e6f).wrapping_add(1);
            state.rotate_left(17)
        };
        for count in [0, 1, FEW - 1, FEW, 5000] {
            let mut rows: Vec<(u64, u64, usize)> = (0..count)
                .map(|place| {
                    (random() % 3, if place % 3 == 0 { random() } else { random() % 99 }, place)
                })
                .collect();
            let mut expected = rows.clone();
            expected.sort_by_key(|row| (row.0, row.1));
            sort(&mut rows, |row| row.0, |row| row.1);
            assert_eq!(rows, expected);
        }
    }
}
