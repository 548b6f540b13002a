//! A connection ready for use: the peer is known and a protocol version is agreed.

use crate::authority::public_key_info;
use crate::close::{CloseCode, close};
use crate::peer::{PeerError, PeerIdentity};
use crate::timing::Timing;
use crate::token::AuthorityPin;
use crate::validity::Validity;
use quinn::Connection;
use rustls::pki_types::CertificateDer;
use std::time::Duration;
use tessera_protocol::Hello;

/// How long a close may take to reach the peer.
const CLOSE_WITHIN: Duration = Duration::from_secs(2);

/// What a peer's certificate says of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Credential {
    /// Who it is.
    pub peer: PeerIdentity,
    /// Its certificate's validity. It may have expired already: within the farm's grace such a peer
    /// is let in, to renew it and do nothing else.
    pub validity: Validity,
    /// The authority that the peer names as the signer's; None where it names none.
    pub authority: Option<AuthorityPin>,
}

impl Credential {
    /// Reads the identity at the other end of a connection; None for a peer without a certificate
    /// (it may only enrol).
    pub fn of_connection(connection: &Connection) -> Result<Option<Self>, PeerError> {
        let Some(identity) = connection.peer_identity() else { return Ok(None) };
        let chain = identity
            .downcast::<Vec<CertificateDer<'static>>>()
            .map_err(|_| PeerError::Malformed)?;
        let Some(own) = chain.first() else { return Ok(None) };
        let validity = Validity::of_certificate(own).ok_or(PeerError::Malformed)?;
        let key = chain.get(1).and_then(public_key_info);
        let authority = key.map(|key| AuthorityPin::of_public_key(&key));
        Ok(Some(Self { peer: PeerIdentity::of_certificate(own)?, validity, authority }))
    }
}

/// One live connection, either side.
#[derive(Debug)]
pub struct Link {
    /// The QUIC connection.
    pub connection: Connection,
    /// Who is at the other end, on the coordinator's side; None for a peer without a certificate,
    /// which may only enrol. On the dialling side always None: the peer is the farm's coordinator,
    /// or there is no link.
    pub peer: Option<PeerIdentity>,
    /// All that the peer's certificate says; None where `peer` is.
    pub credential: Option<Credential>,
    /// What the peer said of itself.
    pub hello: Hello,
    /// The protocol version both speak.
    pub version: u16,
    /// The limits of time this connection has.
    pub timing: Timing,
    // The dialling side has an endpoint per connection, which must live on until a close is on the
    // wire.
    pub(crate) endpoint: Option<quinn::Endpoint>,
}

impl Link {
    /// The peer may use what members of the farm may: until then a few streams and little of this
    /// side's memory are its.
    pub fn welcome(&self) {
        let is_node = self.peer.as_ref().is_some_and(|peer| peer.node.is_some());
        crate::socket::prove(&self.connection, is_node);
    }

    /// Closes the connection and, on the dialling side, waits (at most 2 s) until the peer can
    /// know.
    pub async fn close(&self, code: CloseCode, reason: &str) {
        close(&self.connection, code, reason);
        if let Some(endpoint) = &self.endpoint {
            // A peer that is gone makes this wait in vain; nothing is lost by that.
            let _ = tokio::time::timeout(CLOSE_WITHIN, endpoint.wait_idle()).await;
        }
    }
}
