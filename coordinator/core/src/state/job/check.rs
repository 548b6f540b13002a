//! Whether what is counted of a job, and its parts and checks, agree with its frames.

use super::Job;
use super::counts::{Counts, committed_of, open_of};
use crate::state::frame::{Frame, OpenFrame};
use crate::state::parts::{PARTS_MAX, total};

impl Job {
    /// The counts as the frames have them.
    pub(super) fn derived_counts(&self) -> Counts {
        let (done, grid) = (self.frames.done(), &self.grid);
        let (sums, rest) = (done.sums(), u64::from(self.frames.rest()));
        let alike = u64::from(sums.alike);
        let mut counts = Counts {
            frames_done: done.len(),
            frames_failed: self.frames.failed(),
            units_committed: sums.units + alike * u64::from(grid.units()),
            samples_committed: sums.camera_samples + alike * grid.frame_camera_samples(),
            ..Counts::default()
        };
        if !self.is_final() {
            let (units, samples) = open_of(Frame::Untouched, grid);
            counts.units_open = rest * u64::from(units);
            counts.samples_open = rest * samples;
        }
        for (_, begun) in self.frames.begun() {
            let (units, samples) = committed_of(begun.view(), grid);
            counts.units_committed += u64::from(units);
            counts.samples_committed += samples;
            let (units_open, samples_open) = open_of(begun.view(), grid);
            counts.units_open += u64::from(units_open);
            counts.samples_open += samples_open;
        }
        counts
    }

    /// The counts that are kept are those that the frames have.
    pub(crate) fn check_counts(&self) -> Result<(), String> {
        let derived = self.derived_counts();
        let done = self.frames.done();
        if derived != self.counts || done.summed() != done.sums() {
            return Err(format!(
                "job {} counts {:?}, its frames have {derived:?}",
                self.id, self.counts
            ));
        }
        self.frames.unfinished().try_for_each(|(_, open)| self.check_parts(open))
    }

    /// Parts of an open unit are fewer samples than it has, those of a committed one all; and the
    /// check of one is about its first part that is to be checked.
    fn check_parts(&self, open: &OpenFrame) -> Result<(), String> {
        if let Some(rounds) = &open.rounds {
            rounds.check(&open.committed)?;
        }
        if !open.is_finishing_sound(&self.grid) {
            return Err(format!("a frame is finished {:?}, against its units", open.finishing()));
        }
        for (unit, parts) in open.parts.iter() {
            let (whole, samples) = (self.grid.unit_size(unit), total(parts));
            let committed = open.committed.get(unit.0);
            let sound = if committed { samples == whole } else { samples < whole };
            if !sound || parts.is_empty() || parts.len() > PARTS_MAX + usize::from(committed) {
                return Err(format!("unit {} of {whole} samples has the parts {parts:?}", unit.0));
            }
            let next = open.parts.to_check(unit).filter(|_| committed).map(|(part, _)| part.result);
            if open.checks.get(&unit).map(|check| check.committed) != next {
                return Err(format!(
                    "unit {} is checked as {:?}, not {next:?}",
                    unit.0,
                    open.checks.get(&unit)
                ));
            }
        }
        Ok(())
    }
}
