//! The end of a frame's finishing by nodes without files: the coordinator takes it over.

use crate::books::Books;
use crate::frames::finish::{can_be_finished, look_later, nodes_may_return, open_units};
use crate::frames::resolve::{ask_if_due, is_stale, on_resolve_failed};
use crate::input::ResolveFailure;
use crate::journal::Record;
use crate::text::cut;
use tessera_protocol::ids::{FrameNumber, JobId};
use tessera_protocol::limits::REASON_MAX;

/// Closes the finishing of a frame that no node can finish any more.
pub(crate) fn on_look(books: &mut Books, id: JobId, frame: FrameNumber) {
    books.finish_looks_mut().begin(id, frame);
    if open_units(books, id, frame).is_none() {
        return;
    }
    // Nothing of a paused job is leased, so that it means nothing that no node can.
    if books.is_paused(id) || can_be_finished(books, id) || nodes_may_return(books) {
        return look_later(books, id, frame);
    }
    close_finishing(books, id, frame, "no node is here that finishes frames and may have the job");
}

/// Lets the coordinator finish a frame whose pieces do not go together.
pub(crate) fn on_unjoined(books: &mut Books, id: JobId, frame: FrameNumber, reason: &str) {
    let open = books.farm().job(id).and_then(|job| job.frame(frame)?.unfinished());
    if !open.is_some_and(|open| open.is_finished_by_nodes()) {
        let failure = ResolveFailure::Unjoined(reason.to_owned());
        return on_resolve_failed(books, id, frame, failure);
    }
    if !is_stale(books, id, frame) {
        close_finishing(books, id, frame, reason);
    }
}

/// Lets the coordinator finish a frame that nodes could not.
pub(crate) fn close_finishing(books: &mut Books, id: JobId, frame: FrameNumber, reason: &str) {
    let known = books.farm().job(id).filter(|job| !job.is_final());
    let Some((job, open)) = known.and_then(|job| Some((job, job.frame(frame)?.unfinished()?)))
    else {
        return;
    };
    if !open.is_finished_by_nodes() {
        return;
    }
    let (position, pieces) = (job.position(frame), job.grid().pieces().collect::<Vec<_>>());
    books.revoke_units(id, frame, &pieces);
    let (at, reason) = (books.now(), cut(reason, REASON_MAX));
    books.record(Record::FinishingClosed { job: id, frame, at, reason });
    if let Some(position) = position {
        books.shut_units(id, position, &pieces);
    }
    // An answer that is about the pieces is outdated.
    books.orders_mut().drop_frame(id, frame);
    ask_if_due(books, id, frame);
}
