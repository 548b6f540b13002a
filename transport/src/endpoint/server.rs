//! The coordinator's side of the transport: binds, accepts, and makes links from arriving
//! connections. Serves no stream.

use crate::authority::{Authority, SERVER_NAME};
use crate::close::{CloseCode, close};
use crate::endpoint::intake::{self, Intake};
use crate::endpoint::link::{Credential, Link};
use crate::endpoint::{hello, socket, tls};
use crate::error::Ended;
use crate::identity::peer::PeerError;
use crate::timing::Timing;
use quinn::crypto::rustls::QuicServerConfig;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tessera_protocol::Hello;

pub use crate::endpoint::hello::HelloFailure;

/// Longest time for closes to reach the peers when the server stops.
const CLOSE_WITHIN: Duration = Duration::from_secs(2);

/// Most connections that have sent a first datagram and wait to be handled.
const INCOMING_MAX: usize = 1024;
/// Bytes that each of them can send before that: a TLS hello with room to spare.
const INCOMING_BYTES_MAX: u64 = 16 << 10;

/// Why the coordinator cannot listen.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The address is in use, or does not belong to this machine.
    #[error("cannot listen at UDP {address}")]
    Bind {
        /// Address to listen on.
        address: SocketAddr,
        /// Error of the system.
        #[source]
        source: std::io::Error,
    },
    /// The authority cannot be used.
    #[error("cannot make the coordinator's certificate ({SERVER_NAME}): {0}")]
    Tls(String),
}

/// Why an arriving connection did not become a link.
#[derive(Debug, thiserror::Error)]
pub enum AcceptError {
    /// TLS or QUIC failed, for example because of a foreign certificate.
    #[error(transparent)]
    Handshake(#[from] Ended),
    /// The handshake took too long.
    #[error("the peer did not finish its handshake within {} s", .0.as_secs_f32())]
    Slow(Duration),
    /// The certificate is from the authority, but has no identity.
    #[error(transparent)]
    Peer(#[from] PeerError),
    /// The hello is malformed, or names other versions.
    #[error(transparent)]
    Hello(#[from] HelloFailure),
}

/// A coordinator that listens for connections.
#[derive(Debug)]
pub struct Server {
    endpoint: quinn::Endpoint,
    _intake: Intake,
    timing: Timing,
}

impl Server {
    /// Listens on a UDP address, which a thread of its own reads; port 0 takes a free one.
    pub fn bind(
        address: SocketAddr,
        authority: &Authority,
        timing: Timing,
    ) -> Result<Self, ServeError> {
        let config = server_config(authority, &timing)?;
        let (endpoint, intake) = intake::endpoint(move || socket::endpoint(address, Some(config)))
            .map_err(|source| ServeError::Bind { address, source })?;
        Ok(Self { endpoint, _intake: intake, timing })
    }

    /// Uses this authority for new connections: they see a new certificate from it and are verified
    /// under it. Existing connections stay as they are.
    pub fn set_authority(&self, authority: &Authority) -> Result<(), ServeError> {
        self.endpoint.set_server_config(Some(server_config(authority, &self.timing)?));
        Ok(())
    }

    /// Returns the address that it listens on.
    pub fn local_address(&self) -> std::io::Result<SocketAddr> {
        self.endpoint.local_addr()
    }

    /// Returns the number of open connections, including those in their handshake.
    pub fn open_connections(&self) -> usize {
        self.endpoint.open_connections()
    }

    /// Returns the next arriving connection; None once the server is closed. Establish it in a
    /// separate task.
    pub async fn accept(&self) -> Option<Arriving> {
        let incoming = self.endpoint.accept().await?;
        Some(Arriving { incoming, timing: self.timing })
    }

    /// Closes all connections, accepts no more, and waits, at most 2 s, until the peers can know.
    pub async fn close(&self, code: CloseCode, reason: &str) {
        self.endpoint.close(
            code.into(),
            crate::close::cut(reason, crate::close::CLOSE_REASON_MAX).as_bytes(),
        );
        // If a peer is gone, this waits in vain, which is harmless.
        let _ = tokio::time::timeout(CLOSE_WITHIN, self.endpoint.wait_idle()).await;
    }
}

fn server_config(
    authority: &Authority,
    timing: &Timing,
) -> Result<quinn::ServerConfig, ServeError> {
    let broken = |error: &dyn std::fmt::Display| ServeError::Tls(error.to_string());
    let tls = tls::server(authority).map_err(|error| broken(&error))?;
    let crypto = QuicServerConfig::try_from(tls).map_err(|error| broken(&error))?;
    let mut config = quinn::ServerConfig::with_crypto(Arc::new(crypto));
    config.transport_config(socket::unproven_transport(timing));
    config
        .max_incoming(INCOMING_MAX)
        .incoming_buffer_size(INCOMING_BYTES_MAX)
        .incoming_buffer_size_total(INCOMING_MAX as u64 * INCOMING_BYTES_MAX);
    Ok(config)
}

/// A connection before its handshake.
#[derive(Debug)]
pub struct Arriving {
    incoming: quinn::Incoming,
    timing: Timing,
}

impl Arriving {
    /// Returns the address of the peer.
    pub fn remote_address(&self) -> SocketAddr {
        self.incoming.remote_address()
    }

    /// Turns the peer away, which sees a refused connection.
    pub fn refuse(self) {
        self.incoming.refuse();
    }

    /// Does not answer. A healthy peer asks again after a second.
    pub fn ignore(self) {
        self.incoming.ignore();
    }

    /// Returns whether the peer has proved that it receives at its address. Otherwise the address
    /// may be invented.
    pub fn is_proven(&self) -> bool {
        self.incoming.remote_address_validated()
    }

    /// Makes the peer prove its address (QUIC's Retry), which costs this side one datagram and no
    /// memory. A peer that has proved it already is ignored.
    pub fn prove(self) {
        if let Err(shown) = self.incoming.retry() {
            shown.into_incoming().ignore();
        }
    }

    /// Does the handshake and exchanges hellos. If this fails, the connection is closed with the
    /// reason.
    pub async fn establish(self, ours: &Hello) -> Result<Link, AcceptError> {
        let timing = self.timing;
        let handshake = async { self.incoming.accept()?.await };
        let connection = tokio::time::timeout(timing.answer, handshake)
            .await
            .map_err(|_| AcceptError::Slow(timing.answer))?
            .map_err(Ended::from)?;
        let credential = match Credential::of_connection(&connection) {
            Ok(credential) => credential,
            Err(error) => {
                close(&connection, CloseCode::NotAllowed, &error.to_string());
                return Err(error.into());
            }
        };
        let (hello, version) = hello::answer(&connection, ours, &timing).await?;
        let peer = credential.as_ref().map(|credential| credential.peer.clone());
        Ok(Link { connection, peer, credential, hello, version, timing, endpoint: None })
    }
}
