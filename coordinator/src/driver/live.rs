//! Live tiles as the driver sees them: whether a node may send one, and who is told what is
//! watched. No record or action comes of them.

use super::Driver;
use crate::live::Outcome;
use tessera_core::SessionId;
use tessera_protocol::live::{LiveTile, Watched};
use tessera_protocol::node::CoordinatorToNode;

impl Driver {
    /// Tells all nodes what is watched from now on.
    pub(super) fn on_watched(&mut self, watched: Vec<Watched>) {
        self.live.watched = watched;
        self.sessions.keys().for_each(|session| self.tell_watched(*session));
        if self.live.watched.is_empty() {
            self.live.handed_in.clear();
        }
    }

    /// Tells a node what is watched.
    pub(super) fn tell_watched(&self, session: SessionId) {
        if let Some(handle) = self.sessions.get(&session) {
            handle.send(CoordinatorToNode::Watched { watched: self.live.watched.clone() });
        }
    }

    /// Tells a node that has just joined what is watched, if anything is.
    pub(super) fn greet_with_watched(&self, session: SessionId) {
        if !self.live.watched.is_empty() {
            self.tell_watched(session);
        }
    }

    /// Passes a live tile on if it is of a lease that its node holds, or has just handed in.
    pub(super) fn on_live_tile(&mut self, session: SessionId, tile: LiveTile) {
        let outcome = match self.live.given(&self.core, session, tile.lease) {
            None => Outcome::Foreign,
            Some((rect, samples))
                if rect != tile.tile
                    || samples.first != tile.samples.first
                    || samples.count < tile.samples.count =>
            {
                Outcome::Wrong
            }
            Some(_) => self.around.live.pass(tile),
        };
        self.around.meters.live.note(outcome);
        if matches!(outcome, Outcome::Foreign | Outcome::Wrong) {
            tracing::debug!(?session, ?outcome, "a live tile is not passed on");
        }
    }
}
