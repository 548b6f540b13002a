//! Questions about the finishing of frames by nodes.

use super::Core;
use crate::frames::finish;
use crate::input::SessionId;
use tessera_protocol::ids::{FrameNumber, JobId, NodeId, UnitKey};

impl Core {
    /// Whether nodes have finished a complete frame, or finish it now: its files are put together
    /// from the results of its finishing units.
    pub fn is_finished_by_nodes(&self, id: JobId, frame: FrameNumber) -> bool {
        let frame = self.books.farm().job(id).and_then(|job| job.frame(frame)?.unfinished());
        frame.is_some_and(|open| open.is_finished_by_nodes())
    }

    /// Whether a unit finishes a frame, and has no samples of its own.
    pub fn is_finishing(&self, unit: UnitKey) -> bool {
        self.books.farm().job(unit.job).is_some_and(|job| job.grid().piece(unit.unit).is_some())
    }

    /// Returns the nodes that may put the files of a frame together, with another one first for
    /// each frame.
    pub fn joiners(&self, id: JobId, frame: FrameNumber) -> Vec<(SessionId, NodeId)> {
        finish::joiners(&self.books, id, frame)
    }
}
