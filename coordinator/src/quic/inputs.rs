//! Serves what finishing units read, to the node that has the lease.

use super::shared::Shared;
use super::trouble::Trouble;
use crate::driver::Event;
use crate::finish_inputs::InputParts;
use crate::spool::SpoolError;
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
    let InputsRequest { lease } = receiver.expect(timing.answer).await?;
    // The semaphore is never closed.
    let _turn = turns.acquire().await;
    let (reply, answer) = oneshot::channel();
    let asked = Event::Inputs { session, lease, reply };
    shared.events.send(asked).await.map_err(|_| Trouble::Stopping)?;
    let Some(order) = answer.await.map_err(|_| Trouble::Stopping)? else {
        let reason = format!("lease {lease} is not this node's any more");
        return refuse(sender, reason).await;
    };
    let spools = shared.spools.clone();
    let looked_up = {
        let _place = LOOKED_UP.acquire().await;
        tokio::task::spawn_blocking(move || InputParts::of(&order, &*spools)).await
    };
    let parts = match looked_up.map_err(|_| Trouble::Stopping)? {
        Ok(parts) => parts,
        Err(error) => {
            let reason = chain(&error);
            lose(shared, lease, error.lost_unit(), &reason).await?;
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
            Ok(error) => lose(shared, lease, error.lost_unit(), &chain(&error)).await,
            Err(source) => Err(BlobError::File { path, source }.into()),
        },
        Err(error) => Err(error.into()),
        Ok(()) => Ok(sender.finish_and_deliver(timing.answer * PATIENCE).await?),
    }
}

/// Answer times in which the last bytes must arrive.
const PATIENCE: u32 = 4;

async fn refuse(sender: &mut FrameSender, reason: String) -> Result<(), Trouble> {
    sender.send(&InputsReply::Refused(reason)).await?;
    sender.finish();
    Ok(())
}

/// Tells the core that a result must be made again, if it is the result that cannot be read.
async fn lose(
    shared: &Shared,
    lease: Lease,
    unit: Option<UnitIndex>,
    reason: &str,
) -> Result<(), Trouble> {
    tracing::warn!(%lease, reason, "what a finishing unit reads cannot be read");
    let Some(unit) = unit else { return Ok(()) };
    let (job, frame, reason) = (lease.unit.job, lease.unit.frame, reason.to_owned());
    let input = Input::ResultsLost { job, frame, units: vec![unit], reason };
    shared.events.send(Event::Input(Box::new(input))).await.map_err(|_| Trouble::Stopping)
}
