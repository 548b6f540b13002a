//! Rounds of frames that are sampled until their noise is low enough: each is measured once all its units are in and none of them is to be
//! checked any more, and says which tiles the next one is for.
//!
//! What is measured follows from the films alone, so that it is the same wherever and whenever the frame is rendered. Units of a measured round
//! that turn out to be a liar's void what was measured of them: see `verify`.

use crate::core::Core;
use crate::course::TileSet;
use crate::journal::Record;
use tessera_protocol::ids::{FrameNumber, JobId};

impl Core {
    /// The round of a frame that is to be measured, in a job that goes on.
    pub(crate) fn round_to_measure(&self, job: JobId, frame: FrameNumber) -> Option<u32> {
        let job = self.farm.jobs.get(&job).filter(|job| !job.is_final())?;
        job.frame(frame)?.round_to_measure(&job.grid)
    }

    /// Tiles are too noisy after a round: the next is for those of them that were in it.
    pub(crate) fn on_measured(&mut self, job: JobId, frame: FrameNumber, (round, noisy): (u32, &TileSet)) {
        if self.is_stale(job, frame) {
            return;
        }
        let course = self.course(job, frame).filter(|_| self.round_to_measure(job, frame) == Some(round));
        let Some(course) = course else { return };
        let going =
            (0..course.tiles()).filter(|tile| course.goes_on(*tile) && noisy.contains(*tile)).collect();
        self.record(Record::RoundMeasured { job, frame, round, going });
        self.resolves.remove(&(job, frame));
        self.open_round(job, frame);
        self.ask_if_due(job, frame);
    }

    /// Units of a new round can be leased.
    fn open_round(&mut self, id: JobId, frame: FrameNumber) {
        let position = self.farm.jobs.get(&id).and_then(|job| job.position(frame));
        if let (Some(position), Some(work)) = (position, self.work.get_mut(&id)) {
            work.rewind(position);
            self.offer_job(id);
        }
    }
}
