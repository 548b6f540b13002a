//! UDP sockets and QUIC's transport settings. The values were measured on loopback; see
//! docs/protocol.md.

use crate::endpoint::congestion::FlooredCubic;
use crate::timing::Timing;
use quinn::{
    AckFrequencyConfig, Endpoint, EndpointConfig, IdleTimeout, MtuDiscoveryConfig, TokioRuntime,
    TransportConfig, VarInt,
};
use socket2::{Domain, Protocol, Socket, Type};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// Buffer size that is requested for each direction, in bytes. With it a full-speed transfer over
/// loopback loses no packet. The system may give less.
const SOCKET_BUFFER_BYTES: usize = 4 << 20;
/// Largest UDP payload in bytes, where the path takes it: loopback does, and networks with jumbo
/// frames. A packet costs both ends more than its bytes do. quinn hands ten packets to the system
/// at once, which takes at most 65,507 bytes.
pub const PACKET_BYTES_MAX: u16 = 6500;
/// Most streams of each kind that a peer can have open: a few dozen blobs and as many requests at
/// the same time.
const STREAMS_MAX: u32 = 256;
/// The same limit for a node. One way it sends up to 8 results, 4 live tiles, its lines and its
/// heartbeats; both ways it has its session, 8 blobs and 3 ranges ahead, 2 inputs of finishing
/// units, 8 results for a store elsewhere, 2 finished frames and a renewal. The other side learns
/// of up to 3 streams late that they are free. QUIC keeps an entry for each possible stream, so a
/// low limit makes an idle node cheap.
const NODE_STREAMS_MAX: u32 = 28;
/// Bytes of one stream in flight: 8 MiB is 40 MB/s at 200 ms, so that a large blob uses several
/// streams on such a line. A stream that nobody reads takes a quarter of the connection's.
pub(crate) const STREAM_WINDOW_BYTES: u32 = 8 << 20;
/// Bytes of one connection in flight, and so the most memory that a peer can use on this side. 32
/// MiB is 160 MB/s at 200 ms: more than a line of 1 Gbit/s.
const CONNECTION_WINDOW_BYTES: u32 = 32 << 20;
/// Least bytes that this side keeps for a peer that sends nothing back for them yet.
const SEND_WINDOW_BYTES_MIN: u64 = 1 << 20;
/// Bytes per second that this side's buffer is made for, up to the connection's window. More of it
/// on a short line would only push the bytes out of the processor's caches before they are sent.
const SEND_BYTES_PER_SECOND: u64 = 1 << 30;
/// The same limit while the coordinator does not know the peer.
const UNPROVEN_WINDOW_BYTES: u32 = 64 << 10;
/// Packets that the other side may receive without an acknowledgement. An acknowledgement for
/// every second one, which is QUIC's default, costs a twentieth of a fast transfer.
const UNACKNOWLEDGED_PACKETS: u32 = 10;
/// Longest time until the other side acknowledges a packet. QUIC's default is 25 ms, for which a
/// short message would wait here if the next packets did not come.
const ACKNOWLEDGED_WITHIN: Duration = Duration::from_millis(5);
/// Most streams of each kind for an unknown peer: the hello's, and that of an enrolment.
const UNPROVEN_STREAMS_MAX: u32 = 4;

/// Opens a QUIC endpoint on `address`. With a server's settings it accepts connections.
pub(crate) fn endpoint(
    address: SocketAddr,
    server: Option<quinn::ServerConfig>,
) -> io::Result<Endpoint> {
    let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
    if address.is_ipv6() && address.ip().is_unspecified() {
        // `[::]` also serves IPv4. If the system cannot do so, it serves only IPv6.
        let _ = socket.set_only_v6(false);
    }
    // Smaller buffers cost speed, not correctness.
    let _ = socket.set_recv_buffer_size(SOCKET_BUFFER_BYTES);
    let _ = socket.set_send_buffer_size(SOCKET_BUFFER_BYTES);
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    let mut config = EndpointConfig::default();
    config.max_udp_payload_size(PACKET_BYTES_MAX).map_err(io::Error::other)?;
    Endpoint::new(config, server, socket.into(), Arc::new(TokioRuntime))
}

