//! Ends, pauses and new beginnings of a job and its frames, as the records about them say.

use super::counts::open_of;
use super::{End, Job, Pause};
use crate::state::done::{DoneFrame, Spent};
use crate::state::frame::Frame;
use crate::time::Moment;
use tessera_protocol::ids::{Epoch, FrameNumber};
use tessera_protocol::status::{FailureNote, FrameFile, JobState};

/// Most failed attempts that are kept for people.
const FAILURES_MAX: usize = 64;

impl Job {
    /// Counts a stopped lease of a unit that had two.
    pub(crate) fn stop_copy(
        &mut self,
        stopped: Epoch,
        winner: Epoch,
        millis: u64,
    ) -> Result<(), String> {
        if self.is_final() || stopped == winner {
            return Err(format!("{stopped} of job {} is stopped for {winner}", self.id));
        }
        let copies = &mut self.copies;
        let count = if winner > stopped { &mut copies.won } else { &mut copies.lost };
        *count = count.saturating_add(1);
        copies.wasted_millis = copies.wasted_millis.saturating_add(millis);
        Ok(())
    }

    pub(crate) fn note_failure(&mut self, note: FailureNote) {
        if self.failures.len() == FAILURES_MAX {
            self.failures.pop_front();
        }
        self.failures.push_back(note);
    }

    pub(crate) fn finish_frame(
        &mut self,
        number: FrameNumber,
        files: &[FrameFile],
    ) -> Result<(), String> {
        let (id, position) = (self.id, self.position_of(number)?);
        let Some(Frame::Complete(open)) = self.frames.get(position) else {
            return Err(format!("{id}/{number} is finished, but its units are not in"));
        };
        let spent = open.rounds.as_ref().map(|rounds| Spent {
            units: rounds.units(),
            camera_samples: rounds.camera_samples(),
            samples: rounds.newest_samples(),
        });
        self.frames.finish(position, &DoneFrame { files: files.to_vec(), spent })?;
        self.counts.frames_done += 1;
        Ok(())
    }

    pub(crate) fn fail_frame(&mut self, number: FrameNumber, reason: &str) -> Result<(), String> {
        let (grid, position) = (self.grid, self.position_of(number)?);
        let frame = self.frames.get(position).filter(|frame| !frame.is_final());
        let frame = frame.ok_or_else(|| format!("frame {number} had ended"))?;
        let (units, samples) = open_of(frame, &grid);
        self.frames.fail(position, &grid, reason);
        self.counts.frames_failed += 1;
        self.counts.units_open -= u64::from(units);
        self.counts.samples_open -= samples;
        Ok(())
    }

    /// Pauses the job. The error says why it cannot be paused.
    pub(crate) fn pause(&mut self, pause: Pause) -> Result<(), String> {
        if self.is_final() || self.paused.is_some() {
            return Err(format!("job {} is paused, and has ended or was paused already", self.id));
        }
        self.paused = Some(pause);
        Ok(())
    }

    /// Resumes the job.
    pub(crate) fn resume(&mut self) -> Result<(), String> {
        let paused = self.paused.take();
        paused.map(drop).ok_or_else(|| format!("job {} is resumed, and was not paused", self.id))
    }

    /// Opens every failed frame again, and the job with them.
    pub(crate) fn retry(&mut self, below: Epoch) -> Result<(), String> {
        if self.counts.frames_failed == 0 {
            return Err(format!(
                "failed frames of job {} are opened again, and it has none",
                self.id
            ));
        }
        self.frames.retry();
        self.end = None;
        self.counts = self.derived_counts();
        self.fence = self.fence.max(below);
        let in_parts = self.frames.unfinished().any(|(_, open)| !open.parts.is_empty());
        if self.counts.units_committed == 0 && !in_parts {
            // Without results, no fingerprint is required any more.
            self.fingerprint = None;
        }
        Ok(())
    }

    /// Returns the first frame to which nothing has happened.
    pub(crate) fn first_untouched(&self) -> Option<u32> {
        self.frames.first_of_rest().filter(|_| !self.is_final())
    }

    /// Ends the job. Unfinished frames fail with the note.
    pub(crate) fn end_as(&mut self, state: JobState, at: Moment, note: &str) -> Result<(), String> {
        if self.is_final() || !state.is_final() {
            return Err(format!("job {} cannot end as {state:?}", self.id));
        }
        let all_done = self.counts.frames_done == self.frames.len();
        if (state == JobState::Done) != all_done {
            return Err(format!(
                "job {} ends as {state:?} with {} frames done",
                self.id, self.counts.frames_done
            ));
        }
        self.frames.end(&self.grid, note);
        self.counts.frames_failed = self.frames.len() - self.counts.frames_done;
        (self.counts.units_open, self.counts.samples_open) = (0, 0);
        self.end = Some(End { state, at, note: note.to_owned() });
        self.paused = None;
        Ok(())
    }
}
