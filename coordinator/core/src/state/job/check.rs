//! Whether what is counted of a job, and its parts and checks, agree with its frames.

use super::Job;
use super::counts::{Counts, committed_of, open_of};
use crate::state::frame::{Frame, OpenFrame};
use crate::state::parts::{PARTS_MAX, total};

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
