//! What is counted of a job, and whether its frames say the same.

use super::Job;
use crate::splitter::Split;
use crate::state::frame::{Frame, OpenFrame};
use crate::state::parts::{PARTS_MAX, total};
use tessera_protocol::ids::UnitIndex;

/// Counts of the frames; kept where the frames change, checked by [`Job::check_counts`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) frames_done: u32,
    pub(crate) frames_failed: u32,
    /// Not committed, of frames that wait for them.
    pub(crate) units_open: u64,
    /// Camera samples of those, the parts that are there included.
    pub(crate) samples_open: u64,
    pub(crate) units_committed: u64,
    pub(crate) samples_committed: u64,
}

impl Job {
    /// The counts as the frames have them.
    pub(super) fn derived_counts(&self) -> Counts {
        let mut counts = Counts::default();
        for frame in &self.frames {
            let (units, samples) = committed_of(frame, &self.grid);
            counts.units_committed += u64::from(units);
            counts.samples_committed += samples;
            let (units_open, samples_open) = open_of(frame, &self.grid);
            counts.units_open += u64::from(units_open);
            counts.samples_open += samples_open;
            counts.frames_done += u32::from(matches!(frame, Frame::Done(_)));
            counts.frames_failed += u32::from(matches!(frame, Frame::Failed(_)));
        }
        counts
    }

    /// The counts that are kept are those that the frames have.
    pub(crate) fn check_counts(&self) -> Result<(), String> {
        let derived = self.derived_counts();
        if derived != self.counts {
            return Err(format!(
                "job {} counts {:?}, its frames have {derived:?}",
                self.id, self.counts
            ));
        }
        self.frames.iter().filter_map(Frame::unfinished).try_for_each(|open| self.check_parts(open))
    }

    /// Parts of an open unit are fewer samples than it has, those of a committed one all; and the
    /// check of one is about its first part that is to be checked.
    fn check_parts(&self, open: &OpenFrame) -> Result<(), String> {
        if let Some(rounds) = &open.rounds {
            rounds.check(&open.committed)?;
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

/// Units of a frame that wait for a result, and their camera samples.
pub(super) fn open_of(frame: &Frame, grid: &Split) -> (u32, u64) {
    match frame {
        Frame::Untouched => grid.first_work(),
        Frame::Open(open) => {
            // A snapshot's rounds comes after its bitmap.
            let units = open.units(grid).saturating_sub(open.committed.ones());
            (units, open.camera_samples(grid).saturating_sub(whole_units_of(open, grid)))
        }
        Frame::Complete(_) | Frame::Done(_) | Frame::Failed(_) => (0, 0),
    }
}

/// Camera samples of the committed units.
fn whole_units_of(open: &OpenFrame, grid: &Split) -> u64 {
    let committed = (0..grid.units()).filter(|unit| open.committed.get(*unit));
    committed.map(|unit| grid.unit_camera_samples(UnitIndex(unit))).sum()
}

/// Units and camera samples committed in a frame.
pub(super) fn committed_of(frame: &Frame, grid: &Split) -> (u32, u64) {
    match frame {
        Frame::Untouched => (0, 0),
        Frame::Open(open) => {
            let whole = whole_units_of(open, grid);
            let begun = open.parts.iter().filter(|(unit, _)| !open.committed.get(unit.0));
            let parts: u64 =
                begun.map(|(unit, parts)| grid.camera_samples(unit, total(parts))).sum();
            (open.committed.ones(), whole + parts)
        }
        Frame::Complete(open) => (open.units(grid), open.camera_samples(grid)),
        Frame::Done(done) => match done.spent {
            Some(spent) => (spent.units, spent.camera_samples),
            None => (grid.units(), grid.frame_camera_samples()),
        },
        Frame::Failed(failed) => (failed.units_committed, failed.samples_committed),
    }
}

/// Camera samples of a committed unit that came in parts before its last result.
pub(super) fn parts_before_last(open: &OpenFrame, unit: UnitIndex, grid: &Split) -> u64 {
    let parts = open.parts.of(unit);
    grid.camera_samples(unit, total(&parts[..parts.len().saturating_sub(1)]))
}
