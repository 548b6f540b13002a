//! What time it is here, for a peer that compares its own clock. Decides nothing by it.

use super::Trouble;
use std::time::{SystemTime, UNIX_EPOCH};
use tessera_protocol::stream::ClockReading;
use tessera_transport::FrameSender;

/// Tells the wall clock's time: the one that certificates are judged by.
pub(super) async fn tell(sender: &mut FrameSender) -> Result<(), Trouble> {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let unix_millis = u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX);
    sender.send(&ClockReading { unix_millis }).await?;
    sender.finish();
    Ok(())
}
