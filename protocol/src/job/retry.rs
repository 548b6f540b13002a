//! How often and how long a farm tries before it gives a job up.

use super::SpecError;
use super::error::wrong;
use crate::limits::{ATTEMPTS_MAX, GIVE_UP_SECS_MAX};
use serde::{Deserialize, Serialize};

/// A job's own bounds for retries. None: the farm's default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RetryPolicy {
    /// Failed attempts of a unit after which its frame fails, 1 to [`ATTEMPTS_MAX`].
    pub attempts: Option<u8>,
    /// Seconds that the job waits, once every node that may have it has reached a limit of its own,
    /// 0 to [`GIVE_UP_SECS_MAX`]. Then it fails.
    pub give_up_secs: Option<u32>,
}

impl RetryPolicy {
    /// Checks the ranges.
    pub(super) fn check(&self) -> Result<(), SpecError> {
        if let Some(attempts) = self.attempts.filter(|count| !(1..=ATTEMPTS_MAX).contains(count)) {
            wrong("attempts", format!("{attempts} is not in 1 to {ATTEMPTS_MAX}"))?;
        }
        if let Some(secs) = self.give_up_secs.filter(|secs| *secs > GIVE_UP_SECS_MAX) {
            wrong("give-up", format!("{secs} s are more than {GIVE_UP_SECS_MAX} s"))?;
        }
        Ok(())
    }
}
