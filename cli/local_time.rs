//! The clock on the wall of this machine: its time zone, or that of `TZ`.

use std::time::{SystemTime, UNIX_EPOCH};
use tessera_protocol::utc::Civil;

/// A moment by the clock of this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WallTime {
    pub(crate) civil: Civil,
    /// 0 is Monday.
    pub(crate) weekday: u8,
}

/// Seconds since the Unix epoch.
pub(crate) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// Returns what the clock on the wall shows at a moment, in seconds since the Unix epoch.
pub(crate) fn wall_time(secs: u64) -> WallTime {
    let at = libc::time_t::try_from(secs).unwrap_or(libc::time_t::MAX);
    let mut broken_down = empty();
    // SAFETY: both pointers are valid for the call, and it keeps none of them.
    unsafe { libc::localtime_r(&raw const at, &raw mut broken_down) };
    let field = |value: i32| u64::try_from(value).unwrap_or(0);
    let second = field(broken_down.tm_hour) * 3600 + field(broken_down.tm_min) * 60;
    let civil = Civil {
        year: field(broken_down.tm_year.saturating_add(1900)),
        month: field(broken_down.tm_mon) + 1,
        day: field(broken_down.tm_mday),
        // A leap second is the second before it.
        second: second + field(broken_down.tm_sec).min(59),
    };
    // `tm` counts days from Sunday on.
    WallTime { civil, weekday: (broken_down.tm_wday + 6).rem_euclid(7) as u8 }
}

/// Returns the moment at which the clock on the wall shows a time, in seconds since the Unix epoch;
/// None before it. A time that is skipped in spring is an hour later.
pub(crate) fn secs_of(civil: Civil) -> Option<u64> {
    let field = |value: u64| i32::try_from(value).ok();
    let mut broken_down = empty();
    broken_down.tm_year = field(civil.year)? - 1900;
    broken_down.tm_mon = field(civil.month)? - 1;
    broken_down.tm_mday = field(civil.day)?;
    broken_down.tm_hour = field(civil.second / 3600)?;
    broken_down.tm_min = field(civil.second / 60 % 60)?;
    broken_down.tm_sec = field(civil.second % 60)?;
    // Whether summer time holds then is for the rules of the zone to say.
    broken_down.tm_isdst = -1;
    // SAFETY: the pointer is valid for the call, which writes to it and does not keep it.
    let secs = unsafe { libc::mktime(&raw mut broken_down) };
    u64::try_from(secs).ok()
}

fn empty() -> libc::tm {
    // SAFETY: a `tm` is plain numbers and a pointer, for which zero is valid.
    unsafe { std::mem::zeroed() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_shows_what_it_was_asked_for() {
        // Midsummer and midwinter, in whichever zone this is.
        for secs in [1_782_000_000, 1_795_289_405] {
            let shown = wall_time(secs);
            assert_eq!(secs_of(shown.civil), Some(secs), "{shown:?}");
            assert!(shown.civil.utc_secs().abs_diff(secs) <= 15 * 3600, "{shown:?}");
        }
        assert!(now() > 1_782_000_000);
    }
}
