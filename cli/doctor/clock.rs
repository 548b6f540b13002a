//! Checks the clock: certificates and tokens are valid for a limited time, so it must be about
//! right.

use super::Finding;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// 2026-01-01: no certificate of any farm is older.
const EARLIEST_SECS: u64 = 1_767_225_600;
/// How long the two clocks are watched.
const WATCHED: Duration = Duration::from_millis(200);
/// How far they may run apart in that time: a busy machine is no fault of its clock.
const APART_MAX: Duration = Duration::from_millis(50);
/// Error that the kernel may admit to, far below what a certificate's start forgives.
const ERROR_MAX: Duration = Duration::from_secs(10);

/// All checks of the clock.
pub(crate) fn look() -> Finding {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    if now < EARLIEST_SECS {
        return Finding::fail(
            "clock",
            format!("it says {now} s since 1970, before any certificate of a farm is valid"),
            "set it: `timedatectl set-ntp true`",
        );
    }
    let apart = runs_apart();
    if apart > APART_MAX {
        return Finding::warn(
            "clock",
            format!("it moved {} ms in {} ms", (WATCHED + apart).as_millis(), WATCHED.as_millis()),
            "something sets it in steps; run only one time service, and let it slew the clock",
        );
    }
    match synchronised() {
        Some(Ok(error)) if error < ERROR_MAX => Finding::ok(
            "clock",
            format!("steady, kept in time to within {:.1} ms", error.as_secs_f64() * 1e3),
        ),
        Some(Ok(error)) => Finding::warn(
            "clock",
            format!("steady, but kept in time only to within {} s", error.as_secs()),
            "see what the time service says: `timedatectl timesync-status` or `chronyc tracking`",
        ),
        Some(Err(())) => Finding::warn(
            "clock",
            "steady; no time service keeps it",
            "`timedatectl set-ntp true`, unless the host of this container or machine keeps it",
        ),
        None => {
            Finding::ok("clock", "steady; the system does not say whether a time service keeps it")
        }
    }
}

/// Measures how far the wall clock and the monotonic clock drift apart over a while.
fn runs_apart() -> Duration {
    let (wall, steady) = (SystemTime::now(), Instant::now());
    std::thread::sleep(WATCHED);
    let steady = steady.elapsed();
    match SystemTime::now().duration_since(wall) {
        Ok(wall) => wall.abs_diff(steady),
        // It went backwards.
        Err(back) => back.duration() + steady,
    }
}

/// The largest error that the kernel admits to, or that no time service keeps the clock; None where
/// it does not say.
fn synchronised() -> Option<Result<Duration, ()>> {
    // rustix has no `adjtimex`.
    // SAFETY: all zeroes are a `timex` that asks and sets nothing.
    let mut state: libc::timex = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is to a whole `timex` of ours, the only thing written.
    let status = unsafe { libc::adjtimex(&raw mut state) };
    if status < 0 {
        return None;
    }
    if status == libc::TIME_ERROR || state.status & libc::STA_UNSYNC != 0 {
        return Some(Err(()));
    }
    Some(Ok(Duration::from_micros(u64::try_from(state.maxerror).unwrap_or(u64::MAX))))
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_clock_of_this_century_passes() {
        assert_ne!(super::look().verdict, super::super::Verdict::Fail);
    }
}
