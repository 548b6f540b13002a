//! Frames whose units, or the units of whose newest round, are all committed: asks for their files,
//! or for a measurement, until the answer is there.

use crate::action::Action;
use crate::books::Books;
use crate::checks::redo::lose_results;
use crate::ends::{end_if_over, fail_frame};
use crate::frames::finish::{begin_if_due, open_pieces};
use crate::frames::measure::{end_round, end_unmeasured, frame_rounds, is_measured, round_to_end};
use crate::input::ResolveFailure;
use crate::journal::Record;
use crate::state::frame::Frame;
use crate::state::rounds::TileSet;
use crate::text::cut;
use crate::waits;
use tessera_protocol::ids::{FrameNumber, JobId};
use tessera_protocol::limits::REASON_MAX;
use tessera_protocol::status::FrameFile;

/// Whether the frame waits for its files, in an open job.
fn is_complete(books: &Books, job: JobId, frame: FrameNumber) -> bool {
    let known = books.farm().job(job).filter(|job| !job.is_final());
    matches!(known.and_then(|job| job.frame(frame)), Some(Frame::Complete(_)))
}

/// Returns the order that a frame waits for once all its units, or those of its newest round, are
/// committed.
fn due(books: &Books, job: JobId, frame: FrameNumber) -> Option<Action> {
    if round_to_end(books, job, frame).is_some() {
        return Some(Action::MeasureFrame { job, frame });
    }
    let is_due = is_complete(books, job, frame) && !lacks_exposure(books, job, frame);
    is_due.then_some(Action::ResolveFrame { job, frame })
}

/// Whether the files of a frame wait for an exposure that is metered in another frame.
fn lacks_exposure(books: &Books, job: JobId, frame: FrameNumber) -> bool {
    let metered = books.farm().job(job).and_then(|job| job.to_be_metered());
    metered.is_some_and(|metered| metered != frame)
}

/// Whether the exposure is metered in this frame, and is not known yet.
fn is_metered_in(books: &Books, job: JobId, frame: FrameNumber) -> bool {
    books.farm().job(job).and_then(|job| job.to_be_metered()) == Some(frame)
}

/// Asks for the files of every complete frame, now that the exposure is known.
fn ask_for_others(books: &mut Books, job: JobId) {
    let Some(frames) = books.farm().job(job).map(|job| job.kind().frames().clone()) else { return };
    for frame in frames.iter().filter(|frame| is_complete(books, job, *frame)).collect::<Vec<_>>() {
        ask_if_due(books, job, frame);
    }
}

/// Asks for the files of a complete frame, or for the measurement of a round; lets nodes finish a
/// frame where they can. Ends a round that needs no measurement. An outdated order must be answered
/// first.
pub(crate) fn ask_if_due(books: &mut Books, job: JobId, frame: FrameNumber) {
    while end_unmeasured(books, job, frame) {}
    begin_if_due(books, job, frame);
    open_pieces(books, job, frame);
    if !books.orders().has_failed(job, frame) {
        order(books, job, frame);
    }
}

fn order(books: &mut Books, job: JobId, frame: FrameNumber) {
    let Some(action) = due(books, job, frame) else { return };
    if books.orders_mut().give(job, frame) {
        books.act(action);
    }
}

/// Removes an answered order. True if its answer is outdated, because units of the frame have been
/// taken back since.
pub(crate) fn is_stale(books: &mut Books, job: JobId, frame: FrameNumber) -> bool {
    let stale = books.orders_mut().answer(job, frame);
    if stale {
        ask_if_due(books, job, frame);
    }
    stale
}

/// Finishes a frame whose files are made, and its job with the last frame.
pub(crate) fn on_resolved(
    books: &mut Books,
    job: JobId,
    frame: FrameNumber,
    files: Vec<FrameFile>,
    exposure: Option<f32>,
) {
    if is_stale(books, job, frame) || !is_complete(books, job, frame) {
        return;
    }
    let formats = books.farm().job(job).map_or(0, |job| job.kind().extensions().len());
    if files.len() != formats {
        let reason = format!("{} files were made instead of {formats}", files.len());
        return on_resolve_failed(books, job, frame, ResolveFailure::Retry(reason));
    }
    let meters = is_metered_in(books, job, frame);
    if meters {
        let Some(stops) = exposure.filter(|stops| stops.is_finite()) else {
            let reason = "the exposure was not metered".to_owned();
            return on_resolve_failed(books, job, frame, ResolveFailure::Retry(reason));
        };
        books.record(Record::ExposureMetered { job, stops: stops.clamp(-64.0, 64.0) });
    }
    books.record(Record::FrameFinished { job, frame, files });
    books.orders_mut().forget_failures(job, frame);
    books.act(Action::FrameFinished { job, frame });
    waits::after_frame(books, job, frame);
    if meters {
        ask_for_others(books, job);
    }
    end_if_over(books, job);
    if books.is_open(job) && books.farm().job(job).is_some_and(|job| job.is_chained()) {
        // In a chained job, the next frame waits for this one.
        books.offer_job(job);
    }
}

/// Handles a frame that could not be resolved or measured: it is tried again later, or fails.
pub(crate) fn on_resolve_failed(
    books: &mut Books,
    job: JobId,
    frame: FrameNumber,
    failure: ResolveFailure,
) {
    if is_stale(books, job, frame) || due(books, job, frame).is_none() {
        return;
    }
    match failure {
        ResolveFailure::Fatal(reason) => fail_frame(books, job, frame, cut(&reason, REASON_MAX)),
        ResolveFailure::Retry(reason) => {
            books.put_off_order(job, frame, cut(&reason, REASON_MAX));
        }
        ResolveFailure::Lost(units, reason) => {
            if !lose_results(books, job, frame, units, &reason) {
                books.put_off_order(job, frame, cut(&reason, REASON_MAX));
            }
        }
        // `close` handles it where nodes have finished the frame.
        ResolveFailure::Unjoined(reason) => {
            books.put_off_order(job, frame, cut(&reason, REASON_MAX));
        }
    }
}

/// Gives a failed order again.
pub(crate) fn on_resolve_due(books: &mut Books, job: JobId, frame: FrameNumber) {
    let now = books.now();
    if books.orders_mut().take_due(job, frame, now) {
        order(books, job, frame);
    }
}

/// Ends a round that was measured: the next is for those of its tiles that are too noisy.
pub(crate) fn on_measured(
    books: &mut Books,
    job: JobId,
    frame: FrameNumber,
    round: u32,
    noisy: &TileSet,
) {
    if is_stale(books, job, frame) {
        return;
    }
    let rounds =
        frame_rounds(books, job, frame).filter(|_| round_to_end(books, job, frame) == Some(round));
    let Some(rounds) = rounds.filter(|_| is_measured(books, job)) else { return };
    let going =
        (0..rounds.tiles()).filter(|tile| rounds.goes_on(*tile) && noisy.contains(*tile)).collect();
    end_round(books, job, frame, going);
    ask_if_due(books, job, frame);
}
