//! The time for the core, in milliseconds since the Unix epoch. It never goes back.

use std::time::{Instant, SystemTime, UNIX_EPOCH};
use tessera_core::Moment;

/// Reads the wall clock once and the monotonic clock from then on. A change of the wall clock must
/// not end leases.
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

    /// Returns the instant of a moment, for a timer. A moment in the past is now.
    pub(crate) fn instant(&self, moment: Moment) -> Instant {
        Instant::now() + moment.since(self.now())
    }
}
