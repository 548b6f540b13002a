//! What a transfer is compared with, and how processes are measured.

use crate::{Cost, measured};
use bytes::Bytes;
use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;
use tessera_protocol::BlobHash;
use tessera_transport::PACKET_BYTES_MAX;

/// Bytes that are handed over at once.
const STEP_BYTES: usize = 1 << 20;
/// Pieces that are taken from QUIC at once.
const PIECES: usize = 64;

/// Writes the file that is sent, with other bytes in each round. Returns what hashing it in memory
/// costs, by steps as they arrive, and the hash.
pub(crate) fn write_source(path: &Path, length: usize, round: usize) -> (Cost, String) {
    let mut hasher = blake3::Hasher::new();
    let mut source = blake3::Hasher::new().update(&round.to_le_bytes()).finalize_xof();
    let mut file = File::create(path).expect("a file that can be written");
    let (mut step, mut left) = (vec![0; STEP_BYTES], length);
    let mut cost = Cost { secs: 0.0, cpu: 0.0 };
    while left > 0 {
        let count = left.min(STEP_BYTES);
        source.fill(&mut step[..count]);
        file.write_all(&step[..count]).expect("room on the disk");
        let begun = Instant::now();
        hasher.update(&step[..count]);
        cost.secs += begun.elapsed().as_secs_f64();
        left -= count;
    }
    file.sync_all().expect("a file that can be synced");
    // It does nothing but compute.
    cost.cpu = cost.secs;
    (cost, BlobHash(*hasher.finalize().as_bytes()).to_string())
}

/// Copies a file to another one in steps, syncs it, and reads it back.
pub(crate) fn disk(path: &Path, source: &Path) -> Cost {
    let (cost, ()) = measured(|| {
        let mut from = File::open(source).expect("the source");
        let mut to = File::create(path).expect("a file that can be written");
        let mut step = vec![0; STEP_BYTES];
        loop {
            match from.read(&mut step).expect("a file that can be read") {
                0 => break,
                count => to.write_all(&step[..count]).expect("room on the disk"),
            }
        }
        to.sync_all().expect("a file that can be synced");
        let mut back = File::open(path).expect("the copy");
        while back.read(&mut step).expect("a file that can be read") > 0 {}
    });
    std::fs::remove_file(path).expect("the copy");
    cost
}

/// Settings of a bare stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Packets {
    /// All of quinn's own.
    Own,
    /// Quinn's, with packets as large as Tessera's.
    AsOurs,
}

/// Sends bytes over one bare stream of quinn, both ends in this process. Nothing is read from a
/// file, hashed or written.
pub(crate) fn quinn(length: usize, packets: Packets) -> Cost {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let (server, client) = runtime.block_on(async { endpoints(packets) });
    let address = server.local_addr().expect("an address");
    let (cost, ()) = measured(|| {
        runtime.block_on(async {
            let receiving = tokio::spawn(receive(server));
            let connecting = client.connect(address, "localhost").expect("a client");
            let connection = connecting.await.expect("a connection");
            let mut stream = connection.open_uni().await.expect("a stream");
            let (piece, mut left) = (Bytes::from(vec![7; STEP_BYTES]), length);
            while left > 0 {
                let count = left.min(STEP_BYTES);
                stream.write_chunk(piece.slice(..count)).await.expect("a peer that reads");
                left -= count;
            }
            stream.finish().expect("an open stream");
            assert_eq!(receiving.await.expect("no panic"), length);
        });
    });
    cost
}

async fn receive(server: quinn::Endpoint) -> usize {
    let incoming = server.accept().await.expect("a client");
    let connection = incoming.await.expect("a connection");
    let mut stream = connection.accept_uni().await.expect("a stream");
    let mut pieces = [const { Bytes::new() }; PIECES];
    let mut length = 0;
    while let Some(count) = stream.read_chunks(&mut pieces).await.expect("a peer that sends") {
        length += pieces[..count].iter().map(Bytes::len).sum::<usize>();
    }
    length
}

fn endpoints(packets: Packets) -> (quinn::Endpoint, quinn::Endpoint) {
    let signed = rcgen::generate_simple_self_signed(["localhost".to_owned()]);
    let signed = signed.expect("a certificate");
    let certificate = signed.cert.der().clone();
    let key = rustls::pki_types::PrivatePkcs8KeyDer::from(signed.signing_key.serialize_der());
    let config = quinn::ServerConfig::with_single_cert(vec![certificate.clone()], key.into());
    let mut server_config = config.expect("a configuration");
    let mut roots = rustls::RootCertStore::empty();
    roots.add(certificate).expect("a certificate");
    let config = quinn::ClientConfig::with_root_certificates(Arc::new(roots));
    let mut client_config = config.expect("a configuration");
    let mut endpoint_config = quinn::EndpointConfig::default();
    if packets == Packets::AsOurs {
        let mut discovery = quinn::MtuDiscoveryConfig::default();
        discovery.upper_bound(PACKET_BYTES_MAX);
        let mut transport = quinn::TransportConfig::default();
        transport.mtu_discovery_config(Some(discovery));
        let transport = Arc::new(transport);
        server_config.transport_config(transport.clone());
        client_config.transport_config(transport);
        endpoint_config.max_udp_payload_size(PACKET_BYTES_MAX).expect("a size in range");
    }
    let open = |server| {
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").expect("a port");
        let runtime = Arc::new(quinn::TokioRuntime);
        quinn::Endpoint::new(endpoint_config.clone(), server, socket, runtime).expect("an endpoint")
    };
    let (server, mut client) = (open(Some(server_config)), open(None));
    client.set_default_client_config(client_config);
    (server, client)
}

/// The hash that 64 digits stand for.
pub(crate) fn hash_of(digits: &str) -> BlobHash {
    let digits = blake3::Hash::from_hex(digits).expect("64 digits");
    BlobHash(*digits.as_bytes())
}

/// Processor seconds of this process so far.
pub(crate) fn cpu_secs() -> f64 {
    cpu_secs_of(std::process::id())
}

/// Processor seconds of a process so far, of the system's part and its own.
pub(crate) fn cpu_secs_of(process: u32) -> f64 {
    let text = std::fs::read_to_string(format!("/proc/{process}/stat")).expect("a process");
    let fields: Vec<&str> = text.rsplit(')').next().unwrap_or("").split_whitespace().collect();
    // Fields 14 and 15 of the line, in hundredths of a second.
    let ticks: u64 = fields[11..13].iter().map(|field| field.parse::<u64>().unwrap_or(0)).sum();
    ticks as f64 / rustix::param::clock_ticks_per_second() as f64
}

/// Most memory that this process had, in bytes.
pub(crate) fn peak_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").expect("/proc");
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or("");
    line.split_whitespace().next().and_then(|kib| kib.parse::<u64>().ok()).unwrap_or(0) << 10
}
