//! What is watched live, and what nodes may send live tiles of.

use std::collections::VecDeque;
use tessera_core::{Core, SessionId};
use tessera_protocol::Lease;
use tessera_protocol::live::Watched;
use tessera_protocol::node::{SampleRange, TileRect};

/// Leases that are remembered when their results arrive. A live tile may be some milliseconds
/// later.
const HANDED_IN_MAX: usize = 256;

/// What is watched, and the newest leases whose results have arrived.
#[derive(Debug, Default)]
pub(super) struct LiveRoom {
    pub(super) watched: Vec<Watched>,
    pub(super) handed_in: VecDeque<(SessionId, Lease, (TileRect, SampleRange))>,
}

impl LiveRoom {
    /// Remembers what a lease was for, before its result ends it.
    pub(super) fn note_result(&mut self, core: &Core, session: SessionId, lease: Lease) {
        let unit = lease.unit;
        let is_watched = self.watched.iter().any(|watched| watched.has(unit.job, unit.frame));
        let Some(given) = is_watched.then(|| core.tile_of(session, lease)).flatten() else {
            return;
        };
        if self.handed_in.len() == HANDED_IN_MAX {
            self.handed_in.pop_front();
        }
        self.handed_in.push_back((session, lease, given));
    }

    /// Returns the tile and samples of a lease that the session holds, or has just handed in.
    pub(super) fn given(
        &self,
        core: &Core,
        session: SessionId,
        lease: Lease,
    ) -> Option<(TileRect, SampleRange)> {
        core.tile_of(session, lease).or_else(|| {
            let found = self.handed_in.iter().rev();
            let mut found = found.filter(|(by, of, _)| (*by, *of) == (session, lease));
            found.next().map(|(_, _, given)| *given)
        })
    }
}
