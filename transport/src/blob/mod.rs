//! Blobs on streams: both directions, both ends, resumable, checked against their hash before they
//! get a name. Decides neither who may read what nor what is kept; see [`BlobStore`].

mod get;
mod part;
mod put;

pub use get::{get, serve_get};
pub use put::{put, serve_put};

use crate::frame::FrameError;
use std::io;
use std::path::{Path, PathBuf};
use tessera_protocol::BlobHash;

/// Bytes read from a file and handed to QUIC at once.
const STEP_BYTES: usize = 256 << 10;
/// Blob bytes go after every message of the same connection.
const PRIORITY: i32 = -1;

/// The serving side's store of blobs. All methods may block; they are called off the runtime's own
/// threads.
pub trait BlobStore: Send + Sync + 'static {
    /// The file that holds this blob, whole; None where it is not here.
    fn find(&self, hash: BlobHash) -> io::Result<Option<PathBuf>>;

    /// Returns the file that an upload of this blob is written to, and continued in after an
    /// interruption. May a blob of this length (bytes) come at all? `Err` says why not, in words
    /// for the client.
    fn begin(&self, hash: BlobHash, length: u64) -> Result<PathBuf, String>;

    /// The file is whole, synced, and has this hash: gives it its place, durably. Harmless where
    /// the blob is here already.
    fn keep(&self, hash: BlobHash, file: &Path) -> io::Result<()>;
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
