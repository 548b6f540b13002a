//! What there is to do of a job: how many units, which of them may be leased, and what each is.

use super::Job;
use super::counts::{committed_of, open_of};
use crate::settings::Settings;
use crate::state::done::Done;
use crate::state::frame::Frame;
use crate::state::job::Place;
use std::time::Duration;
use tessera_protocol::compute::{ComputeFormat, ComputeSpec};
use tessera_protocol::ids::{BlobHash, UnitKey};
use tessera_protocol::node::{Finish, SampleRange, Task};

impl Job {
    /// Returns the spec of a compute job whose frames read the results of earlier frames; None for
    /// others.
    fn feeding(&self) -> Option<&ComputeSpec> {
        self.kind().compute().filter(|compute| compute.feed.is_some())
    }

    /// Returns the share of the farm's time that each frame may use, if there is a limit.
    pub(crate) fn time(&self) -> Option<Duration> {
        let secs = self.kind().render()?.time_secs?;
        Some(Duration::from_secs(secs.into()))
    }

    /// Returns the number of failed attempts of a unit after which it is dead.
    pub(crate) fn attempts(&self, settings: &Settings) -> u8 {
        self.spec.retry.attempts.unwrap_or(settings.attempts)
    }

    /// Returns how long the job waits once every node that may have it has reached a limit.
    pub(crate) fn give_up(&self, settings: &Settings) -> Duration {
        let secs = self.spec.retry.give_up_secs;
        secs.map_or(settings.give_up, |secs| Duration::from_secs(secs.into()))
    }

    /// Whether each frame needs the result of the frame before.
    pub(crate) fn is_chained(&self) -> bool {
        self.feeding().is_some()
    }

    /// Whether no unit of the frame at this position may be leased yet, because it needs an
    /// unfinished frame or waits for another job.
    pub(crate) fn is_shut(&self, position: u32) -> bool {
        self.lacks_feed(position) || self.waits_at(position)
    }

    /// Whether the frame at this position reads a frame of the job that is not finished.
    pub(crate) fn lacks_feed(&self, position: u32) -> bool {
        self.is_chained() && self.feeder(position).is_none() && position > 0
    }

    /// Returns the result that the frame at this position reads, once it is finished.
    pub(crate) fn fed(&self, position: u32) -> Option<BlobHash> {
        let compute = self.feeding()?;
        let done = self.feeder(position)?.read()?;
        let npy = compute.formats.iter().position(|format| *format == ComputeFormat::Npy)?;
        let place = compute.fed_output()? * compute.formats.len() + npy;
        Some(done.files.get(place)?.hash)
    }

    /// Returns the frame before the one at this position, once it is finished.
    fn feeder(&self, position: u32) -> Option<Done<'_>> {
        match self.frames.get(position.checked_sub(1)?)? {
            Frame::Done(done) => Some(done),
            _ => None,
        }
    }

    /// Returns the number of units of all frames. With rounds, only of the rounds so far, without
    /// those that a failed frame lacked.
    pub(crate) fn units(&self) -> u64 {
        match self.grid.has_rounds() {
            true => self.counts.units_committed + self.counts.units_open,
            false => u64::from(self.grid.units()) * u64::from(self.frames.len()),
        }
    }

    /// Returns the mean camera samples of a unit; with rounds, of an open one.
    pub(crate) fn mean_unit_samples(&self) -> f64 {
        if self.grid.has_rounds() && self.counts.units_open > 0 {
            return self.counts.samples_open as f64 / self.counts.units_open as f64;
        }
        self.grid.frame_camera_samples() as f64 / f64::from(self.grid.units().max(1))
    }

    /// Returns the number of units that wait for a result and may be worked on beside one of this
    /// frame. In a chained job, only those of the same frame.
    pub(crate) fn units_beside(&self, position: u32) -> u64 {
        match self.frames.get(position) {
            Some(frame) if self.is_chained() => u64::from(open_of(frame, &self.grid).0),
            _ => self.counts.units_open,
        }
    }

    /// Returns the task of a unit's lease: all of the unit, what its parts lack, or the part that
    /// is to be checked.
    pub(crate) fn task(&self, place: Place) -> Option<Task> {
        if let Some(piece) = self.grid.piece(place.unit) {
            let exposure_bits = self.kind().render()?.exposure.to_bits();
            return Some(Task::Finish(Finish { piece, exposure_bits }));
        }
        let task = self.grid.task(place.unit, self.fed(place.position))?;
        let open = self.frames.get(place.position).and_then(|frame| frame.unfinished());
        Some(match (task, open) {
            (Task::Tile { tile, samples }, Some(open)) => {
                Task::Tile { tile, samples: open.wanted_samples(place.unit, samples) }
            }
            (task, _) => task,
        })
    }

    /// Returns the work of a unit's lease now, in camera samples or indices; 0 of a finishing unit.
    pub(crate) fn lease_samples(&self, unit: UnitKey) -> u64 {
        let open = self
            .frame(unit.frame)
            .and_then(|frame| frame.unfinished())
            .filter(|open| open.parts.has(unit.unit));
        let whole = SampleRange { first: 0, count: self.grid.unit_size(unit.unit) };
        match open {
            Some(open) => {
                self.grid.camera_samples(unit.unit, open.wanted_samples(unit.unit, whole).count)
            }
            None => self.grid.unit_camera_samples(unit.unit),
        }
    }

    /// Returns the camera samples that are committed in frames that have begun and are not
    /// finished.
    pub(crate) fn samples_of_unfinished(&self) -> u64 {
        self.frames
            .unfinished()
            .map(|(_, open)| committed_of(Frame::Open(open), &self.grid).1)
            .sum()
    }

    /// Returns the camera samples of the finished frames.
    pub(crate) fn samples_of_done(&self) -> u64 {
        let failed = self.frames.begun().map(|(_, begun)| match begun.view() {
            failed @ Frame::Failed(_) => committed_of(failed, &self.grid).1,
            _ => 0,
        });
        let others = self.samples_of_unfinished() + failed.sum::<u64>();
        self.counts.samples_committed.saturating_sub(others)
    }
}
