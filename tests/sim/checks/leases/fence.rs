//! The rule by which a result may be accepted, as the core's `results` describes it, with our own
//! view of the leases.

use super::{Held, Seen, Watch};
use crate::checks::violation::{Checked, violated};
use crate::model::books::Books;
use tessera_protocol::ids::{Lease, NodeId};

impl Watch {
    /// The rule by which a result may be accepted, from `results.rs`' description, with our own
    /// view of the leases.
    pub(super) fn check_fence(
        &self,
        lease: Lease,
        node: NodeId,
        seen: &Seen,
        books: &Books,
    ) -> Checked {
        let fingerprint = self.known.get(&node).map(|known| known.fingerprint);
        let pinned = books.jobs.get(&lease.unit.job).and_then(|job| job.pinned);
        if pinned.is_none() || pinned != fingerprint {
            return violated(format!(
                "{lease} of fingerprint {fingerprint:?} is taken into a job of {pinned:?}"
            ));
        }
        // Within a step of several inputs a lease may have come and gone.
        if seen.inputs > 1 {
            return Ok(());
        }
        let held: Vec<(&Lease, &Held)> = self.held_of(lease.unit).collect();
        let attempt =
            books.frame(lease.unit).and_then(|frame| frame.attempts.get(&lease.unit.unit.0));
        let is_held = held.iter().any(|(of, held)| **of == lease && held.node == node);
        let fence = books.jobs.get(&lease.unit.job).map_or(0, |book| book.fence);
        let allowed = match attempt {
            _ if is_held => true,
            _ if !self.is_free(&held) => false,
            _ if lease.epoch.0 < fence => false,
            Some((epoch, last, failed)) if *epoch == lease.epoch => *last == node && !failed,
            Some((epoch, ..)) => lease.epoch > *epoch && self.is_former(lease.epoch),
            None => self.is_former(lease.epoch),
        };
        match allowed {
            true => Ok(()),
            false => violated(format!(
                "{lease} of {node} is committed against the fence: held {held:?}, last attempt \
                    {attempt:?}, given {:?}",
                self.given.get(&lease.unit)
            )),
        }
    }

    /// No lease of a unit stands in the way of a result: what is due ends before an input is looked
    /// at.
    fn is_free(&self, held: &[(&Lease, &Held)]) -> bool {
        held.iter().all(|(_, held)| self.may_be_due(held))
    }

    /// A result is compared for the lease that its node holds, or of one that a restart forgot.
    pub(super) fn check_fence_of_check(&self, lease: Lease, node: NodeId, seen: &Seen) -> Checked {
        let held: Vec<(&Lease, &Held)> = self.held_of(lease.unit).collect();
        let is_held = held.iter().any(|(of, held)| **of == lease && held.node == node);
        let allowed = is_held || (self.is_free(&held) && self.is_former(lease.epoch));
        match allowed || seen.inputs > 1 {
            true => Ok(()),
            false => {
                violated(format!("{lease} of {node} is compared against the fence: held {held:?}"))
            }
        }
    }
}
