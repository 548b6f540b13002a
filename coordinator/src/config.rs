//! What a coordinator is started with. Parses no file and reads no environment.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;
use tessera_core::Settings;
use tessera_protocol::Fingerprint;
use tessera_transport::{Lifetimes, Rates, Timing};

/// What peers may take of a coordinator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Connections in all.
    pub connections: usize,
    /// Connections of one user or administrator; nodes have fewer.
    pub connections_per_identity: usize,
    /// Connections at a time whose peer is not known: in their handshake, or enrolling. From a
    /// quarter of them on, addresses must be shown (QUIC's Retry), and one address has no more than
    /// a quarter.
    pub handshakes: usize,
    /// What one identity may send, over all its connections.
    pub rates: Rates,
}

impl Default for Limits {
    /// 4,096 connections, 64 of one identity, 256 handshakes, 4,000 messages and 512 MiB a second:
    /// several times what a node of eight GPUs, or a link of 2.5 Gbit/s, sends.
    fn default() -> Self {
        Self {
            connections: 4096,
            connections_per_identity: 64,
            handshakes: 256,
            rates: Rates { messages: 4000, bytes: 512 << 20 },
        }
    }
}

/// Settings of one coordinator.
#[derive(Clone, Debug)]
pub struct Config {
    /// The data folder; made where it is absent.
    pub data: PathBuf,
    /// UDP address to listen at; port 0 takes a free one.
    pub listen: SocketAddr,
    /// This build's fingerprint, said in the hello.
    pub fingerprint: Fingerprint,
    /// Where the local user's identity stands: an admin identity is left there too, if there is
    /// none.
    pub user_identity: Option<PathBuf>,
    /// Times and budgets of the core.
    pub settings: Settings,
    /// Limits of time of the connections.
    pub timing: Timing,
    /// How long certificates hold.
    pub lifetimes: Lifetimes,
    /// What peers may take.
    pub limits: Limits,
    /// Bytes of the disk that stay free. Below them nothing is accepted, and results wait.
    pub disk_reserve_bytes: u64,
    /// Bytes of results in memory at most, from their arrival until they are durable. At least one
    /// largest result (34 MiB).
    pub result_memory_bytes: u64,
    /// Records after which a snapshot takes their place.
    pub snapshot_records: u64,
    /// How long a blob stays that no job names, after it was last written or asked for. At least a
    /// minute.
    pub blob_grace: Duration,
    /// How long jobs are known, with their frames, after their end; None: until somebody forgets
    /// them.
    pub keep_jobs: Option<Duration>,
}

impl Config {
    /// The defaults: 64 MiB of disk in reserve, 256 MiB of results, a snapshot every 20,000
    /// records, a day of grace for blobs, and jobs known for ever.
    pub fn new(data: impl Into<PathBuf>, listen: SocketAddr, fingerprint: Fingerprint) -> Self {
        Self {
            data: data.into(),
            listen,
            fingerprint,
            user_identity: None,
            settings: Settings::default(),
            timing: Timing::default(),
            lifetimes: Lifetimes::default(),
            limits: Limits::default(),
            disk_reserve_bytes: 64 << 20,
            result_memory_bytes: 256 << 20,
            snapshot_records: 20_000,
            blob_grace: Duration::from_secs(86_400),
            keep_jobs: None,
        }
    }
}
