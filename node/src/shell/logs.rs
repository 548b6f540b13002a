//! Lines of the log on their way to the coordinator: on a stream of their own, after everything
//! else, and as well as may be.

use crate::log::NodeLog;
use quinn::Connection;
use std::time::Duration;
use tessera_protocol::logs::LogSource;
use tessera_protocol::node::Failure;
use tessera_protocol::stream::StreamKind;
use tessera_transport::FrameError;
use tessera_transport::frame::open_one_way;

/// Pause before lines are sent, so that those that come together share a message.
const PAUSE: Duration = Duration::from_millis(100);

/// Sends lines until the session ends.
pub(super) async fn write_lines(connection: Connection, log: NodeLog) {
    if let Err(error) = write(&connection, &log).await {
        tracing::debug!(%error, "no further lines of the log are sent in this session");
    }
}

async fn write(connection: &Connection, log: &NodeLog) -> Result<(), FrameError> {
    log.wait().await;
    let mut stream = open_one_way(connection, StreamKind::Log).await?;
    // Results, live tiles and everything else go first.
    stream.set_priority(-2);
    loop {
        log.wait().await;
        tokio::time::sleep(PAUSE).await;
        let lines = log.wait().await;
        stream.send(&lines).await?;
        log.sent(&lines);
    }
}

/// Returns who says why an attempt failed.
pub(super) fn source_of(failure: &Failure) -> LogSource {
    match failure {
        Failure::Scene(_) | Failure::Asset(_) | Failure::Limit(_) => LogSource::Importer,
        Failure::Program(_) => LogSource::Compiler,
        Failure::Unable(_) => LogSource::Node,
        Failure::Device(_)
        | Failure::OutOfMemory(_)
        | Failure::Worker(_)
        | Failure::TimedOut(_)
        | Failure::Kernel(_) => LogSource::Device,
    }
}
