//! Checks the way to a coordinator, and the ports for running one. A coordinator is asked for its
//! QUIC versions, which it tells any peer (RFC 9000, section 6): this needs no identity and leaves
//! nothing behind.

use super::{Finding, skew};
use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::path::Path;
use std::time::{Duration, Instant};
use tessera_protocol::Hello;
use tessera_transport::error::chain;
use tessera_transport::{Address, CloseCode, Identity, Timing};

/// Wait for an answer, and how often one is asked for: datagrams may be lost.
const ANSWER_WAIT: Duration = Duration::from_secs(1);
const TRIES: usize = 3;
/// A datagram that a server must answer is at least this long (RFC 9000, section 14.1).
const DATAGRAM_BYTES: usize = 1200;
/// A version of the pattern 0x?a?a?a?a is kept free for asking (RFC 9000, section 15).
const VERSION_OF_NOBODY: u32 = 0x1a2a_3a4a;
/// Round trip above which a node should hold more work ahead than it does.
const ROUND_TRIP_WANTED: Duration = Duration::from_millis(250);

/// A local address that a coordinator is to listen at.
pub(crate) fn listen(address: SocketAddr) -> Finding {
    match UdpSocket::bind(address) {
        Ok(_) => Finding::ok("listen", format!("{address}/udp is free")),
        Err(error) if error.kind() == ErrorKind::AddrInUse => Finding::fail(
            "listen",
            format!("{address}/udp is in use"),
            "another coordinator may run here: `ss -ulpn`; or choose another port: --listen \
                ADDR:PORT",
        ),
        Err(error) => Finding::fail(
            "listen",
            format!("{address}/udp: {error}"),
            "choose an address of this machine",
        ),
    }
}

/// Checks the coordinator, first as an unknown peer and then as the identity in the data folder.
pub(crate) async fn coordinator(text: &str, identity_folder: &Path) -> Vec<Finding> {
    let address: Address = match text.parse() {
        Ok(address) => address,
        Err(error) => {
            let hint = "write HOST:PORT, or several between commas";
            return vec![Finding::fail("coordinator", chain(&error), hint)];
        }
    };
    let found = match address.resolve().await {
        Ok(found) => found,
        Err(error) => {
            let hint = "correct the name, or the name service: `getent hosts HOST`";
            return vec![Finding::fail("coordinator", chain(&error), hint)];
        }
    };
    let asked = tokio::task::spawn_blocking(move || reach(&found)).await;
    let mut findings = vec![match asked {
        Ok(finding) => finding,
        Err(error) => Finding::fail("coordinator", error.to_string(), "try again"),
    }];
    if findings[0].verdict != super::Verdict::Fail && Identity::is_at(identity_folder) {
        findings.extend(join(&address, identity_folder).await);
    }
    findings
}

/// The first of the addresses that answers, and what those before it have said: of a farm's
/// coordinators, only the one that leads has to answer.
fn reach(addresses: &[SocketAddr]) -> Finding {
    let mut problems = Vec::new();
    for address in addresses {
        match ask(*address) {
            Ok(took) if took > ROUND_TRIP_WANTED => {
                let text = format!("{address}/udp answers after {} ms", took.as_millis());
                return Finding::warn(
                    "coordinator",
                    with(text, &problems),
                    "so far away, small units leave devices waiting",
                );
            }
            Ok(took) => {
                let millis = took.as_secs_f64() * 1e3;
                let text = format!("{address}/udp answers after {millis:.1} ms");
                return Finding::ok("coordinator", with(text, &problems));
            }
            Err(error) => problems.push(match error.kind() {
                ErrorKind::ConnectionRefused => format!("nothing listens at {address}/udp"),
                ErrorKind::WouldBlock | ErrorKind::TimedOut => {
                    format!("no answer from {address}/udp")
                }
                _ => format!("{address}/udp: {error}"),
            }),
        }
    }
    Finding::fail(
        "coordinator",
        problems.join("; "),
        "is `tessera coordinator` running there, and does every firewall on the way let UDP \
            through, both ways?",
    )
}

/// A text, and the problems of other addresses.
fn with(text: String, problems: &[String]) -> String {
    std::iter::once(text).chain(problems.iter().cloned()).collect::<Vec<_>>().join("; ")
}

