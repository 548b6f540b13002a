//! Dials a coordinator: resolves, connects, exchanges hellos, and reports exactly what failed.
//! Begins several handshakes within the time to dial. Later attempts are the caller's.

use crate::authority::token::AuthorityPin;
use crate::endpoint::address::Address;
use crate::endpoint::hello::{self, HelloFailure};
use crate::endpoint::link::Link;
use crate::endpoint::{places, socket, tls};
use crate::error::ConnectError;
use crate::identity::Identity;
use crate::stream::frame::FrameError;
use crate::timing::Timing;
use quinn::crypto::rustls::QuicClientConfig;
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use tessera_protocol::Hello;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// When handshakes begin, in shares of the time to dial. Earlier ones continue beside later ones. A
/// coordinator forgets a handshake from which it hears nothing for three seconds. On a line that
/// loses every fifth datagram this happens once in a few dozen handshakes.
const TRIES: [f32; 3] = [0.0, 0.2, 0.5];

/// Time in shares of that to dial after which a place without an answer is not waited for alone.
const PATIENCE: f32 = 0.1;

/// Connects to the coordinator of the identity's farm. Its places are tried in turn, each for
/// `timing.dial`, and the next one while an earlier one does not answer for a tenth of that.
pub async fn connect(
    address: &Address,
    identity: &Identity,
    hello: &Hello,
    timing: Timing,
) -> Result<Link, ConnectError> {
    let tls = tls::client(identity).map_err(|error| ConnectError::Identity(error.to_string()))?;
    dial(address, tls, hello, timing).await
}

/// Connects without an identity, to enrol. The server must belong to the authority with this key.
pub(crate) async fn connect_to_enrol(
    address: &Address,
    pin: AuthorityPin,
    hello: &Hello,
    timing: Timing,
) -> Result<Link, ConnectError> {
    let tls =
        tls::enrolling_client(pin).map_err(|error| ConnectError::Identity(error.to_string()))?;
    dial(address, tls, hello, timing).await
}

async fn dial(
    address: &Address,
    (tls, seen): tls::Dialler,
    hello: &Hello,
    timing: Timing,
) -> Result<Link, ConnectError> {
    let crypto = QuicClientConfig::try_from(tls)
        .map_err(|error| ConnectError::Identity(error.to_string()))?;
    let mut config = quinn::ClientConfig::new(Arc::new(crypto));
    // An answer may be late. Once there is a connection, the coordinator's idle time counts.
    config.transport_config(Arc::new(socket::transport(&timing, timing.dial.max(timing.idle))));
    let reach = |address, at| {
        let (config, hello) = (config.clone(), hello.clone());
        let dialling = Arc::new(Dialling { address, config, hello, timing });
        async move { dialling.reach(at).await }
    };
    let reached = places::first(address, timing.dial.mul_f32(PATIENCE), reach).await;
    reached.map_err(|error| error.with_clocks(seen.apart()))
}

struct Dialling {
    address: Address,
    config: quinn::ClientConfig,
    hello: Hello,
    timing: Timing,
}

impl Dialling {
    /// Returns the first of several tries that succeeds. A try without an answer leaves the
    /// decision to the others. Any other failure is final.
    async fn reach(self: &Arc<Self>, candidate: SocketAddr) -> Result<Link, ConnectError> {
        let until = Instant::now() + self.timing.dial;
        let mut tries = JoinSet::new();
        for share in TRIES {
            let (dialling, wait) = (self.clone(), self.timing.dial.mul_f32(share));
            tries.spawn(async move {
                tokio::time::sleep(wait).await;
                dialling.attempt(candidate, until).await
            });
        }
        let mut silence = self.unreachable();
        while let Some(ended) = tries.join_next().await {
            match ended {
                Ok(Err(error @ ConnectError::Unreachable { .. })) => silence = error,
                Ok(result) => return result,
                Err(failed) => {
                    // Otherwise the runtime is stopping, and this task with it.
                    if let Ok(panic) = failed.try_into_panic() {
                        std::panic::resume_unwind(panic);
                    }
                }
            }
        }
        Err(silence)
    }

