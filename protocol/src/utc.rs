//! Moments as people read them.

/// A moment as `2026-11-21 19:30:05Z`, from seconds since the Unix epoch.
pub fn utc(secs: u64) -> String {
    let (year, month, day) = date(secs);
    let of_day = secs % 86_400;
    let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}Z")
}

/// Year, month (1 to 12) and day (from 1) of a moment, from seconds since the Unix epoch (the civil
/// calendar by days from 0000-03-01).
pub fn date(secs: u64) -> (u64, u64, u64) {
    let days = secs / 86_400 + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_index = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month_index + 2) / 5 + 1;
    let month = if month_index < 10 { month_index + 3 } else { month_index - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

/// Seconds from the Unix epoch to the first moment of a day, by its year (from 1970), month (1 to
/// 12) and day (from 1).
pub fn secs_of(year: u64, month: u64, day: u64) -> u64 {
    let year = year - u64::from(month <= 2);
    let (era, year_of_era) = (year / 400, year % 400);
    let month_index = (month + 9) % 12;
    let of_year = (153 * month_index + 2) / 5 + day - 1;
    let of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + of_year;
    (era * 146_097 + of_era).saturating_sub(719_468) * 86_400
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_dates() {
        assert_eq!(utc(0), "1970-01-01 00:00:00Z");
        assert_eq!(utc(951_782_399), "2000-02-28 23:59:59Z");
        assert_eq!(utc(951_782_400), "2000-02-29 00:00:00Z");
        assert_eq!(utc(1_795_289_405), "2026-11-21 19:30:05Z");
        for days in (0..40_000).step_by(17) {
            let secs = days * 86_400;
            let (year, month, day) = date(secs + 86_399);
            assert_eq!(secs_of(year, month, day), secs, "{year}-{month}-{day}");
        }
    }
}
