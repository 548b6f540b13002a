//! Ports for servers that are started again: below those that the system gives to sockets that name
//! none, so that no other test's socket has one while its server is down.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// The ports that are tried: those of the system begin at 32,768.
const FIRST: u32 = 10_000;
const COUNT: u32 = 10_000;

/// An address with a UDP port that is free now.
pub fn udp(ip: IpAddr) -> SocketAddr {
    static TRIED: AtomicU32 = AtomicU32::new(0);
    for _ in 0..COUNT {
        // Test programs beside this one begin elsewhere.
        let next = std::process::id().wrapping_mul(97).wrapping_add(TRIED.fetch_add(1, Relaxed));
        let address = SocketAddr::new(ip, (FIRST + next % COUNT) as u16);
        if UdpSocket::bind(address).is_ok() {
            return address;
        }
    }
    panic!("no UDP port is free at {ip}");
}
