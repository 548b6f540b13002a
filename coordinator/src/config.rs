//! Settings with which a coordinator starts. Parses no file and reads no environment.

use crate::blobs::{BlobPlace, DiskPlace};
use crate::farm_files::FarmKey;
use crate::store::{SledPlace, StorePlace};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tessera_core::Settings;
use tessera_protocol::Fingerprint;
use tessera_telemetry::{Lines, Tracer};
use tessera_transport::{Lifetimes, Rates, Timing};

/// Limits on the resources that peers can use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Largest number of connections at a time, of all peers together.
    pub connections: usize,
    /// Most connections of one user or administrator. Nodes have fewer.
    pub connections_per_identity: usize,
    /// Most connections whose peer is not known yet: those in their handshake, and those that
    /// enrol. From a quarter of them on, peers must prove their address (QUIC's Retry), and one
    /// address can have at most a quarter.
    pub handshakes: usize,
    /// Most that one identity can send, over all its connections.
    pub rates: Rates,
    /// Least bytes per second at which a result must arrive, after its first half minute. A node
    /// that is slower loses its connection, because its results hold memory.
    pub result_rate: u64,
    /// Most bytes of files of one user that no open job names; None: a quarter of what the disk
    /// has free for them.
    pub uploads_per_user: Option<u64>,
    /// Most jobs that one user watches at a time.
    pub watchers_per_user: u32,
    /// Most requests of one user that are answered at a time.
    pub requests_per_user: u32,
}

impl Default for Limits {
    /// 4,096 connections, 64 of one identity, 256 handshakes, and 4,000 messages and 512 MiB per
    /// second. This is several times what a node of eight GPUs or a link of 2.5 Gbit/s sends.
    /// Results arrive at 32 KiB per second at least: a quarter of a link of 1 Mbit/s.
    fn default() -> Self {
        Self {
            connections: 4096,
            connections_per_identity: 64,
            handshakes: 256,
            rates: Rates { messages: 4000, bytes: 512 << 20 },
            result_rate: 32 << 10,
            uploads_per_user: None,
            watchers_per_user: 256,
            requests_per_user: 256,
        }
    }
}

/// Settings of one coordinator.
#[derive(Clone, Debug)]
pub struct Config {
    /// Data folder. It is made if it is absent.
    pub data: PathBuf,
    /// Place of the store.
    pub store: Arc<dyn StorePlace>,
    /// Place of the blobs.
    pub blobs: Arc<dyn BlobPlace>,
    /// UDP address to listen on. Port 0 takes a free one.
    pub listen: SocketAddr,
    /// Fingerprint of this build, which the hello contains.
    pub fingerprint: Fingerprint,
    /// Folder of the local user's identity. An admin identity is copied there if it has none.
    pub user_identity: Option<PathBuf>,
    /// Times and budgets of the core.
    pub settings: Settings,
    /// Timeouts of the connections.
    pub timing: Timing,
    /// How long certificates are valid.
    pub lifetimes: Lifetimes,
    /// Key under which a store elsewhere has the farm's authority and other small files; None: they
    /// are in the data folder alone.
    pub farm_key: Option<FarmKey>,
    /// Whether a data folder with members that has lost its authority gets a new one. Every member
    /// must then enrol again.
    pub new_authority: bool,
    /// Whether this start makes the coordinator the newest one of its farm, before another one that
    /// was restored from a backup.
    pub take_over: bool,
    /// Limits on what peers can use.
    pub limits: Limits,
    /// Bytes of the disk that stay free. With less free space, nothing is accepted and results
    /// wait.
    pub disk_reserve_bytes: u64,
    /// Bytes of the disk that uploads leave beside those, so that frames can be finished; None: a
    /// twentieth of the disk, at most 1 GiB.
    pub frame_reserve_bytes: Option<u64>,
    /// Most bytes of results in memory, from their arrival until they are durable. At least one
    /// largest result (68 MiB). A node has a quarter of it, and at least one largest result.
    pub result_memory_bytes: u64,
    /// Most bytes of results that stay in memory once they are durable, for whoever finishes their
    /// frame; 0 for none.
    pub recent_results_bytes: usize,
    /// Number of records after which a snapshot replaces them.
    pub snapshot_records: u64,
    /// How long a blob that no job names is kept after it was last written or asked for. At least
    /// one minute.
    pub blob_grace: Duration,
    /// How long jobs are kept after their end, with their frames; None: until a user forgets them.
    pub keep_jobs: Option<Duration>,
    /// Takes spans of frames, units and requests.
    pub tracer: Tracer,
    /// Takes the lines that nodes say of jobs.
    pub lines: Lines,
}

impl Config {
    /// Creates the default settings: 64 MiB of disk in reserve, 256 MiB of results that are
    /// not durable and 128 MiB of those that are, a snapshot every 20,000 records, a grace of one
    /// day for blobs, and jobs kept without a limit.
    pub fn new(data: impl Into<PathBuf>, listen: SocketAddr, fingerprint: Fingerprint) -> Self {
        Self {
            data: data.into(),
            store: Arc::new(SledPlace),
            blobs: Arc::new(DiskPlace),
            listen,
            fingerprint,
            user_identity: None,
            settings: Settings::default(),
            timing: Timing::default(),
            lifetimes: Lifetimes::default(),
            farm_key: None,
            new_authority: false,
            take_over: false,
            limits: Limits::default(),
            disk_reserve_bytes: 64 << 20,
            frame_reserve_bytes: None,
            result_memory_bytes: 256 << 20,
            recent_results_bytes: 128 << 20,
            snapshot_records: 20_000,
            blob_grace: Duration::from_secs(86_400),
            keep_jobs: None,
            tracer: Tracer::default(),
            lines: Lines::default(),
        }
    }
}
