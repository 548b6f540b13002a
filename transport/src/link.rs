//! A connection that is ready for use: the peer is known and a protocol version is agreed. Owns its closing.

use crate::close::{CloseCode, close};
use crate::peer::PeerIdentity;
use crate::timing::Timing;
use quinn::Connection;
use std::time::Duration;
use tessera_protocol::Hello;

/// How long a close may take to reach the peer.
const CLOSE_WITHIN: Duration = Duration::from_secs(2);

/// One live connection, either side.
#[derive(Debug)]
pub struct Link {
    /// The QUIC connection.
    pub connection: Connection,
    /// Who is at the other end, on the coordinator's side; None for a peer without a certificate, which may only enrol. On the
    /// dialling side always None: the peer is the farm's coordinator, or there is no link.
    pub peer: Option<PeerIdentity>,
    /// What the peer said of itself.
    pub hello: Hello,
    /// The protocol version both speak.
    pub version: u16,
    /// The limits of time this connection has.
    pub timing: Timing,
    // The dialling side has an endpoint per connection, which must live on until a close is on the wire.
    pub(crate) endpoint: Option<quinn::Endpoint>,
}

impl Link {
    /// Closes the connection and, on the dialling side, waits (at most 2 s) until the peer can know.
    pub async fn close(&self, code: CloseCode, reason: &str) {
        close(&self.connection, code, reason);
        if let Some(endpoint) = &self.endpoint {
            // A peer that is gone makes this wait in vain; nothing is lost by that.
            let _ = tokio::time::timeout(CLOSE_WITHIN, endpoint.wait_idle()).await;
        }
    }
}
