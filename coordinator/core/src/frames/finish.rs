//! Finishing of frames by nodes: when it begins, and which of its units may be leased. When the
//! coordinator takes it over is in `close`.
//!
//! ```text
//! all samples are in ──► bands ──► assembly ──► files (the coordinator puts the pieces together)
//!        ▲    └─ no node can ──────────────────► files (the coordinator does everything)
//!        └── samples are taken back   └─ a unit is exhausted, or no node can any more ─┘
//! ```
//!
//! Nothing that nodes do about finishing makes a frame fail. What a node wants to finish and cannot
//! costs time; what it finishes wrongly is found as a wrong tile is (see `checks`).

use crate::books::Books;
use crate::input::SessionId;
use crate::journal::Record;
use crate::schedule::memory::may_work_at;
use crate::state::finishing::Finishing;
use crate::state::frame::Frame;
use crate::state::register::Entry;
use crate::timers::Timer;
use tessera_protocol::ids::{FrameNumber, JobId, NodeId, UnitIndex, UnitKey};

/// Lets nodes finish a frame that waits for its files, if some node can, and the coordinator was
/// not asked to.
pub(crate) fn begin_if_due(books: &mut Books, id: JobId, frame: FrameNumber) {
    let Some(job) = books.farm().job(id).filter(|job| !job.is_final()) else { return };
    let Some(Frame::Complete(open)) = job.frame(frame) else { return };
    let may_begin = open.finishing() == Finishing::Unbegun
        && job.grid().finishing() > 0
        && job.to_be_metered().is_none()
        && !books.is_held_back(job)
        && !books.orders().is_known(id, frame);
    if may_begin && (can_be_finished(books, id) || nodes_may_return(books)) {
        books.record(Record::FinishingBegun { job: id, frame });
    }
}

/// Whether a node is here that may finish frames of a job.
pub(crate) fn can_be_finished(books: &Books, job: JobId) -> bool {
    let Some(job) = books.farm().job(job) else { return false };
    let mut nodes = books.roster().iter();
    nodes.any(|(id, node)| node.finishes() && may_work_at(books, *id, node, job))
}

/// Returns the nodes that may put the files of a frame together, with another one first for each
/// frame.
pub(crate) fn joiners(books: &Books, id: JobId, frame: FrameNumber) -> Vec<(SessionId, NodeId)> {
    let Some(job) = books.farm().job(id) else { return Vec::new() };
    let able = books
        .roster()
        .iter()
        .filter(|(id, node)| node.finishes() && may_work_at(books, **id, node, job));
    let mut able: Vec<_> = able.filter_map(|(id, node)| Some((node.session()?, *id))).collect();
    let first = (frame.0 as usize).checked_rem(able.len()).unwrap_or(0);
    able.rotate_left(first);
    able
}

/// Whether nodes that were here before a restart may come back.
pub(crate) fn nodes_may_return(books: &Books) -> bool {
    let awaited =
        |(id, entry): (&NodeId, &Entry)| entry.is_here() && books.roster().get(*id).is_none();
    let mut entries = books.farm().register().entries().iter();
    books.now() < books.returning_until() && entries.any(awaited)
}

/// Makes the finishing units of a frame ready that may be leased from now on.
pub(crate) fn open_pieces(books: &mut Books, id: JobId, frame: FrameNumber) {
    let Some((position, pieces)) = open_units(books, id, frame) else { return };
    for unit in pieces {
        let known = books.queue(id).is_none_or(|queue| queue.knows_piece(position, unit));
        if !known {
            books.give_back(UnitKey { job: id, frame, unit }, books.now());
        }
    }
    look_later(books, id, frame);
}

/// The finishing units of a frame that wait for a result, and the frame's position.
pub(crate) fn open_units(
    books: &Books,
    id: JobId,
    frame: FrameNumber,
) -> Option<(u32, Vec<UnitIndex>)> {
    let job = books.farm().job(id).filter(|job| !job.is_final())?;
    let (position, grid) = (job.position(frame)?, job.grid());
    let seen = job.frames().get(position)?;
    let by_nodes = matches!(seen, Frame::Open(open) if open.is_finished_by_nodes());
    let pieces = grid.pieces().filter(|unit| by_nodes && seen.unit_is_open(*unit, &grid));
    by_nodes.then(|| (position, pieces.collect()))
}

/// Plans a look at whether nodes still can finish a frame.
pub(crate) fn look_later(books: &mut Books, job: JobId, frame: FrameNumber) {
    if books.finish_looks_mut().plan(job, frame) {
        let wait = match nodes_may_return(books) {
            true => books.settings().settle,
            false => books.settings().check_wait,
        };
        let at = books.now().after(wait.max(std::time::Duration::from_millis(100)));
        books.set_timer(at, Timer::Finish(job, frame));
    }
}
