//! UDP sockets and QUIC's transport settings. The figures were measured on loopback; see
//! docs/protocol.md.

use crate::congestion::FlooredCubic;
use crate::timing::Timing;
use quinn::{Endpoint, EndpointConfig, IdleTimeout, TokioRuntime, TransportConfig, VarInt};
use socket2::{Domain, Protocol, Socket, Type};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// Asked of the system for each direction; with it a full-speed loopback transfer loses no packet.
/// The system may give less.
const SOCKET_BUFFER_BYTES: usize = 4 << 20;
/// Streams of each kind that a peer may have open: a few dozen blobs side by side, and as many
/// requests.
const STREAMS_MAX: u32 = 256;
/// The same of a node: results and blobs. QUIC keeps an entry for each stream that may be opened,
/// so that few make an idle node cheap.
const NODE_STREAMS_MAX: u32 = 64;
/// Bytes of one stream on their way: 8 MiB is 80 ms at 100 MB/s.
const STREAM_WINDOW_BYTES: u32 = 8 << 20;
/// Bytes of one connection on their way, and so the most that a peer can make this side hold: 16
/// MiB is 80 MB/s at 200 ms.
const CONNECTION_WINDOW_BYTES: u32 = 16 << 20;
/// The same while the coordinator does not know who is there.
const UNPROVEN_WINDOW_BYTES: u32 = 64 << 10;
/// Streams of each kind that such a peer may have open: the hello's, and that of an enrolment.
const UNPROVEN_STREAMS_MAX: u32 = 4;

/// A QUIC endpoint on `address`; with a server's settings it accepts.
pub(crate) fn endpoint(
    address: SocketAddr,
    server: Option<quinn::ServerConfig>,
) -> io::Result<Endpoint> {
    let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
    if address.is_ipv6() && address.ip().is_unspecified() {
        // `[::]` serves IPv4 too; where the system cannot, it serves IPv6.
        let _ = socket.set_only_v6(false);
    }
    // Smaller buffers cost speed, not correctness.
    let _ = socket.set_recv_buffer_size(SOCKET_BUFFER_BYTES);
    let _ = socket.set_send_buffer_size(SOCKET_BUFFER_BYTES);
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    Endpoint::new(EndpointConfig::default(), server, socket.into(), Arc::new(TokioRuntime))
}

/// Settings of every connection of the dialling side. Congestion control is Cubic with a floor
/// ([`crate::congestion`]); MTU discovery stays at quinn's default.
pub(crate) fn transport(timing: &Timing, idle: Duration) -> TransportConfig {
    let mut config = TransportConfig::default();
    // Beyond QUIC's range (2^62 ms) there is no time-out.
    config.max_idle_timeout(IdleTimeout::try_from(idle).ok());
    config.congestion_controller_factory(Arc::new(FlooredCubic));
    config.keep_alive_interval(Some(timing.keep_alive));
    config.max_concurrent_bidi_streams(VarInt::from_u32(STREAMS_MAX));
    config.max_concurrent_uni_streams(VarInt::from_u32(STREAMS_MAX));
    config.stream_receive_window(VarInt::from_u32(STREAM_WINDOW_BYTES));
    config.receive_window(VarInt::from_u32(CONNECTION_WINDOW_BYTES));
    config.send_window(u64::from(CONNECTION_WINDOW_BYTES));
    // Tessera sends no datagrams; a peer's are not buffered.
    config.datagram_receive_buffer_size(None);
    config
}

/// Settings of every connection on the coordinator's side, until [`prove`].
pub(crate) fn unproven_transport(timing: &Timing) -> Arc<TransportConfig> {
    let mut config = transport(timing, timing.idle);
    config.max_concurrent_bidi_streams(VarInt::from_u32(UNPROVEN_STREAMS_MAX));
    config.max_concurrent_uni_streams(VarInt::from_u32(UNPROVEN_STREAMS_MAX));
    config.receive_window(VarInt::from_u32(UNPROVEN_WINDOW_BYTES));
    Arc::new(config)
}

/// Gives a peer that is known what members of the farm have.
pub(crate) fn prove(connection: &quinn::Connection, is_node: bool) {
    let streams = VarInt::from_u32(if is_node { NODE_STREAMS_MAX } else { STREAMS_MAX });
    connection.set_max_concurrent_bi_streams(streams);
    connection.set_max_concurrent_uni_streams(streams);
    connection.set_receive_window(VarInt::from_u32(CONNECTION_WINDOW_BYTES));
}
