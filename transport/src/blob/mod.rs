//! Blobs on streams, in both directions and for both sides. Transfers can be resumed, and a blob is
//! checked against its hash before it gets a name. The [`BlobStore`] decides about access and
//! storage.

mod direct;
mod fill;
mod get;
mod http;
mod part;
mod put;
mod ranges;
mod send;
mod sent;

pub use direct::{get_range, hash_object, put_file, put_object};
pub use get::{Existing, Target, Wanted, answer_get, get, get_cached, serve_get};
pub use part::PartFile;
pub use put::{put, serve_put};
pub use ranges::{Ahead, RangeStreams};
pub use send::send_all;

use crate::close::CloseCode;
use crate::stream::frame::FrameError;
use std::io;
use std::path::{Path, PathBuf};
use tessera_protocol::BlobHash;

/// Priority of blob bytes: after every message of the same connection.
const PRIORITY: i32 = -1;

/// The serving side's store of blobs: a disk, or an object store. All methods may block, and are
/// called on threads for blocking work.
pub trait BlobStore: Send + Sync + 'static {
    /// Opens a complete blob; None if it is absent.
    fn open(&self, hash: BlobHash) -> io::Result<Option<Box<dyn BlobRead>>>;

    /// Returns where a peer can get a complete blob itself for a few minutes, and its length in
    /// bytes. `here`: the peer is on this machine. The address is for HTTP, and a secret.
    fn elsewhere(&self, _hash: BlobHash, _here: bool) -> Option<(String, u64)> {
        None
    }

    /// Begins to receive a blob of this length in bytes, or continues an interrupted upload. `Err`
    /// says in words for the client why it is refused.
    fn begin(&self, hash: BlobHash, length: u64) -> Result<Box<dyn BlobSink>, String>;
}

/// A complete blob that is open for reading. Methods may block.
pub trait BlobRead: Send {
    /// Returns the length in bytes.
    fn length(&self) -> u64;

    /// Reads bytes from `offset` on. Returns fewer than the buffer holds only at the end.
    fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> io::Result<usize>;
}

/// A blob that is being received. Methods may block. If it is dropped before the end, it may keep
/// its bytes for the next attempt.
pub trait BlobSink: Send {
    /// Returns the number of bytes that are already there.
    fn held(&self) -> u64;

    /// Writes the next bytes.
    fn write(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Ends the blob: checks its hash, makes it durable and gives it its name. Harmless if the blob
    /// already exists.
    fn finish(&mut self) -> Result<(), SinkError>;
}

/// Why a received blob is not stored.
#[derive(Debug, thiserror::Error)]
pub enum SinkError {
    /// The bytes have another hash. None of them is stored.
    #[error("its bytes have the hash {found}")]
    Corrupt {
        /// Hash of the received bytes.
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

/// Why a blob was not transferred.
#[derive(Debug, thiserror::Error)]
pub enum BlobError {
    /// The stream failed.
    #[error(transparent)]
    Frame(#[from] FrameError),
    /// A file on this side failed.
    #[error("cannot read or write `{}`", path.display())]
    File {
        /// Path of the file.
        path: PathBuf,
        /// Error of the system.
        #[source]
        source: io::Error,
    },
    /// Something else has the name that the file should get. It is left as it is.
    #[error("`{}` is there already", path.display())]
    Occupied {
        /// Path of what is there.
        path: PathBuf,
    },
    /// The other side does not have the blob.
    #[error("blob {0} is not there")]
    Absent(BlobHash),
    /// The other side does not send or accept the blob.
    #[error("blob {hash} is refused: {reason}")]
    Refused {
        /// Hash of the blob.
        hash: BlobHash,
        /// Reason of the other side.
        reason: String,
    },
    /// The received bytes have another hash. None of them is stored.
    #[error("blob {hash} is corrupt: its bytes have the hash {found}")]
    Corrupt {
        /// Hash of the requested blob.
        hash: BlobHash,
        /// Hash of the received bytes.
        found: BlobHash,
    },
    /// The other side broke the protocol.
    #[error("blob {hash}: {problem}")]
    Protocol {
        /// Hash of the blob.
        hash: BlobHash,
        /// Description of the fault.
        problem: &'static str,
    },
    /// The blob is shorter than the caller knows it to be.
    #[error("blob {hash} has {length} bytes, where {expected} were named")]
    Shorter {
        /// Hash of the blob.
        hash: BlobHash,
        /// Length in bytes.
        length: u64,
        /// Length that the caller knows.
        expected: u64,
    },
    /// The blob is longer than the caller allows.
    #[error("blob {hash} has {length} bytes; at most {limit} are taken")]
    TooLong {
        /// Hash of the blob.
        hash: BlobHash,
        /// Length in bytes.
        length: u64,
        /// Limit in bytes.
        limit: u64,
    },
}

impl BlobError {
    /// Returns the code with which a stream ends that had this error.
    fn code(&self) -> CloseCode {
        match self {
            Self::Frame(FrameError::Silent(_)) => CloseCode::Silent,
            _ => CloseCode::Failed,
        }
    }

    /// Returns whether the same transfer could continue over another connection.
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

/// Runs blocking work on a thread for it.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> io::Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(io::Error::other)
}
