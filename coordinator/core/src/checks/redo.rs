//! Opens again what a node did, because it was wrong, and units whose bytes are gone. Judges no
//! node.

use crate::books::Books;
use crate::frames::finish::open_pieces;
use crate::journal::Record;
use crate::text::cut;
use tessera_protocol::ids::{FrameNumber, JobId, NodeId, UnitIndex, UnitKey};
use tessera_protocol::limits::REASON_MAX;

/// Opens again all work of a node in unfinished frames that no other node has rendered alike.
pub(crate) fn redo_all_of(books: &mut Books, node: NodeId) {
    let jobs: Vec<JobId> = books.queues().keys().copied().collect();
    jobs.into_iter().for_each(|id| redo_in(books, node, id));
}

/// Opens again the work of a node in the unfinished frames of a job.
pub(crate) fn redo_in(books: &mut Books, node: NodeId, id: JobId) {
    let Some(job) = books.farm().job(id) else {
        return books.fault("an open job is unknown");
    };
    let unfinished = job.frames().unfinished().filter_map(|(position, open)| {
        let (units, begun) = (open.unverified_of(node), open.open_parts_of(node));
        let some = !units.is_empty() || !begun.is_empty();
        some.then_some((position, job.number(position)?, units, begun))
    });
    let taken: Vec<(u32, FrameNumber, Vec<UnitIndex>, Vec<UnitIndex>)> = unfinished.collect();
    for (position, frame, units, begun) in taken {
        if !begun.is_empty() {
            drop_parts(books, id, frame, begun);
        }
        if !units.is_empty() {
            open_again(books, id, (position, frame), units, None);
        }
    }
}

/// Opens units again whose bytes are gone, whoever made them, and drops the parts of open ones.
/// False if none of them is committed.
pub(crate) fn lose_results(
    books: &mut Books,
    id: JobId,
    frame: FrameNumber,
    mut units: Vec<UnitIndex>,
    reason: &str,
) -> bool {
    let job = books.farm().job(id).filter(|job| !job.is_final());
    let known = job.and_then(|job| Some((job.position(frame)?, job.frame(frame)?.unfinished()?)));
    let Some((position, open)) = known else { return false };
    units.sort_unstable();
    units.dedup();
    let is_begun = |unit: &UnitIndex| open.parts().has(*unit) && !open.committed().get(unit.0);
    let begun: Vec<UnitIndex> = units.iter().copied().filter(is_begun).collect();
    units.retain(|unit| open.committed().get(unit.0));
    if !begun.is_empty() {
        drop_parts(books, id, frame, begun);
    }
    if units.is_empty() {
        return false;
    }
    open_again(books, id, (position, frame), units, Some(cut(reason, REASON_MAX)));
    true
}

/// Drops parts of open units, and the leases of their rests, which would be too small.
fn drop_parts(books: &mut Books, job: JobId, frame: FrameNumber, units: Vec<UnitIndex>) {
    let leased = books.revoke_units(job, frame, &units);
    let below = books.epochs().next();
    books.record(Record::PartsDropped { job, frame, units, below });
    leased.into_iter().for_each(|unit| books.give_back(unit, books.now()));
}

/// Opens units again. Their measurements are void, and so are all units that depend on them. `lost`
/// says why, if no node is at fault.
fn open_again(
    books: &mut Books,
    job: JobId,
    (position, frame): (u32, FrameNumber),
    mut units: Vec<UnitIndex>,
    lost: Option<String>,
) {
    let later = close_later_units(books, job, frame, &mut units);
    // A running check of a part covers fewer samples than the unit has.
    let unfinished = books.farm().job(job).and_then(|job| job.frame(frame)?.unfinished());
    let in_parts: Vec<UnitIndex> = unfinished.map_or_else(Vec::new, |open| {
        units.iter().copied().filter(|unit| open.parts().has(*unit)).collect()
    });
    books.revoke_units(job, frame, &in_parts);
    let below = books.epochs().next();
    let (taken, at) = (units.clone(), books.now());
    books.record(match lost {
        None => Record::UnitsTakenBack { job, frame, units: taken, below },
        Some(reason) => Record::ResultsLost { job, frame, units: taken, below, at, reason },
    });
    // An order to resolve it may be running: its answer is outdated.
    books.orders_mut().drop_frame(job, frame);
    books.shut_units(job, position, &later);
    units.retain(|unit| later.binary_search(unit).is_err());
    for unit in units {
        books.reopen_unit(UnitKey { job, frame, unit });
    }
    books.offer_job(job);
    open_pieces(books, job, frame);
}

/// Closes the rounds after those of `units`, and what was finished of them, and adds the committed
/// units among that to `units`, because they must be taken back too. Returns all of them.
fn close_later_units(
    books: &mut Books,
    job: JobId,
    frame: FrameNumber,
    units: &mut Vec<UnitIndex>,
) -> Vec<UnitIndex> {
    let known = books.farm().job(job);
    let known = known.and_then(|job| Some((job.frame(frame)?.unfinished()?, job.grid())));
    let Some((open, grid)) = known else { return Vec::new() };
    let later = open.units_after(units, &grid);
    let is_committed = |unit: &&UnitIndex| open.committed().get(unit.0);
    let begun: Vec<UnitIndex> = later
        .iter()
        .filter(|unit| open.parts().has(**unit) && !is_committed(unit))
        .copied()
        .collect();
    units.extend(later.iter().filter(is_committed));
    units.sort_unstable();
    units.dedup();
    if !begun.is_empty() {
        drop_parts(books, job, frame, begun);
    }
    books.revoke_units(job, frame, &later);
    later
}
