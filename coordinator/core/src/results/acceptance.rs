//! Which results are accepted: the compare-and-set on (unit, epoch) that makes every unit committed
//! once. Reads the books and changes nothing.
//!
//! A result of lease (unit, epoch) from a node is accepted if the unit is open, the node has the
//! job's fingerprint, and one of:
//!
//! 1. the unit is leased now, with this epoch, to this node (with a copy, it has two leases, and
//!    either will do: see `schedule::copies`);
//! 2. the unit is not leased, and its newest ended attempt has this epoch and node and expired or
//!    was lost (a failed one is disowned);
//! 3. the unit is not leased, and the epoch is above those of its ended attempts and was reserved
//!    by a former process: a lease that a restart forgot. Epochs are never used twice, so that one
//!    reserved then cannot be one given out since.
//!
//! In 2 and 3, the epoch must not be another unit's as well: an epoch belongs to one unit, but a
//! restart forgets to which, and a node may say anything. So one that is held or was committed for
//! another unit is refused, and so is one of a former process that is older than all commits that
//! are remembered.
//!
//! And in 2 and 3 the epoch must bear the mark of this unit and this node ([`crate::Secret`]), so
//! that a lease that was never given cannot be named. A unit that is committed and waits for its
//! check takes results by 1, and by 3 of a node that has not been heard about it and is no suspect:
//! they are compared, and not committed (see `checks`). Once a part of it has been rendered alike
//! it takes none by 3: a restart forgets of which part a lease was, and that of the former part may
//! be named again.
//!
//! A result names its samples. A node that has to leave hands in the first of those that it was to
//! render: a *part*, accepted by the same rule. It is committed, its lease has ended, and the rest
//! of the unit is open; from then on no lease of the unit up to this one is good for anything. A
//! part of a check compares with nothing, a unit with [`crate::state::parts::PARTS_MAX`] parts
//! takes no more, and one with another lease waits for that: then the lease is as if it had been
//! given back.
//!
//! A node that was wrong about a chunk of a user's kernel has none of that job accepted by 2 and 3.
//!
//! Any other is unwanted: an older epoch than the unit's newest known one, one that was never given
//! out, one of another node, one of a unit that is committed, of a frame or job that has ended, or
//! of one that had and was opened again since. Once a unit is leased again, its former leases are
//! void (1 is then the only door), although their pixels would be the same.

use crate::books::Books;
use crate::state::farm::RECENT_COMMITS_MAX;
use crate::state::parts::Standing;
use tessera_protocol::ids::{Epoch, Lease, NodeId};
use tessera_protocol::node::CoordinatorToNode;

/// Whether a result is accepted by the rule at the top of this file.
pub(crate) fn is_acceptable(books: &Books, id: NodeId, lease: Lease) -> bool {
    let Some(job) = books.farm().job(lease.unit.job).filter(|job| !job.is_final()) else {
        return false;
    };
    let Some(node) = books.roster().get(id) else { return false };
    let wanted = job.place(lease.unit).is_some_and(|place| !job.is_shut(place.position))
        && job
            .frame(lease.unit.frame)
            .is_some_and(|frame| frame.unit_is_wanted(lease.unit.unit, &job.grid()));
    if !wanted || job.fingerprint().is_some_and(|pinned| pinned != node.fingerprint()) {
        return false;
    }
    if books.leases().is_leased(lease.unit) {
        return books.leases().get(lease).is_some_and(|held| held.node == id);
    }
    if lease.epoch < job.fence()
        || job.barred().contains(&id)
        || !books.settings().secret.has_marked(lease, id)
        || may_be_of_another_unit(books, lease.epoch)
    {
        return false;
    }
    let of_former_process = books.epochs().is_of_former_process(lease.epoch);
    if let Some(check) = books.check_of(lease.unit) {
        // A suspect's former votes were removed, so that it is unknown whether this result repeats
        // one of them.
        let heard = check.heard(id) > 0 || books.farm().trust().suspect_of(id).is_some();
        let settled =
            job.frame(lease.unit.frame).and_then(|frame| frame.unfinished()).is_some_and(|open| {
                open.parts().of(lease.unit.unit).iter().any(|part| part.standing == Standing::Alike)
            });
        return of_former_process && lease.epoch > check.newest() && !heard && !settled;
    }
    match job.frame(lease.unit.frame).and_then(|frame| frame.trouble(lease.unit.unit)) {
        Some(last) if last.epoch == lease.epoch => last.node == id && !last.disowned,
        Some(last) => lease.epoch > last.epoch && of_former_process,
        None => of_former_process,
    }
}

/// Whether an epoch that is named for an unleased unit belongs to another unit, or may have done so
/// too long ago to tell.
fn may_be_of_another_unit(books: &Books, epoch: Epoch) -> bool {
    let recent = books.farm().recent_commits();
    let oldest = recent.first_key_value().filter(|_| recent.len() >= RECENT_COMMITS_MAX);
    let forgotten = oldest.is_some_and(|(oldest, _)| epoch < *oldest);
    let former = books.epochs().is_of_former_process(epoch);
    books.leases().get_by_epoch(epoch).is_some()
        || recent.contains_key(&epoch)
        || (former && forgotten)
}

/// Whether the lease's result was committed recently.
pub(crate) fn is_committed(books: &Books, lease: Lease) -> bool {
    books.farm().recent_commits().get(&lease.epoch) == Some(&lease.unit)
}

/// Returns the message to a node whose result is not accepted.
pub(crate) fn refusal(books: &Books, lease: Lease) -> CoordinatorToNode {
    match is_committed(books, lease) {
        true => CoordinatorToNode::Committed { lease },
        false => CoordinatorToNode::Unwanted { lease },
    }
}
