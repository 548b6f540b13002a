//! Units that lack an external resource: a file that cannot be fetched, room on a node's disk,
//! memory of its host. They wait, longer each time, preferably for another node, and no attempt is
//! counted. After `shortage_longest`, the next shortage is an ordinary failure.

use crate::books::Books;
use crate::lease::backoff;
use crate::results::failed::fail_attempt;
use crate::schedule::shortages::Shortage;
use crate::state::job::Job;
use crate::text::cut;
use tessera_protocol::ids::{Lease, NodeId, UnitKey};
use tessera_protocol::limits::REASON_MAX;

/// Handles a unit that lacks an external resource on a node.
pub(crate) fn on_shared_shortage(books: &mut Books, id: NodeId, lease: Lease, reason: &str) {
    let unit = lease.unit;
    if books.check_of(unit).is_some() {
        books.release(lease.epoch);
        return books.fail_check(unit, id);
    }
    let noted = books.note_shortage(unit, id, cut(reason, REASON_MAX));
    let Some((times, waited)) = noted else { return };
    if waited >= books.settings().shortage_longest {
        let text = format!("{reason}; waited {} s for it", waited.as_secs());
        return fail_attempt(books, id, lease, &text);
    }
    // If the lease had ended before, its unit is in the right place already.
    if books.release(lease.epoch).is_none() || books.leases().is_leased(unit) {
        return;
    }
    let until = books.now().after(backoff(times, books.settings()));
    books.put_off(unit, until);
}

/// Returns a unit that waits for something outside its job, and its wait; None if no unit does.
pub(crate) fn waiting_unit<'a>(books: &'a Books, job: &Job) -> Option<(UnitKey, &'a Shortage)> {
    let work = books.queue(job.id())?;
    let (place, shortage) =
        work.shortages().iter().find(|(place, _)| work.waiting().contains_key(*place))?;
    Some((job.key(*place)?, shortage))
}
