//! The time as the core wants it: milliseconds since the Unix epoch that never go back.

use std::time::{Instant, SystemTime, UNIX_EPOCH};
use tessera_core::Moment;

/// Reads the wall clock once, and the monotonic one from then on: a clock that is set must not end
/// leases.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    started_at_millis: u64,
    started: Instant,
}

impl Clock {
    pub(crate) fn start() -> Self {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { started_at_millis: since_epoch.as_millis() as u64, started: Instant::now() }
    }

    pub(crate) fn now(&self) -> Moment {
        Moment(self.started_at_millis + self.started.elapsed().as_millis() as u64)
    }

    /// The instant of a moment, for a timer; at once where it has passed.
    pub(crate) fn instant(&self, moment: Moment) -> Instant {
        Instant::now() + moment.since(self.now())
    }
}
