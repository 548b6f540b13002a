//! The clock that a leader's term is counted by: time since the machine's start. Time that the
//! machine has slept counts, so that one that wakes does not take its term for its own still.

use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;

/// Returns the time since the machine's start, sleep included.
pub(crate) fn uptime() -> Duration {
    // The kernel counts from zero up.
    clock_gettime(ClockId::Boottime).try_into().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_only_grows() {
        let before = uptime();
        std::thread::sleep(Duration::from_millis(5));
        let after = uptime();
        assert!(before > Duration::ZERO && after >= before + Duration::from_millis(5));
    }
}
