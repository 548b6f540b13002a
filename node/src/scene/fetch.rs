//! Fetches blobs from the coordinator into the cache. Interrupted fetches continue, and blobs are
//! checked before use. Waits while there is no session.

use super::locks::Locks;
use crate::cache::{BlobCache, CacheError};
use crate::disk::failure_of;
use quinn::Connection;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tessera_protocol::BlobHash;
use tessera_protocol::node::Failure;
use tessera_transport::blob::{self, Ahead};
use tessera_transport::error::chain;
use tessera_transport::{BlobError, FrameError, Timing};
use tokio::sync::{Semaphore, watch};

/// Tries for one blob since it last grew. Lost sessions do not count.
const TRIES_MAX: u32 = 4;
/// Blobs that a node fetches at the same time, for all of its jobs. Streams are left for what
/// finishing units read and for what goes to a store elsewhere.
const AT_ONCE: usize = 8;
/// Wait between two tries.
const TRY_AGAIN: Duration = Duration::from_millis(300);

/// Why a blob could not be fetched.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FetchError {
    /// The coordinator does not have it.
    #[error("the coordinator does not hold blob {0}")]
    Absent(BlobHash),
    /// The coordinator does not let this node read the blob.
    #[error("the coordinator refuses blob {hash}: {reason}")]
    Refused { hash: BlobHash, reason: String },
    /// The blob does not have the length that the job says.
    #[error("blob {hash} has {found} bytes, but the job says {expected}")]
    Length { hash: BlobHash, expected: u64, found: u64 },
    /// The stream failed repeatedly.
    #[error("blob {hash} could not be fetched")]
    Stream {
        hash: BlobHash,
        #[source]
        source: FrameError,
    },
    /// The blob cannot be stored.
    #[error(transparent)]
    Cache(#[from] CacheError),
    /// The node stops before the blob is complete.
    #[error("the node stops")]
    Stopping,
}

impl FetchError {
    fn of(hash: BlobHash, expected: u64, error: BlobError) -> Self {
        match error {
            BlobError::Frame(source) => Self::Stream { hash, source },
            BlobError::Absent(_) => Self::Absent(hash),
            BlobError::Refused { reason, .. } => Self::Refused { hash, reason },
            BlobError::TooLong { length: found, .. } | BlobError::Shorter { length: found, .. } => {
                Self::Length { hash, expected, found }
            }
            BlobError::Corrupt { found, .. } => CacheError::Foreign { wanted: hash, found }.into(),
            BlobError::File { path, source } => CacheError::Disk { path, source }.into(),
            BlobError::Occupied { path } => {
                CacheError::Disk { path, source: io::ErrorKind::AlreadyExists.into() }.into()
            }
            BlobError::Protocol { problem, .. } => {
                Self::Refused { hash, reason: problem.to_owned() }
            }
        }
    }

    /// Converts the error for the coordinator. `what`: the file, for people.
    pub(crate) fn into_failure(self, what: Option<&str>) -> Failure {
        let reason = chain(&self);
        let reason = what.map_or(reason.clone(), |what| format!("{what}: {reason}"));
        match &self {
            Self::Cache(CacheError::Disk { source, .. }) => failure_of(source, reason),
            _ => Failure::Asset(reason),
        }
    }
}

/// Fetches blobs over the present session.
#[derive(Clone)]
pub(crate) struct Fetcher {
    cache: Arc<BlobCache>,
    /// Connection of the session; None between sessions.
    connection: watch::Receiver<Option<Connection>>,
    /// Longest wait for an answer of the coordinator.
    answer: Duration,
    arriving: Arc<Locks<BlobHash>>,
    turns: Arc<Semaphore>,
    ahead: Arc<Ahead>,
}

impl Fetcher {
    pub(crate) fn new(
        cache: Arc<BlobCache>,
        connection: watch::Receiver<Option<Connection>>,
        answer: Duration,
    ) -> Self {
        let turns = Arc::new(Semaphore::new(AT_ONCE));
        Self { cache, connection, answer, arriving: Arc::default(), turns, ahead: Arc::default() }
    }

    /// Puts the blob at `target`. Fetches it first if it is not in the cache.
    pub(crate) async fn place(
        &self,
        hash: BlobHash,
        length: u64,
        target: &Path,
    ) -> Result<(), FetchError> {
        let _turn = self.arriving.lock(hash).await;
        let (mut tries, mut most) = (0, 0);
        loop {
            let placed = {
                let (cache, target) = (self.cache.clone(), target.to_owned());
                blocking(move || cache.place(hash, &target)).await?
            };
            if placed {
                return Ok(());
            }
            match self.fetch(hash, length).await {
                Ok(()) => {}
                // The connection is lost, but not the blob. The next session continues it.
                Err(FetchError::Stream { .. }) if self.connection.borrow().is_none() => continue,
                Err(
                    error @ (FetchError::Stream { .. }
                    | FetchError::Cache(CacheError::Foreign { .. })),
                ) => {
                    let held = self.held(hash).await;
                    tries = if held > most { 1 } else { tries + 1 };
                    most = most.max(held);
                    if tries >= TRIES_MAX {
                        return Err(error);
                    }
                    tracing::warn!(blob = %hash, error = chain(&error), "fetching again");
                    tokio::time::sleep(TRY_AGAIN).await;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Returns the bytes of a blob that an interrupted fetch has left.
    async fn held(&self, hash: BlobHash) -> u64 {
        let (part, _) = self.cache.places(hash);
        let length = move || Ok(std::fs::metadata(part).map_or(0, |metadata| metadata.len()));
        blocking(length).await.unwrap_or(0)
    }

    async fn fetch(&self, hash: BlobHash, length: u64) -> Result<(), FetchError> {
        let Ok(_turn) = self.turns.acquire().await else { return Err(FetchError::Stopping) };
        let mut receiver = self.connection.clone();
        let connection = match receiver.wait_for(Option::is_some).await {
            Ok(connection) => connection.clone(),
            Err(_) => return Err(FetchError::Stopping),
        };
        let Some(connection) = connection else { return Err(FetchError::Stopping) };
        let (part, whole) = self.cache.places(hash);
        let timing = Timing { answer: self.answer, ..Timing::default() };
        let from = (&connection, &*self.ahead);
        let fetched = blob::get_cached(from, hash.into(), length, (&part, &whole), &timing).await;
        fetched.map_err(|error| FetchError::of(hash, length, error))?;
        let cache = self.cache.clone();
        blocking(move || cache.adopt(hash, length)).await
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, CacheError> + Send + 'static,
) -> Result<T, FetchError> {
    // The task is never aborted, and the cache does not panic. So a failed join means that the
    // runtime is stopping.
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|_| FetchError::Stopping)?
        .map_err(FetchError::Cache)
}
