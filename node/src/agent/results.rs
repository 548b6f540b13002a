//! The results of the node: stored in its outbox, offered in each session, and removed once the
//! coordinator has answered.

use super::{Action, Agent};
use tessera_protocol::Lease;
use tessera_protocol::node::Failure;

impl<F: Clone> Agent<F> {
    /// Records that the output of a unit is on disk.
    pub(crate) fn on_stored(&mut self, lease: Lease) {
        if self.units.remove(&lease).is_some() {
            self.finished.insert(lease, false);
            self.offer();
        } else {
            // The lease was taken back while the result was being written.
            self.actions.push_back(Action::Remove(lease));
        }
        self.leave_if_done();
    }

    /// Records that the output of a unit cannot be stored, so its attempt has failed.
    pub(crate) fn on_store_failed(&mut self, lease: Lease, failure: Failure) {
        if self.units.remove(&lease).is_some() {
            self.fail(lease, failure);
        }
        self.leave_if_done();
    }

    /// Records that a result was not delivered although there is a session. [`Self::offer_again`]
    /// tries again.
    pub(crate) fn on_offer_failed(&mut self, lease: Lease) {
        if let Some(offered) = self.finished.get_mut(&lease) {
            *offered = false;
        }
    }

    /// Records that a result in the outbox cannot be read. The result and its unit are lost.
    pub(crate) fn on_result_lost(&mut self, lease: Lease, failure: Failure) {
        self.forget_result(lease);
        self.fail(lease, failure);
        self.leave_if_done();
    }

    /// Offers results that were not offered in this session, or not delivered. The caller repeats
    /// this from time to time.
    pub(crate) fn offer_again(&mut self) {
        self.offer();
    }

    pub(super) fn offer(&mut self) {
        if !self.connected {
            return;
        }
        for (lease, offered) in &mut self.finished {
            if !std::mem::replace(offered, true) {
                self.actions.push_back(Action::Offer(*lease));
            }
        }
    }

    pub(super) fn forget_result(&mut self, lease: Lease) {
        if self.finished.remove(&lease).is_some() {
            self.actions.push_back(Action::Remove(lease));
        }
    }
}