/// Time to the answer of a QUIC server.
fn ask(address: SocketAddr) -> io::Result<Duration> {
    let any: IpAddr =
        if address.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let socket = UdpSocket::bind((any, 0))?;
    socket.connect(address)?;
    socket.set_read_timeout(Some(ANSWER_WAIT))?;
    let mut last = io::Error::from(ErrorKind::TimedOut);
    for attempt in 0..TRIES {
        // Names this attempt, so that a late answer to an earlier one is not taken for this one's.
        // It is no secret.
        let id = [b't', b'e', b's', b's', b'e', b'r', b'a', attempt as u8];
        let start = Instant::now();
        match exchange(&socket, id) {
            Ok(()) => return Ok(start.elapsed()),
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn exchange(socket: &UdpSocket, id: [u8; 8]) -> io::Result<()> {
    socket.send(&question(id))?;
    let mut buffer = [0; DATAGRAM_BYTES];
    let start = Instant::now();
    while start.elapsed() < ANSWER_WAIT {
        let length = socket.recv(&mut buffer)?;
        if is_answer(&buffer[..length], id) {
            return Ok(());
        }
    }
    Err(ErrorKind::TimedOut.into())
}

/// A long header of a version that does not exist; both connection ids are `id`.
fn question(id: [u8; 8]) -> [u8; DATAGRAM_BYTES] {
    let mut datagram = [0; DATAGRAM_BYTES];
    datagram[0] = 0xc0;
    datagram[1..5].copy_from_slice(&VERSION_OF_NOBODY.to_be_bytes());
    for start in [5, 14] {
        datagram[start] = id.len() as u8;
        datagram[start + 1..start + 9].copy_from_slice(&id);
    }
    datagram
}

/// A version negotiation: a long header of version 0 with our ids, then versions.
fn is_answer(datagram: &[u8], id: [u8; 8]) -> bool {
    let ids = |start: usize| datagram[start] == 8 && datagram[start + 1..start + 9] == id;
    datagram.len() >= 27 && datagram[0] & 0x80 != 0 && datagram[1..5] == [0; 4] && ids(5) && ids(14)
}

/// Checks whether the coordinator accepts this identity, and the difference of the clocks.
async fn join(address: &Address, folder: &Path) -> Vec<Finding> {
    let identity = match Identity::load(folder) {
        Ok(identity) => identity,
        Err(error) => {
            let hint = "move the folder away and enrol with a new token";
            return vec![Finding::fail("identity", chain(&error), hint)];
        }
    };
    let ours = Hello::ours(tessera_node::fingerprint());
    match tessera_transport::connect(address, &identity, &ours, Timing::default()).await {
        Ok(link) => {
            let (build, same) =
                (link.hello.build.clone(), link.hello.fingerprint == ours.fingerprint);
            let skew = skew::look(&link).await;
            link.close(CloseCode::Done, "the doctor has seen enough").await;
            let text = format!("{} may join; the coordinator is {build}", identity.peer);
            let hint = "jobs keep to nodes of one fingerprint: run the same build everywhere";
            let identity = match same {
                true => Finding::ok("identity", text),
                false => Finding::warn("identity", format!("{text}, of another fingerprint"), hint),
            };
            vec![identity, skew]
        }
        Err(error) => {
            let hint = error.hint().unwrap_or("see the coordinator's log").to_owned();
            vec![Finding::fail("identity", chain(&error), hint)]
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_told_from_noise() {
        let id = *b"tessera0";
        let mut answer = question(id)[..31].to_vec();
        answer[1..5].fill(0);
        assert!(is_answer(&answer, id));
        assert!(!is_answer(&answer, *b"tessera1"));
        assert!(!is_answer(&question(id), id), "our own question");
        for length in 0..27 {
            assert!(!is_answer(&answer[..length], id));
        }
    }

    #[test]
    fn a_port_in_use_is_reported() {
        let taken = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = taken.local_addr().unwrap();
        assert_eq!(listen(address).verdict, super::super::Verdict::Fail);
        drop(taken);
        assert_eq!(listen(address).verdict, super::super::Verdict::Ok);
    }

    #[test]
    fn an_unreachable_coordinator_is_reported() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = socket.local_addr().unwrap();
        drop(socket);
        let finding = reach(&[address]);
        assert_eq!(finding.verdict, super::super::Verdict::Fail);
        assert!(finding.text.contains("nothing listens"), "{finding:?}");
    }
}
