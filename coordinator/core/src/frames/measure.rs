//! Rounds of frames that are sampled until their noise is low enough, or for a time: each ends once
//! all its units are in and none of them is to be checked any more, and is measured then where a
//! noise is asked for. Its end says which tiles the next one is for.
//!
//! A measurement depends only on the films, so that it is the same wherever and whenever the frame
//! is rendered. If units of a finished round turn out to be a liar's, their measurements are void:
//! see `checks`.
//!
//! The number of rounds that a time limit allows depends on the farm and its load. It is decided
//! once and recorded. From then on the frame is the frame of that many samples, which any farm can
//! make again.

use crate::books::Books;
use crate::journal::Record;
use crate::state::rounds::{FrameRounds, TileSet};
use tessera_protocol::ids::{FrameNumber, JobId};

/// Returns the complete round of a frame that has not ended yet, in an open job.
pub(crate) fn round_to_end(books: &Books, job: JobId, frame: FrameNumber) -> Option<u32> {
    let job = books.farm().job(job).filter(|job| !job.is_final())?;
    job.frame(frame)?.round_to_end(&job.grid())
}

/// Returns the rounds of a frame that has begun and has not ended; None if it is not sampled in
/// rounds.
pub(crate) fn frame_rounds(books: &Books, job: JobId, frame: FrameNumber) -> Option<FrameRounds> {
    let open = books.farm().job(job)?.frame(frame)?.unfinished()?;
    open.rounds().cloned()
}

/// Whether rounds of the job's frames are measured.
pub(crate) fn is_measured(books: &Books, job: JobId) -> bool {
    let render = books.farm().job(job).and_then(|job| job.kind().render());
    render.is_some_and(|render| render.noise.is_some())
}

/// Ends a complete round that needs no measurement: the next is for all tiles, if there is time.
/// False if there is no such round.
pub(crate) fn end_unmeasured(books: &mut Books, job: JobId, frame: FrameNumber) -> bool {
    if is_measured(books, job) || round_to_end(books, job, frame).is_none() {
        return false;
    }
    let rounds = frame_rounds(books, job, frame);
    let ends = rounds.is_some();
    if let Some(rounds) = rounds {
        end_round(books, job, frame, rounds.open_tiles());
    }
    ends
}

/// Ends the newest round of a frame. The next is for these tiles, unless there is no time for it.
pub(crate) fn end_round(books: &mut Books, job: JobId, frame: FrameNumber, going: TileSet) {
    let Some(rounds) = frame_rounds(books, job, frame) else {
        return books.fault("a round ends, but its frame has no rounds");
    };
    let time = books.farm().job(job).and_then(|job| job.time());
    let spent_millis = match time {
        Some(_) => rounds.spent_millis().saturating_add(books.leases().millis_of(job, frame)),
        None => 0,
    };
    let fits = time.is_none_or(|time| {
        let millis = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        rounds.fits_another(&going, spent_millis, millis)
    });
    let going = if fits { going } else { TileSet::default() };
    books.record(Record::RoundMeasured { job, frame, round: rounds.round(), going, spent_millis });
    books.forget_time(job, frame);
    books.orders_mut().forget_failures(job, frame);
    open_round(books, job, frame);
}

/// Lets the units of a new round be leased.
fn open_round(books: &mut Books, id: JobId, frame: FrameNumber) {
    let position = books.farm().job(id).and_then(|job| job.position(frame));
    match position {
        Some(position) => books.rewind(id, position),
        None => books.fault("a round begins, but its frame does not exist"),
    }
}
