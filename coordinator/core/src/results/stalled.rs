//! Nodes that are alive but make no progress: if a unit's device reports the same progress for too
//! long, the unit is taken back as timed out.
//!
//! Checked whenever the node is heard, because a silent node loses its leases anyway. Devices that
//! report no progress have a watchdog on the node, and `lease_longest` bounds them here.

use crate::books::Books;
use crate::journal::EndedAttempt;
use crate::lease::{Held, Reached};
use crate::results::failed::{doubt, end_attempts, ending_of_failure};
use crate::schedule::withhold::{measured_speed, span};
use crate::text::cut;
use std::time::Duration;
use tessera_protocol::ids::{Lease, NodeId};
use tessera_protocol::limits::{LEASES_MAX, REASON_MAX};
use tessera_protocol::node::Progress;

/// A unit is stalled after this many times its expected duration without progress.
const TIMES: u32 = 4;

/// Notes the progress in a heartbeat, and takes back units that have made none for too long.
pub(crate) fn on_progress(books: &mut Books, id: NodeId, told: &[Progress]) {
    for one in told.iter().take(LEASES_MAX) {
        books.note_progress(id, one);
    }
    let stands = |(lease, held): (Lease, &Held)| {
        let reached = held.progress?;
        (books.now().since(reached.since) > stall_bound(books, id, lease))
            .then_some((lease, reached))
    };
    let stalled: Vec<(Lease, Reached)> = books.leases().of_node(id).filter_map(stands).collect();
    for (lease, reached) in stalled {
        // The unit before may have ended the frame, and with it this lease.
        if books.leases().get(lease).is_some() {
            time_out(books, id, lease, reached);
        }
    }
}

/// Returns the longest time without progress for a unit on a node.
fn stall_bound(books: &Books, id: NodeId, lease: Lease) -> Duration {
    let known = books.roster().get(id).zip(books.farm().job(lease.unit.job));
    let alone = known.and_then(|(node, job)| {
        let samples = job.grid().unit_camera_samples(lease.unit.unit) as f64;
        Some(measured_speed(books, id, node, job)?.alone(samples))
    });
    let whole = span(alone.unwrap_or(0.0));
    books.settings().stall.max(whole.saturating_mul(TIMES))
}

fn time_out(books: &mut Books, id: NodeId, lease: Lease, Reached { device, since, .. }: Reached) {
    let slot = books.roster().get(id).and_then(|node| node.devices().get(usize::from(device)));
    let slot = slot.map_or_else(
        || format!("device {device}"),
        |device| format!("{} ({})", device.slot, device.name),
    );
    let secs = books.now().since(since).as_secs();
    let reason = format!("no progress on {slot} for {secs} s, although the node is connected");
    books.revoke(lease.unit, lease.epoch);
    let ending = ending_of_failure(books, id, lease, cut(&reason, REASON_MAX), true);
    end_attempts(books, id, vec![EndedAttempt { lease, ending }]);
    doubt(books, id, lease.unit.job);
}
