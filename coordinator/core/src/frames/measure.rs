//! Rounds of frames that are sampled until their noise is low enough, or for a time: each ends once
//! all its units are in and none of them is to be checked any more, and is measured then where a
//! noise is asked for. Its end says which tiles the next one is for.
//!
//! What is measured follows from the films alone, so that it is the same wherever and whenever the
//! frame is rendered. Units of a round that has ended and turn out to be a liar's void what was
//! measured of them: see `verify`.
//!
//! How many rounds a time allows does not: it depends on the farm, and on what else it does. So it
//! is decided once, and the record of that is what the frame is from then on: the frame of as many
//! samples, which any farm makes again.

use crate::core::Core;
use crate::journal::Record;
use crate::state::rounds::TileSet;
use tessera_protocol::ids::{FrameNumber, JobId};

impl Core {
    /// The round of a frame that has been rendered and has not ended, in a job that goes on.
    pub(crate) fn round_to_end(&self, job: JobId, frame: FrameNumber) -> Option<u32> {
        let job = self.farm.job(job).filter(|job| !job.is_final())?;
        job.frame(frame)?.round_to_end(&job.grid())
    }

    /// Tiles are too noisy after a round: the next is for those of them that were in it.
    pub(crate) fn on_measured(
        &mut self,
        job: JobId,
        frame: FrameNumber,
        (round, noisy): (u32, &TileSet),
    ) {
        if self.is_stale(job, frame) {
            return;
        }
        let rounds =
            self.frame_rounds(job, frame).filter(|_| self.round_to_end(job, frame) == Some(round));
        let Some(rounds) = rounds.filter(|_| self.is_measured(job)) else { return };
        let going = (0..rounds.tiles())
            .filter(|tile| rounds.goes_on(*tile) && noisy.contains(*tile))
            .collect();
        self.end_round(job, frame, going);
    }

    /// The rounds of a job's frames are measured.
    fn is_measured(&self, job: JobId) -> bool {
        let render = self.farm.job(job).and_then(|job| job.kind().render());
        render.is_some_and(|render| render.noise.is_some())
    }

    /// Ends a round that has been rendered, where nothing is to be measured: the next is for all
    /// tiles, if there is time for it.
    pub(crate) fn end_unmeasured(&mut self, job: JobId, frame: FrameNumber) {
        if self.is_measured(job) || self.round_to_end(job, frame).is_none() {
            return;
        }
        if let Some(rounds) = self.frame_rounds(job, frame) {
            self.end_round(job, frame, rounds.open_tiles());
        }
    }

    /// The newest round of a frame ends. The next is for these tiles, unless there is no time for
    /// it.
    fn end_round(&mut self, job: JobId, frame: FrameNumber, going: TileSet) {
        let Some(rounds) = self.frame_rounds(job, frame) else {
            return self.fault("a round ends of a frame without rounds");
        };
        let time = self.farm.job(job).and_then(|job| job.time());
        let spent_millis = match time {
            Some(_) => rounds.spent_millis().saturating_add(self.leases.millis_of(job, frame)),
            None => 0,
        };
        let fits = time.is_none_or(|time| {
            let millis = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
            rounds.fits_another(&going, spent_millis, millis)
        });
        let going = if fits { going } else { TileSet::default() };
        self.record(Record::RoundMeasured {
            job,
            frame,
            round: rounds.round(),
            going,
            spent_millis,
        });
        self.leases.forget_time(job, frame);
        self.resolves.remove(&(job, frame));
        self.open_round(job, frame);
        self.ask_if_due(job, frame);
    }

    /// Units of a new round can be leased.
    fn open_round(&mut self, id: JobId, frame: FrameNumber) {
        let position = self.farm.job(id).and_then(|job| job.position(frame));
        match position.zip(self.queues.get_mut(&id)) {
            Some((position, work)) => {
                work.rewind(position);
                self.offer_job(id);
            }
            None => self.fault("a round begins of no open job"),
        }
    }
}
