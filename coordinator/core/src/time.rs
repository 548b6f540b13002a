//! A point in time, as the shell gives it. Reads no clock.

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Milliseconds since the Unix epoch. The core never goes back: a moment before the last one counts
/// as the last one.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Moment(pub u64);

impl Moment {
    /// Whole seconds since the Unix epoch.
    pub fn secs(self) -> u64 {
        self.0 / 1000
    }

    /// This much later; the end of time where it would overflow.
    pub fn after(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(duration.as_millis().try_into().unwrap_or(u64::MAX)))
    }

    /// Time since an earlier moment; zero if it is not earlier.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }
}
