//! What a coordinator is started with. Parses no file and reads no environment.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;
use tessera_core::Settings;
use tessera_protocol::Fingerprint;
use tessera_transport::{Lifetimes, Timing};

/// Settings of one coordinator.
#[derive(Clone, Debug)]
pub struct Config {
    /// The data folder; made where it is absent.
    pub data: PathBuf,
    /// UDP address to listen at; port 0 takes a free one.
    pub listen: SocketAddr,
    /// This build's fingerprint, said in the hello.
    pub fingerprint: Fingerprint,
    /// Where the local user's identity stands: an admin identity is left there too, if there is none.
    pub user_identity: Option<PathBuf>,
    /// Times and budgets of the core.
    pub settings: Settings,
    /// Limits of time of the connections.
    pub timing: Timing,
    /// How long certificates hold.
    pub lifetimes: Lifetimes,
    /// Bytes of the disk that stay free. Below them nothing is accepted, and results wait.
    pub disk_reserve_bytes: u64,
    /// Bytes of results in memory at most, from their arrival until they are durable. At least one largest result (28 MiB).
    pub result_memory_bytes: u64,
    /// Records after which a snapshot takes their place.
    pub snapshot_records: u64,
    /// How long a blob stays that no job names, after it was last written or asked for. At least a minute.
    pub blob_grace: Duration,
    /// How long jobs are known, with their frames, after their end; None: until somebody forgets them.
    pub keep_jobs: Option<Duration>,
}

impl Config {
    /// The defaults: 64 MiB of disk in reserve, 256 MiB of results, a snapshot every 20,000 records, a day of
    /// grace for blobs, and jobs known for ever.
    pub fn new(data: impl Into<PathBuf>, listen: SocketAddr, fingerprint: Fingerprint) -> Self {
        Self {
            data: data.into(),
            listen,
            fingerprint,
            user_identity: None,
            settings: Settings::default(),
            timing: Timing::default(),
            lifetimes: Lifetimes::default(),
            disk_reserve_bytes: 64 << 20,
            result_memory_bytes: 256 << 20,
            snapshot_records: 20_000,
            blob_grace: Duration::from_secs(86_400),
            keep_jobs: None,
        }
    }
}
