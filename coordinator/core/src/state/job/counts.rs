//! What is counted of a job, and what one frame adds to it.

use crate::splitter::Split;
use crate::state::frame::{Frame, OpenFrame};
use crate::state::parts::total;
use tessera_protocol::ids::UnitIndex;

/// Counts of the frames; kept where the frames change, checked by [`super::Job::check_counts`].
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

/// Units of a frame that wait for a result, and their camera samples. Finishing units are not
/// counted.
pub(super) fn open_of(frame: Frame<'_>, grid: &Split) -> (u32, u64) {
    match frame {
        Frame::Untouched => grid.first_work(),
        Frame::Open(open) => {
            // A snapshot's rounds comes after its bitmap.
            let units = open.units(grid).saturating_sub(open.sampled(grid));
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
pub(super) fn committed_of(frame: Frame<'_>, grid: &Split) -> (u32, u64) {
    match frame {
        Frame::Untouched => (0, 0),
        Frame::Open(open) => {
            let whole = whole_units_of(open, grid);
            let begun = open.parts.iter().filter(|(unit, _)| !open.committed.get(unit.0));
            let parts: u64 =
                begun.map(|(unit, parts)| grid.camera_samples(unit, total(parts))).sum();
            (open.sampled(grid), whole + parts)
        }
        Frame::Complete(open) => (open.units(grid), open.camera_samples(grid)),
        // Counted by their sums.
        Frame::Done(_) => (0, 0),
        Frame::Failed(failed) => (failed.units_committed, failed.samples_committed),
    }
}

/// Camera samples of a committed unit that came in parts before its last result.
pub(super) fn parts_before_last(open: &OpenFrame, unit: UnitIndex, grid: &Split) -> u64 {
    let parts = open.parts.of(unit);
    grid.camera_samples(unit, total(&parts[..parts.len().saturating_sub(1)]))
}
