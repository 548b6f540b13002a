//! A node's lines: read within bounds, and kept as far as the node may say them. Too many of them
//! are left out; only what breaks the protocol ends the connection.

use super::shared::Shared;
use super::trouble::Trouble;
use crate::logs::Sayable;
use std::time::Duration;
use tessera_protocol::NodeId;
use tessera_protocol::logs::{LINES_MAX, LINES_MESSAGE_MAX, LogLines};
use tessera_transport::FrameReceiver;

/// Pause after a message of a node that says too much.
const TOO_MUCH: Duration = Duration::from_millis(250);

/// Reads lines until the stream ends.
pub(super) async fn take(
    shared: &Shared,
    node: (NodeId, &str),
    may: &Sayable,
    receiver: FrameReceiver,
) -> Result<(), Trouble> {
    let mut receiver = receiver.limited(LINES_MESSAGE_MAX);
    while let Some(lines) = receiver.receive::<LogLines>().await? {
        lines.check().map_err(|count| {
            Trouble::Protocol(format!("{count} lines in a message are more than {LINES_MAX}"))
        })?;
        if shared.logs.take(node, may, lines) {
            // It waits by flow control, and costs no time that others need.
            tokio::time::sleep(TOO_MUCH).await;
        }
    }
    Ok(())
}
