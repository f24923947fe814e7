//! Sorting many rows by a number: one pass for each digit of the key that is not the same in all.

/// Below this, comparing is faster than counting.
const FEW: usize = 512;

/// Two passes sort the numbers of a large cluster, and the counts still fit the first cache.
const DIGIT_BITS: usize = 11;

fn digit_of(key: u128, shift: u32) -> usize {
    usize::try_from((key >> shift) & ((1 << DIGIT_BITS) - 1)).unwrap_or_default()
}

/// Sorts by `key`, rows with equal keys in the order they had.
pub(crate) fn sort<T: Copy>(rows: &mut Vec<T>, key: impl Fn(&T) -> u128) {
    let Some(first) = rows.first().map(&key) else { return };
    if rows.len() < FEW {
        rows.sort_by_key(key);
        return;
    }
    let varying = rows.iter().fold(0, |bits, row| bits | (key(row) ^ first));
    let mut spare = rows.clone();
    for shift in (0..u128::BITS).step_by(DIGIT_BITS) {
        let digit = |row: &T| digit_of(key(row), shift);
        if digit_of(varying, shift) == 0 {
            continue;
        }
        let mut places = [0; 1 << DIGIT_BITS];
        for row in rows.iter() {
            if let Some(count) = places.get_mut(digit(row)) {
                *count += 1;
            }
        }
        let mut next = 0;
        for place in &mut places {
            (next, *place) = (next + *place, next);
        }
        for row in rows.iter() {
            let Some(place) = places.get_mut(digit(row)) else { continue };
            if let Some(target) = spare.get_mut(*place) {
                *target = *row;
            }
            *place += 1;
        }
        std::mem::swap(rows, &mut spare);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sorts_as_the_standard_library_does_and_stably() {
        let mut state = 7_u128;
        for count in [0, 1, FEW - 1, FEW, 5000] {
            let mut rows: Vec<(u128, usize)> = Vec::new();
            for place in 0..count {
                state =
                    state.wrapping_mul(0x2d99_787a_9f5b_2e6f_0b3c_57ad_1c89_ee35).wrapping_add(1);
                rows.push((if place % 3 == 0 { state >> 100 } else { state }, place));
            }
            let mut expected = rows.clone();
            expected.sort_by_key(|row| row.0);
            sort(&mut rows, |row| row.0);
            assert_eq!(rows, expected);
        }
    }
}
