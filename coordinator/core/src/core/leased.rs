//! What the node of a session holds by a lease: its task, and whether a result would be taken.

use super::Core;
use crate::input::SessionId;
use crate::results::acceptance::is_acceptable;
use tessera_protocol::ids::Lease;
use tessera_protocol::node::{Finish, SampleRange, Task, TileRect};

impl Core {
    /// Whether the node of this session may hand in a result of one of these leases now.
    pub fn may_hand_in(&self, session: SessionId, leases: &[Lease]) -> bool {
        let node = self.books.roster().node_of(session);
        node.is_some_and(|node| leases.iter().any(|lease| is_acceptable(&self.books, node, *lease)))
    }

    /// Returns what the unit of a lease finishes; None unless the node of this session holds the
    /// lease.
    pub fn finish_of(&self, session: SessionId, lease: Lease) -> Option<Finish> {
        match self.task_of(session, lease)? {
            Task::Finish(finish) => Some(finish),
            Task::Tile { .. } | Task::Chunk { .. } => None,
        }
    }

    /// Returns the tile and the samples of a lease; None unless the node of this session holds the
    /// lease, and its unit renders a tile.
    pub fn tile_of(&self, session: SessionId, lease: Lease) -> Option<(TileRect, SampleRange)> {
        match self.task_of(session, lease)? {
            Task::Tile { tile, samples } => Some((tile, samples)),
            Task::Chunk { .. } | Task::Finish(_) => None,
        }
    }

    /// Returns whether the node of this session holds a lease.
    pub fn holds(&self, session: SessionId, lease: Lease) -> bool {
        self.task_of(session, lease).is_some()
    }

    /// Returns the task of a lease that the node of this session holds.
    fn task_of(&self, session: SessionId, lease: Lease) -> Option<Task> {
        let held = self.books.leases().get(lease)?;
        let asks = self.books.roster().node_of(session)?;
        let job = self.books.farm().job(lease.unit.job).filter(|_| held.node == asks)?;
        job.task(job.place(lease.unit)?)
    }
}