/// Returns the settings of the dialling side. Congestion control is Cubic with a lower bound
/// ([`crate::endpoint::congestion`]). The size of packets is searched from 1,200 bytes upwards, and
/// a probe that is lost says nothing of the line's load.
pub(crate) fn transport(timing: &Timing, idle: Duration) -> TransportConfig {
    let mut config = TransportConfig::default();
    // Beyond QUIC's range (2^62 ms) there is no timeout.
    config.max_idle_timeout(IdleTimeout::try_from(idle).ok());
    config.congestion_controller_factory(Arc::new(FlooredCubic));
    config.keep_alive_interval(Some(timing.keep_alive));
    config.max_concurrent_bidi_streams(VarInt::from_u32(STREAMS_MAX));
    config.max_concurrent_uni_streams(VarInt::from_u32(STREAMS_MAX));
    config.stream_receive_window(VarInt::from_u32(STREAM_WINDOW_BYTES));
    config.receive_window(VarInt::from_u32(CONNECTION_WINDOW_BYTES));
    config.send_window(u64::from(CONNECTION_WINDOW_BYTES));
    let mut acknowledgements = AckFrequencyConfig::default();
    acknowledgements.ack_eliciting_threshold(VarInt::from_u32(UNACKNOWLEDGED_PACKETS));
    acknowledgements.max_ack_delay(Some(ACKNOWLEDGED_WITHIN));
    config.ack_frequency_config(Some(acknowledgements));
    let mut packets = MtuDiscoveryConfig::default();
    packets.upper_bound(PACKET_BYTES_MAX);
    config.mtu_discovery_config(Some(packets));
    // Tessera sends no datagrams, and a peer's datagrams are not buffered.
    config.datagram_receive_buffer_size(None);
    config
}

/// Returns the settings of the coordinator's side, which hold until [`prove`].
pub(crate) fn unproven_transport(timing: &Timing) -> Arc<TransportConfig> {
    let mut config = transport(timing, timing.idle);
    config.max_concurrent_bidi_streams(VarInt::from_u32(UNPROVEN_STREAMS_MAX));
    config.max_concurrent_uni_streams(VarInt::from_u32(UNPROVEN_STREAMS_MAX));
    config.receive_window(VarInt::from_u32(UNPROVEN_WINDOW_BYTES));
    Arc::new(config)
}

/// Fits the bytes that wait here until the peer has them to the line's round trip.
pub(crate) fn fit_send_window(connection: &quinn::Connection) {
    connection.set_send_window(send_window(connection.rtt()));
}

fn send_window(round_trip: Duration) -> u64 {
    let bytes = round_trip.as_micros() * u128::from(SEND_BYTES_PER_SECOND) / 1_000_000;
    let most = u64::from(CONNECTION_WINDOW_BYTES);
    u64::try_from(bytes).unwrap_or(most).clamp(SEND_WINDOW_BYTES_MIN, most)
}

/// Gives a known peer the limits of a member of the farm.
pub(crate) fn prove(connection: &quinn::Connection, is_node: bool) {
    let streams = VarInt::from_u32(if is_node { NODE_STREAMS_MAX } else { STREAMS_MAX });
    connection.set_max_concurrent_bi_streams(streams);
    connection.set_max_concurrent_uni_streams(streams);
    connection.set_receive_window(VarInt::from_u32(CONNECTION_WINDOW_BYTES));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn send_windows_fit_the_line() {
        let window = |millis| send_window(Duration::from_millis(millis));
        assert_eq!(window(0), 1 << 20);
        assert_eq!(window(10), (10 << 30) / 1000);
        assert_eq!([window(40), window(200), window(u64::MAX)], [32 << 20; 3]);
    }

    #[test]
    fn known_peers_fill_a_long_line_and_unknown_ones_have_little() {
        let in_200_ms = |bits_per_second: u64| bits_per_second / 8 / 5;
        assert!(u64::from(CONNECTION_WINDOW_BYTES) >= in_200_ms(1_000_000_000));
        // Four streams of one blob fill it, and one that nobody reads does not.
        assert_eq!(CONNECTION_WINDOW_BYTES, 4 * STREAM_WINDOW_BYTES);
        const { assert!(UNPROVEN_WINDOW_BYTES * UNPROVEN_STREAMS_MAX <= 256 << 10) };
    }
}
