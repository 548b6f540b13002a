//! Nodes that live and do not get on: a unit whose device says how far it is, and says the same for
//! long, is taken back as timed out.
//!
//! Looked at when the node is heard, because one that is not heard loses its leases anyway. Devices
//! that do not say how far they are have a watchdog of their own on the node, and `lease_longest`
//! bounds them here.

use crate::core::Core;
use crate::journal::{EndedAttempt, Ending};
use crate::lease::{Held, Reached};
use crate::nodes::roster::cut;
use std::time::Duration;
use tessera_protocol::ids::{Lease, NodeId};
use tessera_protocol::limits::{LEASES_MAX, REASON_MAX};
use tessera_protocol::node::Progress;

/// A unit that stands still for so many times as long as its node should need for the whole of it
/// does not get on.
const TIMES: u32 = 4;

impl Core {
    /// A heartbeat says how far units are; what has not got on for too long is taken back.
    pub(crate) fn on_progress(&mut self, id: NodeId, told: &[Progress]) {
        for one in told.iter().take(LEASES_MAX) {
            self.leases.note_progress(id, one, self.now);
        }
        let stands = |(lease, held): (Lease, &Held)| {
            let reached = held.progress?;
            (self.now.since(reached.since) > self.stall_bound(id, lease))
                .then_some((lease, reached))
        };
        let stalled: Vec<(Lease, Reached)> = self.leases.of_node(id).filter_map(stands).collect();
        for (lease, reached) in stalled {
            // The one before may have ended the frame, and with it this one's lease.
            if self.leases.get(lease).is_some() {
                self.time_out(id, lease, reached);
            }
        }
    }

    /// How long a unit may stand still on a node.
    fn stall_bound(&self, id: NodeId, lease: Lease) -> Duration {
        let known = self.roster.get(id).zip(self.farm.job(lease.unit.job));
        let alone = known.and_then(|(node, job)| {
            let samples = job.grid().unit_camera_samples(lease.unit.unit) as f64;
            Some(self.measured_speed(id, node, job)?.alone(samples))
        });
        let whole = crate::schedule::withhold::span(alone.unwrap_or(0.0));
        self.settings.stall.max(whole.saturating_mul(TIMES))
    }

    fn time_out(&mut self, id: NodeId, lease: Lease, Reached { device, since, .. }: Reached) {
        let slot = self.roster.get(id).and_then(|node| node.devices().get(usize::from(device)));
        let slot = slot.map_or_else(
            || format!("device {device}"),
            |device| format!("{} ({})", device.slot, device.name),
        );
        let secs = self.now.since(since).as_secs();
        let reason = format!("no progress on {slot} for {secs} s, while the node lives");
        self.revoke(lease.unit, lease.epoch);
        let ending = Ending::TimedOut(cut(&reason, REASON_MAX));
        self.end_attempts(id, vec![EndedAttempt { lease, ending }]);
        self.doubt(id, lease.unit.job);
    }
}
