//! A connection ready for use: the peer is known and a protocol version is agreed.

use crate::authority::certificate::public_key_info;
use crate::authority::serial::numbers_of;
use crate::authority::token::AuthorityPin;
use crate::authority::validity::Validity;
use crate::close::{CloseCode, close};
use crate::identity::peer::{PeerError, PeerIdentity};
use crate::timing::Timing;
use quinn::Connection;
use rustls::pki_types::CertificateDer;
use std::time::Duration;
use tessera_protocol::Hello;

/// Longest time for a close to reach the peer.
const CLOSE_WITHIN: Duration = Duration::from_secs(2);
/// Time between two looks at whether the peer has answered a close.
const CLOSE_LOOK: Duration = Duration::from_millis(1);

/// Content of a peer's certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Credential {
    /// Identity of the peer.
    pub peer: PeerIdentity,
    /// Validity of the certificate. It may have expired already: within the farm's grace such a
    /// peer is let in, but can only renew it.
    pub validity: Validity,
    /// Serial number of the certificate among those of its identity.
    pub serial: u64,
    /// Authority that the peer names as the signer; None if it names none.
    pub authority: Option<AuthorityPin>,
}

impl Credential {
    /// Reads the identity at the other end of a connection; None for a peer without a certificate,
    /// which can only enrol.
    pub fn of_connection(connection: &Connection) -> Result<Option<Self>, PeerError> {
        let Some(identity) = connection.peer_identity() else { return Ok(None) };
        let chain = identity
            .downcast::<Vec<CertificateDer<'static>>>()
            .map_err(|_| PeerError::Malformed)?;
        let Some(own) = chain.first() else { return Ok(None) };
        let validity = Validity::of_certificate(own).ok_or(PeerError::Malformed)?;
        let key = chain.get(1).and_then(public_key_info);
        let authority = key.map(|key| AuthorityPin::of_public_key(&key));
        let (_, serial) = numbers_of(own).ok_or(PeerError::Nameless)?;
        Ok(Some(Self { peer: PeerIdentity::of_certificate(own)?, validity, serial, authority }))
    }
}

/// A live connection, on either side.
#[derive(Debug)]
pub struct Link {
    /// The QUIC connection.
    pub connection: Connection,
    /// Identity of the peer, on the coordinator's side; None for a peer without a certificate,
    /// which can only enrol. On the dialling side it is always None: the peer is the farm's
    /// coordinator, or there is no link.
    pub peer: Option<PeerIdentity>,
    /// Content of the peer's certificate; None if `peer` is None.
    pub credential: Option<Credential>,
    /// Hello of the peer.
    pub hello: Hello,
    /// Protocol version that both sides speak.
    pub version: u16,
    /// Time limits of this connection.
    pub timing: Timing,
    // The dialling side has one endpoint per connection. It must exist until a close has been sent.
    pub(crate) endpoint: Option<quinn::Endpoint>,
}

impl Link {
    /// Gives the peer the limits of a member of the farm. Before that it has only a few streams and
    /// little of this side's memory.
    pub fn welcome(&self) {
        let is_node = self.peer.as_ref().is_some_and(|peer| peer.node.is_some());
        crate::endpoint::socket::prove(&self.connection, is_node);
    }

    /// Closes the connection. The dialling side waits, at most 2 s, until the peer has answered the
    /// close, which takes one round trip, or is given up.
    pub async fn close(&self, code: CloseCode, reason: &str) {
        close(&self.connection, code, reason);
        let Some(endpoint) = &self.endpoint else { return };
        let over = async {
            tokio::select! {
                () = self.close_answered() => {}
                // Three probe timeouts, in which a lost datagram may show. If the peer is gone,
                // this waits in vain, which is harmless.
                () = endpoint.wait_idle() => {}
            }
        };
        let _ = tokio::time::timeout(CLOSE_WITHIN, over).await;
    }

    /// Waits until the peer has answered a close: it knows of the end. QUIC tells no such event,
    /// only counts.
    async fn close_answered(&self) {
        while self.connection.stats().frame_rx.connection_close == 0 {
            tokio::time::sleep(CLOSE_LOOK).await;
        }
    }
}
