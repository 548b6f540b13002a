//! When units to copy are looked for. Between planned looks, a step looks whenever a node is idle,
//! unless there are many leases.

use crate::time::Moment;
use std::time::Duration;

/// Times of the next look, and of the last long one.
#[derive(Debug, Default)]
pub(crate) struct CopyLooks {
    /// Time of the next planned look.
    planned: Option<Moment>,
    /// Time of the last look through many leases.
    last_long: Moment,
}

impl CopyLooks {
    /// Plans a look; false if one is planned as early already.
    pub(crate) fn plan(&mut self, at: Moment, now: Moment) -> bool {
        let is_first = self.planned.is_none_or(|planned| planned > at || planned <= now);
        if is_first {
            self.planned = Some(at);
        }
        is_first
    }

    /// Removes the planned look, because its timer fired.
    pub(crate) fn fire(&mut self, now: Moment) {
        self.planned = self.planned.filter(|at| *at > now);
    }

    /// Begins a look through many leases. If the last one was too recent, the error says when it
    /// may begin.
    pub(crate) fn begin_long(&mut self, now: Moment, pause: Duration) -> Result<(), Moment> {
        let next = self.last_long.after(pause);
        if now < next {
            return Err(next);
        }
        self.last_long = now;
        Ok(())
    }
}
