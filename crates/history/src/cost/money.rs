//! Exact amounts of money.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign};

/// Millionths in one unit of a currency.
const MICRO: u64 = 1_000_000;

/// Milliseconds in an hour.
const HOUR: u128 = 3_600_000;

/// One hundredth of a unit, in the unit of a [`Cost`].
const CENT: u128 = HOUR * 10_000;

/// Maximum whole units of a price or limit, far below an overflow.
const MOST_UNITS: u64 = 1_000_000_000_000;

/// A price per hour or another amount from a configuration, in millionths of the currency's unit.
///
/// ```
/// use history::cost::Price;
///
/// let price: Price = "0.0638".parse().unwrap();
/// assert_eq!(price, Price::from_micros(63_800));
/// assert!("0.00000001".parse::<Price>().is_err(), "more than six decimals");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Price(u64);

/// An error for an invalid amount.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no amount of at most six decimal places")]
pub struct BadPrice;

impl Price {
    /// Creates a price from millionths.
    #[must_use]
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros)
    }

    /// The cost at this price for a number of milliseconds.
    #[must_use]
    pub fn during(self, millis: u64) -> Cost {
        Cost(u128::from(self.0) * u128::from(millis))
    }

    /// The amount as a [`Cost`], for comparisons with spending.
    #[must_use]
    pub fn amount(self) -> Cost {
        Cost(u128::from(self.0) * HOUR)
    }

    /// Multiplies the price.
    #[must_use]
    pub fn times(self, count: u64) -> Self {
        Self(self.0.saturating_mul(count))
    }

    /// Adds two prices.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// A percentage of the price, rounded to the nearest millionth.
    #[must_use]
    pub fn percent(self, percent: u64) -> Self {
        let micros = (u128::from(self.0) * u128::from(percent) + 50) / 100;
        Self(u64::try_from(micros).unwrap_or(u64::MAX))
    }
}

impl std::str::FromStr for Price {
    type Err = BadPrice;

    fn from_str(text: &str) -> Result<Self, BadPrice> {
        let (whole, part) = text.split_once('.').unwrap_or((text, ""));
        let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        if whole.is_empty() || part.len() > 6 || !digits(whole) || !digits(part) {
            return Err(BadPrice);
        }
        let units: u64 = whole.parse().map_err(|_| BadPrice)?;
        let micros: u64 = format!("{part:0<6}").parse().map_err(|_| BadPrice)?;
        if units > MOST_UNITS {
            return Err(BadPrice);
        }
        Ok(Self(units * MICRO + micros))
    }
}

impl fmt::Display for Price {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (units, micros) = (self.0 / MICRO, self.0 % MICRO);
        let part = format!("{micros:06}");
        let part = part.trim_end_matches('0');
        f.pad(&format!("{units}.{part:0<2}"))
    }
}

/// A cost: a sum of hourly prices times milliseconds, which is rounded only when it is displayed.
///
/// ```
/// use history::cost::{Cost, Price};
///
/// let price: Price = "0.10".parse().unwrap();
/// let thirds = [price.during(1_200_000); 3];
/// assert_eq!(thirds.into_iter().sum::<Cost>(), price.amount());
/// assert_eq!(price.amount().to_string(), "0.10");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cost(u128);

impl Cost {
    /// No cost.
    pub const ZERO: Self = Self(0);

    /// Hundredths of the currency's unit, rounded half up.
    #[must_use]
    pub fn cents(self) -> u128 {
        (self.0 + CENT / 2) / CENT
    }

    /// As a number for programs, in units of the currency to the hundredth.
    #[must_use]
    pub fn units(self) -> f64 {
        let number = |part: u128| f64::from(u32::try_from(part).unwrap_or(u32::MAX));
        number(self.cents() / 100) + number(self.cents() % 100) / 100.0
    }

    /// Subtracts a cost, down to zero.
    #[must_use]
    pub fn less(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// A percentage of the cost.
    #[must_use]
    pub fn percent(self, percent: u64) -> Self {
        Self(self.0 / 100 * u128::from(percent) + self.0 % 100 * u128::from(percent) / 100)
    }

    /// A fraction of the cost, such as 3 of 8 cores, rounded down. The caller assigns the remainder.
    pub(super) fn part(self, share: u64, of: u64) -> Self {
        let of = u128::from(of.max(1));
        Self(self.0 / of * u128::from(share) + self.0 % of * u128::from(share) / of)
    }
}

impl Add for Cost {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Cost {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sum for Cost {
    fn sum<I: Iterator<Item = Self>>(costs: I) -> Self {
        costs.fold(Self::ZERO, Add::add)
    }
}

/// Formats units and hundredths, such as `12.30`.
impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&in_units(self.cents()))
    }
}

/// Formats hundredths as units, such as `12.30`.
pub(super) fn in_units(cents: u128) -> String {
    format!("{}.{:02}", cents / 100, cents % 100)
}

/// Rounds each part to hundredths, so that they add up to the rounded whole.
#[must_use]
pub fn in_cents(parts: &[Cost]) -> Vec<u128> {
    apportion(parts, parts.iter().copied().sum::<Cost>().cents())
}

/// Rounds each part to hundredths, so that they add up to this total: the parts with the largest remainders are rounded up.
pub(super) fn apportion(parts: &[Cost], whole: u128) -> Vec<u128> {
    let mut cents: Vec<u128> = parts.iter().map(|part| part.0 / CENT).collect();
    let missing = whole.saturating_sub(cents.iter().sum());
    let missing = usize::try_from(missing).unwrap_or(usize::MAX);
    let mut by_loss: Vec<(u128, &mut u128)> =
        parts.iter().map(|part| part.0 % CENT).zip(&mut cents).collect();
    by_loss.sort_by_key(|(loss, _)| std::cmp::Reverse(*loss));
    for (_, cents) in by_loss.into_iter().take(missing) {
        *cents += 1;
    }
    cents
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn amounts_are_read_exactly_or_not_at_all() {
        for (text, micros) in [
            ("0", 0),
            ("3", 3_000_000),
            ("0.0015", 1_500),
            ("12.345678", 12_345_678),
            ("1.", 1_000_000),
        ] {
            assert_eq!(text.parse(), Ok(Price::from_micros(micros)), "{text}");
        }
        for text in ["", ".5", "-1", "1e3", "0.1234567", "1,5", "1.2.3", "9999999999999"] {
            assert_eq!(text.parse::<Price>(), Err(BadPrice), "{text}");
        }
        let printed =
            ["0", "3", "0.0015", "12.3"].map(|text| text.parse::<Price>().unwrap().to_string());
        assert_eq!(printed, ["0.00", "3.00", "0.0015", "12.30"]);
    }

    proptest! {
        #[test]
        fn rounded_parts_make_the_rounded_whole(micros in prop::collection::vec((0_u64..1 << 40, 0_u64..1 << 33), 0..40)) {
            let parts: Vec<Cost> =
                micros.iter().map(|&(price, millis)| Price::from_micros(price).during(millis)).collect();
            let cents = in_cents(&parts);
            prop_assert_eq!(cents.iter().sum::<u128>(), parts.iter().copied().sum::<Cost>().cents());
            for (part, cents) in parts.iter().zip(cents) {
                prop_assert!(part.cents().abs_diff(cents) <= 1);
            }
        }
    }
}
