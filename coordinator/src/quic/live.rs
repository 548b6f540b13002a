//! A node's live tiles: read within bounds, and passed to the driver if it has time. Whatever goes
//! wrong with them is counted and dropped; only what breaks the protocol ends the connection.

use super::shared::Shared;
use super::trouble::Trouble;
use crate::driver::Event;
use crate::live::Outcome;
use std::sync::Arc;
use tessera_core::SessionId;
use tessera_protocol::live::{LIVE_MESSAGE_MAX, LiveTile};
use tessera_transport::{FrameReceiver, Timing};
use tokio::sync::Semaphore;
use tokio::sync::mpsc::error::TrySendError;

/// Live tiles of all nodes that are read or wait for the driver at a time: 256 of 24 KiB are 6 MiB.
pub(crate) const ON_THEIR_WAY_MAX: usize = 256;

/// Reads one live tile.
pub(super) async fn take(
    shared: &Shared,
    session: SessionId,
    receiver: FrameReceiver,
    timing: Timing,
) -> Result<(), Trouble> {
    let meters = &shared.meters.live;
    let Ok(place) = shared.live_places.clone().try_acquire_owned() else {
        meters.note(Outcome::Busy);
        return Ok(());
    };
    let tile: LiveTile = receiver.limited(LIVE_MESSAGE_MAX).expect(timing.answer).await?;
    if let Err(error) = tile.check() {
        meters.note(Outcome::Wrong);
        return Err(Trouble::Protocol(error.to_string()));
    }
    let unit = tile.lease.unit;
    if !shared.live.has(unit.job, unit.frame) {
        meters.note(Outcome::Unwatched);
        return Ok(());
    }
    let event = Event::LiveTile { session, tile: Box::new(tile), place };
    match shared.events.try_send(event) {
        Ok(()) => Ok(()),
        Err(TrySendError::Full(_)) => {
            meters.note(Outcome::Busy);
            Ok(())
        }
        Err(TrySendError::Closed(_)) => Err(Trouble::Stopping),
    }
}

/// Returns places for the live tiles of all nodes.
pub(crate) fn places() -> Arc<Semaphore> {
    Arc::new(Semaphore::new(ON_THEIR_WAY_MAX))
}
