//! Which unit each device works on: what a line of the device is about.

use crate::device::CancelToken;
use tessera_protocol::Lease;

/// Units that devices have, in the order in which they were given.
#[derive(Debug, Default)]
pub(super) struct AtWork(Vec<(String, Lease, CancelToken)>);

impl AtWork {
    /// A device was given a unit.
    pub(super) fn given(&mut self, slot: &str, lease: Lease, cancel: &CancelToken) {
        self.0.push((slot.to_owned(), lease, cancel.clone()));
    }

    /// A device has ended a unit.
    pub(super) fn ended(&mut self, lease: Lease) {
        self.0.retain(|(_, given, _)| *given != lease);
    }

    /// Returns the unit that a device has begun last. The end of the unit before may still be on
    /// its way here, and all that was said of it was said before the next one began.
    pub(super) fn of(&self, slot: &str) -> Option<Lease> {
        let mut begun =
            self.0.iter().rev().filter(|(of, _, token)| of == slot && token.has_begun());
        begun.next().map(|(_, lease, _)| *lease)
    }
}