    async fn attempt(&self, candidate: SocketAddr, until: Instant) -> Result<Link, ConnectError> {
        let endpoint =
            socket::endpoint(any_address(candidate), None).map_err(ConnectError::Socket)?;
        let connecting = endpoint
            .connect_with(self.config.clone(), candidate, tls::server_name())
            .map_err(|error| ConnectError::Identity(error.to_string()))?;
        let limit = self.timing.dial;
        let connection = tokio::select! {
            // Both may be ready on a busy machine. An answer is worth more than the result of the
            // probe.
            biased;
            result = tokio::time::timeout_at(until, connecting) => match result {
                Ok(Ok(connection)) => connection,
                Ok(Err(error)) => return Err(ConnectError::from_connection(&self.address, error,
                    limit)),
                Err(_) => return Err(self.unreachable()),
            },
            error = bounced(candidate) => return Err(self.bounced(error)),
        };
        match hello::offer(&connection, &self.hello, &self.timing).await {
            Ok((hello, version)) => {
                let timing = self.timing;
                Ok(Link {
                    connection,
                    peer: None,
                    credential: None,
                    hello,
                    version,
                    timing,
                    endpoint: Some(endpoint),
                })
            }
            Err(failure) => {
                let error = self.failed_hello(&connection, failure);
                // Wait until the close and its reason have reached the other side.
                let _ = tokio::time::timeout(self.timing.answer / 4, endpoint.wait_idle()).await;
                Err(error)
            }
        }
    }

    fn failed_hello(&self, connection: &quinn::Connection, failure: HelloFailure) -> ConnectError {
        let address = self.address.clone();
        match failure {
            HelloFailure::Hello(source @ tessera_protocol::HelloError::Version { .. }) => {
                ConnectError::Version { address, source }
            }
            HelloFailure::Hello(_) | HelloFailure::Early(_) => ConnectError::NotTessera { address },
            HelloFailure::Frame(FrameError::Silent(_)) => {
                ConnectError::Unreachable { address, within: self.timing.answer }
            }
            // The server checks our certificate after we have checked its certificate. Its verdict
            // arrives as the end of the connection.
            HelloFailure::Frame(FrameError::Ended(ended)) => match connection.close_reason() {
                Some(error) if error != quinn::ConnectionError::LocallyClosed => {
                    ConnectError::from_connection(&self.address, error, self.timing.dial)
                }
                _ => ConnectError::Ended { address, source: ended },
            },
            HelloFailure::Frame(_) => ConnectError::NotTessera { address },
        }
    }

    fn unreachable(&self) -> ConnectError {
        ConnectError::Unreachable { address: self.address.clone(), within: self.timing.dial }
    }

    fn bounced(&self, source: std::io::Error) -> ConnectError {
        let address = self.address.clone();
        match source.kind() {
            ErrorKind::ConnectionRefused => ConnectError::Refused { address },
            _ => ConnectError::NoRoute { address, source },
        }
    }
}

fn any_address(peer: SocketAddr) -> SocketAddr {
    let ip = match peer {
        SocketAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        SocketAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
    };
    SocketAddr::new(ip, 0)
}

/// Returns only if the system reports that datagrams to this address are rejected: nothing listens
/// there, or there is no route. QUIC's own socket is not connected, so it gets no such report. This
/// sends one byte, which QUIC ignores.
async fn bounced(address: SocketAddr) -> std::io::Error {
    let probe = async {
        let socket = tokio::net::UdpSocket::bind(any_address(address)).await?;
        socket.connect(address).await?;
        socket.send(&[0]).await?;
        loop {
            socket.recv(&mut [0; 16]).await?;
        }
    };
    let result: Result<std::convert::Infallible, std::io::Error> = probe.await;
    match result {
        Err(error) if is_verdict(error.kind()) => error,
        _ => std::future::pending().await,
    }
}

fn is_verdict(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::ConnectionRefused | ErrorKind::NetworkUnreachable | ErrorKind::HostUnreachable
    )
}
