//! Answers the question for the coordinator's time, for peers that compare their clock. Decides
//! nothing.

use super::trouble::Trouble;
use std::time::{SystemTime, UNIX_EPOCH};
use tessera_protocol::stream::ClockReading;
use tessera_transport::FrameSender;

/// Sends the time of the wall clock, by which certificates are checked.
pub(super) async fn tell(sender: &mut FrameSender) -> Result<(), Trouble> {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let unix_millis = u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX);
    sender.send(&ClockReading { unix_millis }).await?;
    sender.finish();
    Ok(())
}
