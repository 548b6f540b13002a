//! Moments as people read and write them.

/// A moment as `2026-11-21 19:30:05Z`, from seconds since the Unix epoch.
pub fn utc(secs: u64) -> String {
    let (year, month, day) = date(secs);
    let of_day = secs % 86_400;
    let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}Z")
}

/// A date and a time of the day, of no time zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Civil {
    /// Year, 1970 to 9999.
    pub year: u64,
    /// Month, 1 to 12.
    pub month: u64,
    /// Day of the month, from 1.
    pub day: u64,
    /// Second of the day.
    pub second: u64,
}

impl Civil {
    /// Reads `2026-12-01 20:00`, `2026-12-01T20:00` or either with seconds; None if it is no date
    /// from 1970 to 9999.
    pub fn parse(text: &str) -> Option<Self> {
        let (date, time) = text.split_once([' ', 'T'])?;
        let mut parts = date.splitn(3, '-');
        let mut next = |digits| number(parts.next()?, digits);
        let (year, month, day) = (next(4)?, next(2)?, next(2)?);
        let civil = Self { year, month, day, second: second_of_day(time)? };
        // What is no day comes back as another one.
        let is_day = year >= 1970 && (1..=12).contains(&month) && day >= 1;
        (is_day && Self::of(civil.utc_secs()) == civil).then_some(civil)
    }

    /// Returns the date and time of a moment in UTC, from seconds since the Unix epoch.
    pub fn of(secs: u64) -> Self {
        let (year, month, day) = date(secs);
        Self { year, month, day, second: secs % 86_400 }
    }

    /// Returns the moment in UTC, in seconds since the Unix epoch.
    pub fn utc_secs(self) -> u64 {
        secs_of(self.year, self.month, self.day) + self.second
    }
}

/// Reads `20:00` or `20:00:30` as the second of a day.
pub fn second_of_day(time: &str) -> Option<u64> {
    let mut parts = time.splitn(3, ':');
    let (hour, minute) = (number(parts.next()?, 2)?, number(parts.next()?, 2)?);
    let second = parts.next().map_or(Some(0), |text| number(text, 2))?;
    (hour < 24 && minute < 60 && second < 60).then_some(hour * 3600 + minute * 60 + second)
}

/// Reads a number of so many digits.
fn number(text: &str, digits: usize) -> Option<u64> {
    let is_number = text.len() == digits && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| is_number)
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

    #[test]
    fn dates_that_people_write_are_read() {
        let secs = |text: &str| Civil::parse(text).map(Civil::utc_secs);
        assert_eq!(secs("2026-11-21 19:30:05"), Some(1_795_289_405));
        assert_eq!(secs("2026-11-21T19:30"), Some(1_795_289_400));
        assert_eq!(secs("1970-01-01 00:00"), Some(0));
        assert_eq!(secs("9999-12-31 23:59:59"), Some(crate::limits::NOT_BEFORE_MAX));
        assert!(secs("2028-02-29 00:00").is_some());
        let wrong =
            ["2027-02-29 00:00", "2026-13-01 00:00", "2026-11-00 00:00", "1969-12-31 00:00"];
        let malformed = ["2026-11-21", "2026-11-21 24:00", "26-11-21 19:30", "2026-11-21 1:30", ""];
        let more = ["2026-11-21 19:30:05:01", "2026-11-21 +9:30", "2026-11-21-01 19:30"];
        for text in wrong.into_iter().chain(malformed).chain(more) {
            assert_eq!(Civil::parse(text), None, "{text}");
        }
        assert_eq!(second_of_day("00:01:02"), Some(62));
    }
}
