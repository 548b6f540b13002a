//! Serves what finishing units read, to the node that has the lease.

use super::shared::Shared;
use super::trouble::Trouble;
use crate::driver::Event;
use crate::finish_inputs::{InputParts, InputsError, InputsOrder, elsewhere};
use crate::spool::{SpoolError, SpoolReader, StoredResults, maker_of};
use quinn::Connection;
use std::sync::Arc;
use tessera_core::{Input, SessionId};
use tessera_protocol::stream::{InputsReply, InputsRequest};
use tessera_protocol::{Lease, UnitIndex};
use tessera_transport::blob::send_all;
use tessera_transport::error::chain;
use tessera_transport::{BlobError, BlobRead, FrameReceiver, FrameSender, Timing};
use tokio::sync::{Semaphore, oneshot};

/// Inputs that are sent to one node at a time: those of the next unit while one is worked on.
/// Further ones wait.
pub(super) const SERVED_MAX: usize = 2;

/// Inputs that are looked up at a time. For an assembly that reads one whole band after the other,
/// which may have 68 MiB.
static LOOKED_UP: Semaphore = Semaphore::const_new(8);

/// Serves one request.
pub(super) async fn serve(
    shared: &Shared,
    (session, turns): (SessionId, Arc<Semaphore>),
    (sender, receiver): (&mut FrameSender, &mut FrameReceiver),
    (connection, timing): (&Connection, Timing),
) -> Result<(), Trouble> {
    let InputsRequest { lease, direct } = receiver.expect(timing.answer).await?;
    // The semaphore is never closed.
    let _turn = turns.acquire().await;
    let (reply, answer) = oneshot::channel();
    let asked = Event::Inputs { session, lease, reply };
    shared.events.send(asked).await.map_err(|_| Trouble::Stopping)?;
    let Some(order) = answer.await.map_err(|_| Trouble::Stopping)? else {
        let reason = format!("lease {lease} is not this node's any more");
        return refuse(sender, reason).await;
    };
    let stored = order.extent.stored.clone();
    let (spools, here) = (shared.spools.clone(), connection.remote_address().ip().is_loopback());
    let looked_up = {
        let _place = LOOKED_UP.acquire().await;
        tokio::task::spawn_blocking(move || look_up(&order, &*spools, (direct, here))).await
    };
    let parts = match looked_up.map_err(|_| Trouble::Stopping)? {
        Ok(Found::Here(parts)) => parts,
        Ok(Found::Elsewhere(reply)) => {
            sender.send(&reply).await?;
            sender.finish();
            return Ok(());
        }
        Err(error) => {
            let reason = chain(&error);
            lose(shared, (lease, &stored), error.lost_unit(), &reason).await?;
            return refuse(sender, reason).await;
        }
    };
    let place = parts.place();
    let reply = InputsReply::Inputs { parts: parts.count(), bytes: parts.length() };
    sender.send(&reply).await?;
    let sent = send_all(Box::new(parts), &place, (connection, sender), &timing).await;
    match sent {
        // The stream was reset. What is lost is made again, and its lease ends.
        Err(BlobError::File { path, source }) => match source.downcast::<SpoolError>() {
            Ok(error) => lose(shared, (lease, &stored), error.lost_unit(), &chain(&error)).await,
            Err(source) => Err(BlobError::File { path, source }.into()),
        },
        Err(error) => Err(error.into()),
        Ok(()) => Ok(sender.finish_and_deliver(timing.answer * PATIENCE).await?),
    }
}

/// What a finishing unit reads.
enum Found {
    /// It is sent from here.
    Here(InputParts),
    /// The node gets it itself.
    Elsewhere(InputsReply),
}

fn look_up(
    order: &InputsOrder,
    spools: &dyn SpoolReader,
    (direct, here): (bool, bool),
) -> Result<Found, InputsError> {
    if direct && let Some(reply) = elsewhere::of(order, spools, here)? {
        return Ok(Found::Elsewhere(reply));
    }
    InputParts::of(order, spools).map(Found::Here)
}

/// Answer times in which the last bytes must arrive.
const PATIENCE: u32 = 4;

async fn refuse(sender: &mut FrameSender, reason: String) -> Result<(), Trouble> {
    sender.send(&InputsReply::Refused(reason)).await?;
    sender.finish();
    Ok(())
}

/// Tells the core that a result must be made again, if it is the result that cannot be read, and
/// whose word about a store was wrong.
async fn lose(
    shared: &Shared,
    (lease, stored): (Lease, &[Arc<StoredResults>]),
    unit: Option<UnitIndex>,
    reason: &str,
) -> Result<(), Trouble> {
    let (job, frame) = (lease.unit.job, lease.unit.frame);
    let Some(unit) = unit else {
        if shared.log.allows("inputs") {
            tracing::warn!(%lease, reason, "a frame waits: its results cannot be read");
        }
        return Ok(());
    };
    tracing::warn!(%lease, reason, "what a finishing unit reads cannot be read");
    let reason = reason.to_owned();
    let lost = Input::ResultsLost { job, frame, units: vec![unit], reason };
    let wrong = maker_of(stored, unit).map(|node| Input::StoredWrong { node, job });
    for input in [lost].into_iter().chain(wrong) {
        let event = Event::Input(Box::new(input));
        shared.events.send(event).await.map_err(|_| Trouble::Stopping)?;
    }
    Ok(())
}
