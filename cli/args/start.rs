//! When a job may begin, as people write it.

use super::time::parse_ttl;
use crate::local_time::{self, wall_time};
use tessera_protocol::utc::{Civil, second_of_day};

/// Seconds of a day.
const DAY: u64 = 86_400;

/// Seconds since the Unix epoch of `20:00` (the next time that this machine's clock shows it),
/// `2026-12-01T20:00` by that clock, the same with `Z` in UTC, or `+2h` from now on.
pub fn parse_start(text: &str) -> Result<u64, String> {
    start_of(text, local_time::now())
}

fn start_of(text: &str, now: u64) -> Result<u64, String> {
    let wrong = || {
        format!(
            "`{text}` is no time; write 20:00, 2026-12-01T20:00 (by the clock of this machine, or \
             with Z in UTC) or +2h"
        )
    };
    if let Some(later) = text.strip_prefix('+') {
        return parse_ttl(later).map(|secs| now + secs).map_err(|_| wrong());
    }
    if let Some(second) = second_of_day(text) {
        return next(second, now).ok_or_else(wrong);
    }
    let secs = match text.strip_suffix('Z') {
        Some(text) => Civil::parse(text).map(Civil::utc_secs),
        None => Civil::parse(text).and_then(local_time::secs_of),
    };
    secs.ok_or_else(wrong)
}

/// Returns the next moment at which the clock on the wall shows this second of a day.
fn next(second: u64, now: u64) -> Option<u64> {
    let on = |day: u64| local_time::secs_of(Civil { second, ..wall_time(day).civil });
    on(now).filter(|today| *today > now).or_else(|| {
        // Noon is a day later whatever the clocks are set by.
        let noon = local_time::secs_of(Civil { second: DAY / 2, ..wall_time(now).civil })?;
        on(noon + DAY)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_795_289_405;

    #[test]
    fn times_are_read_as_people_write_them() {
        assert_eq!(start_of("+90s", NOW), Ok(NOW + 90));
        assert_eq!(start_of("2026-12-01T20:00Z", NOW), Ok(1_796_155_200));
        assert_eq!(start_of("2026-12-01 20:00:00Z", NOW), Ok(1_796_155_200));
        let by_clock = start_of("2026-12-01T20:00", NOW).unwrap();
        assert_eq!(wall_time(by_clock).civil.second, 20 * 3600);
        for hour in 0..24 {
            let at = start_of(&format!("{hour:02}:30"), NOW).unwrap();
            assert!((NOW + 1..=NOW + 25 * 3600).contains(&at), "{hour}: {at}");
            assert_eq!(wall_time(at).civil.second, hour * 3600 + 1800);
        }
        for wrong in
            ["", "soon", "24:00", "8pm", "+", "+2", "+-2h", "2026-12-01", "2026-02-30T01:00"]
        {
            let text = start_of(wrong, NOW).unwrap_err();
            assert!(text.starts_with(&format!("`{wrong}` is no time; write ")), "{text}");
        }
    }
}
