//! Days and months in UTC, by which clouds bill.

/// Milliseconds since 1970, as in events.
pub type Millis = u64;

const DAY: Millis = 86_400_000;

/// The start of the day.
#[must_use]
pub fn day_start(at: Millis) -> Millis {
    at - at % DAY
}

/// The start of the next day.
#[must_use]
pub fn next_day(at: Millis) -> Millis {
    day_start(at).saturating_add(DAY)
}

/// The start of the month.
#[must_use]
pub fn month_start(at: Millis) -> Millis {
    let (_, _, day) = date(at / DAY);
    day_start(at) - (day - 1) * DAY
}

/// The start of the next month.
#[must_use]
pub fn next_month(at: Millis) -> Millis {
    // 31 days after the first day of a month is in the next month.
    month_start(month_start(at).saturating_add(31 * DAY))
}

/// The day, such as `2026-11-18`.
#[must_use]
pub fn day_name(at: Millis) -> String {
    let (year, month, day) = date(at / DAY);
    format!("{year:04}-{month:02}-{day:02}")
}

/// Year, month and day of a number of days since 1970-01-01:
/// <https://howardhinnant.github.io/date_algorithms.html#civil_from_days>.
#[must_use]
pub fn date(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (year_of_era + era * 400 + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_and_months_begin_where_the_calendar_says() {
        let hour = 3_600_000;
        for (at, day, month_days, next) in [
            (0, "1970-01-01", 0, "1970-02-01"),
            (951_825_600_000, "2000-02-29", 28, "2000-03-01"),
            (1_794_830_501_000, "2026-11-16", 15, "2026-12-01"),
            (4_107_542_399_999, "2100-02-28", 27, "2100-03-01"),
            (1_798_761_599_999, "2026-12-31", 30, "2027-01-01"),
        ] {
            assert_eq!(day_name(at), day);
            assert_eq!(day_start(at) - month_start(at), month_days * DAY, "{day}");
            assert_eq!(day_name(next_month(at)), next);
            assert_eq!(day_start(day_start(at) + 23 * hour), day_start(at));
            assert_eq!(next_day(at) - day_start(at), DAY);
        }
    }
}
