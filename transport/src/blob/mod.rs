//! Blobs on streams: both directions, both ends, resumable, checked against their hash before they
//! get a name. Decides neither who may read what nor what is kept; see [`BlobStore`].

mod get;
mod part;
mod put;

pub use get::{get, serve_get};
pub use part::PartFile;
pub use put::{put, serve_put};

use crate::frame::FrameError;
use std::io;
use std::path::{Path, PathBuf};
use tessera_protocol::BlobHash;

/// Bytes read from a file and handed to QUIC at once.
const STEP_BYTES: usize = 256 << 10;
/// Blob bytes go after every message of the same connection.
const PRIORITY: i32 = -1;

/// The serving side's store of blobs: a disk, or an object store. All methods may block; they are
/// called off the runtime's own threads.
pub trait BlobStore: Send + Sync + 'static {
    /// Opens a blob that is here whole; None where it is not here.
    fn open(&self, hash: BlobHash) -> io::Result<Option<Box<dyn BlobRead>>>;

    /// Begins to take a blob of this length (bytes), or goes on where an interrupted upload
    /// stopped. `Err` says why it may not come, in words for the client.
    fn begin(&self, hash: BlobHash, length: u64) -> Result<Box<dyn BlobSink>, String>;
}

/// A whole blob, open for reading. May block.
pub trait BlobRead: Send {
    /// Bytes in all.
    fn length(&self) -> u64;

    /// Reads bytes from `offset` on; fewer than asked for only at the end.
    fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> io::Result<usize>;
}

/// A blob that arrives. May block. Dropped before it is finished, it may keep what has come for
/// the next attempt.
pub trait BlobSink: Send {
    /// Bytes that are here already.
    fn held(&self) -> u64;

    /// Takes the next bytes.
    fn write(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// All bytes have come: checks their hash, makes the blob durable and gives it its place.
    /// Harmless where the blob is here already.
    fn finish(&mut self) -> Result<(), SinkError>;
}

/// Why a blob that has arrived is not kept.
#[derive(Debug, thiserror::Error)]
pub enum SinkError {
    /// Its bytes have another hash. None of them is kept.
    #[error("its bytes have the hash {found}")]
    Corrupt {
        /// What came.
        found: BlobHash,
    },
    /// The store failed.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl<T: BlobSink + ?Sized> BlobSink for Box<T> {
    fn held(&self) -> u64 {
        (**self).held()
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        (**self).write(bytes)
    }

    fn finish(&mut self) -> Result<(), SinkError> {
        (**self).finish()
    }
}

/// Why a blob did not come, or did not go.
#[derive(Debug, thiserror::Error)]
pub enum BlobError {
    /// The stream failed.
    #[error(transparent)]
    Frame(#[from] FrameError),
    /// A file of this side failed.
    #[error("cannot read or write `{}`", path.display())]
    File {
        /// Which file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The other side has no such blob.
    #[error("blob {0} is not there")]
    Absent(BlobHash),
    /// The other side does not give or take it.
    #[error("blob {hash} is refused: {reason}")]
    Refused {
        /// Which.
        hash: BlobHash,
        /// The other side's words.
        reason: String,
    },
    /// The bytes that came have another hash. None of them is kept.
    #[error("blob {hash} is corrupt: its bytes have the hash {found}")]
    Corrupt {
        /// What was asked for.
        hash: BlobHash,
        /// What came.
        found: BlobHash,
    },
    /// The other side breaks the protocol.
    #[error("blob {hash}: {problem}")]
    Protocol {
        /// Which.
        hash: BlobHash,
        /// What is wrong.
        problem: &'static str,
    },
    /// It is longer than the caller takes.
    #[error("blob {hash} has {length} bytes; at most {limit} are taken")]
    TooLong {
        /// Which.
        hash: BlobHash,
        /// Its length, bytes.
        length: u64,
        /// The limit, bytes.
        limit: u64,
    },
}

impl BlobError {
    /// Would the same transfer, over another connection, go on where this one stopped?
    pub fn is_interruption(&self) -> bool {
        match self {
            Self::Frame(error) => !error.is_peers_fault(),
            _ => false,
        }
    }
}

fn file_error(path: &Path) -> impl FnOnce(io::Error) -> BlobError + use<> {
    let path = path.to_owned();
    move |source| BlobError::File { path, source }
}

/// Runs what may block off the runtime's own threads.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> io::Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(io::Error::other)
}
