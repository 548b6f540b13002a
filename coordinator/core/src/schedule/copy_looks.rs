//! When units to copy are looked for. Between planned looks, a step looks whenever a node is idle,
//! unless there are many leases.

use crate::time::Moment;
use std::time::Duration;

/// The next look, and the last of the long ones.
#[derive(Debug, Default)]
pub(crate) struct CopyLooks {
    /// When units to copy are looked for again.
    planned: Option<Moment>,
    /// When many leases were looked through last.
    last_long: Moment,
}

impl CopyLooks {
    /// Plans a look; false where one is planned that is as early.
    pub(crate) fn plan(&mut self, at: Moment, now: Moment) -> bool {
        let is_first = self.planned.is_none_or(|planned| planned > at || planned <= now);
        if is_first {
            self.planned = Some(at);
        }
        is_first
    }

    /// The timer of a look has fired.
    pub(crate) fn fire(&mut self, now: Moment) {
        self.planned = self.planned.filter(|at| *at > now);
    }

    /// Begins to look through many leases. The error says when that may be, where it is too soon
    /// after the last time.
    pub(crate) fn begin_long(&mut self, now: Moment, pause: Duration) -> Result<(), Moment> {
        let next = self.last_long.after(pause);
        if now < next {
            return Err(next);
        }
        self.last_long = now;
        Ok(())
    }
}
