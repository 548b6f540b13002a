//! Rounds of frames that are sampled until their noise is low enough, or for a time: each ends once
//! all its units are in and none of them is to be checked any more, and is measured then where a
//! noise is asked for. Its end says which tiles the next one is for.
//!
//! What is measured follows from the films alone, so that it is the same wherever and whenever the
//! frame is rendered. Units of a round that has ended and turn out to be a liar's void what was
//! measured of them: see `checks`.
//!
//! How many rounds a time allows does not: it depends on the farm, and on what else it does. So it
//! is decided once, and the record of that is what the frame is from then on: the frame of as many
//! samples, which any farm makes again.

use crate::books::Books;
use crate::journal::Record;
use crate::state::rounds::{FrameRounds, TileSet};
use tessera_protocol::ids::{FrameNumber, JobId};

/// The round of a frame that has been rendered and has not ended, in a job that goes on.
pub(crate) fn round_to_end(books: &Books, job: JobId, frame: FrameNumber) -> Option<u32> {
    let job = books.farm().job(job).filter(|job| !job.is_final())?;
    job.frame(frame)?.round_to_end(&job.grid())
}

/// How the rounds of a frame go that has begun and has not ended; None of one that is not sampled
/// in rounds.
pub(crate) fn frame_rounds(books: &Books, job: JobId, frame: FrameNumber) -> Option<FrameRounds> {
    let open = books.farm().job(job)?.frame(frame)?.unfinished()?;
    open.rounds().cloned()
}

/// The rounds of a job's frames are measured.
pub(crate) fn is_measured(books: &Books, job: JobId) -> bool {
    let render = books.farm().job(job).and_then(|job| job.kind().render());
    render.is_some_and(|render| render.noise.is_some())
}

/// Ends a round that has been rendered, where nothing is to be measured: the next is for all
/// tiles, if there is time for it. False where there is no such round.
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

/// The newest round of a frame ends. The next is for these tiles, unless there is no time for
/// it.
pub(crate) fn end_round(books: &mut Books, job: JobId, frame: FrameNumber, going: TileSet) {
    let Some(rounds) = frame_rounds(books, job, frame) else {
        return books.fault("a round ends of a frame without rounds");
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

/// Units of a new round can be leased.
fn open_round(books: &mut Books, id: JobId, frame: FrameNumber) {
    let position = books.farm().job(id).and_then(|job| job.position(frame));
    match position {
        Some(position) => books.rewind(id, position),
        None => books.fault("a round begins of no frame"),
    }
}
