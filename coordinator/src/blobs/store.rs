//! The contract of a blob store: put whole blobs, get ranges, list, and delete, all by hash.

use crate::spool::{ResultObject, ResultStore, SpoolKey};
use std::io::{self, Seek, Write};
use std::sync::Arc;
use std::time::SystemTime;
use tessera_protocol::BlobHash;
use tessera_transport::{BlobRead, BlobSink};

/// Bytes that are read at once when a blob is checked.
const READ_BYTES: usize = 1 << 20;

/// Why a blob cannot be stored or read.
#[derive(Debug, thiserror::Error)]
#[error("`{place}` cannot be used")]
pub struct BlobError {
    /// File or object of the blob.
    pub place: String,
    /// Error of the system.
    #[source]
    pub source: io::Error,
}

impl BlobError {
    /// Returns a function that makes an error about this place.
    pub fn at(place: impl ToString) -> impl FnOnce(io::Error) -> Self {
        let place = place.to_string();
        move |source| Self { place, source }
    }
}

/// Why an upload cannot begin, in words for the client.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct UploadError(pub String);

/// An item of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Name of the item in the store.
    pub name: String,
    /// Blob that the name stands for; None if it is not the name of a blob.
    pub hash: Option<BlobHash>,
    /// Length of the blob in bytes.
    pub length: u64,
    /// Time of the last write or refresh, as far as the store knows.
    pub modified: Option<SystemTime>,
}

/// A blob that arrives with a known hash, which is checked at the end.
pub type Upload = dyn BlobSink;

/// A blob that is being written, whose hash is known at its end. Encoders seek, so a store without
/// files collects the bytes on the local disk first. If it is dropped before the end, nothing is
/// left.
pub trait BlobWriter: Write + Seek + Send {
    /// Makes the blob durable. Returns its hash and length.
    fn finish(self: Box<Self>) -> Result<(BlobHash, u64), BlobError>;
}

/// A store of blobs. A blob is immutable and either complete or absent. Storing it again is
/// harmless. All methods may block.
pub trait Blobs: Send + Sync + 'static {
    /// Returns the length of a complete blob in bytes.
    fn length(&self, hash: BlobHash) -> Result<Option<u64>, BlobError>;

    /// Opens a blob to read ranges of it; None if it is absent.
    fn open(&self, hash: BlobHash) -> Result<Option<Box<dyn BlobRead>>, BlobError>;

    /// Begins a blob whose hash is known at its end.
    fn writer(&self) -> Result<Box<dyn BlobWriter>, BlobError>;

    /// Begins an upload of `length` bytes, or continues an interrupted one.
    fn upload(&self, hash: BlobHash, length: u64) -> Result<Box<Upload>, UploadError>;

    /// Visits every item of the store, in any order.
    fn list(&self, visit: &mut dyn FnMut(Listed)) -> Result<(), BlobError>;

    /// Deletes a blob. Returns false if it was absent.
    fn delete(&self, hash: BlobHash) -> Result<bool, BlobError>;

    /// Deletes a blob that was last written or refreshed at this time or before. Returns false if
    /// it is younger or absent.
    fn delete_if_older(&self, hash: BlobHash, than: SystemTime) -> Result<bool, BlobError>;

    /// Makes a blob as young as a new one, so that its grace begins again.
    fn refresh(&self, hash: BlobHash) -> Result<(), BlobError>;

    /// Returns whether anything of a blob is there, complete or not.
    fn is_kept(&self, hash: BlobHash) -> bool {
        self.length(hash).is_ok_and(|length| length.is_some())
    }

    /// Deletes the interrupted upload of a blob. Returns false if there is none.
    fn delete_upload(&self, _: BlobHash) -> bool {
        false
    }

    /// Deletes interrupted uploads that were last written before this time. Returns their number.
    fn delete_uploads(&self, before: SystemTime) -> u64;

    /// Returns where a peer can read a blob itself for a few minutes, and its length in bytes; None
    /// if it cannot. `here`: the peer is on this machine. The address is for HTTP, and a secret.
    fn elsewhere(&self, _hash: BlobHash, _here: bool) -> Option<(String, u64)> {
        None
    }

    /// Makes a blob of an object of results, whose bytes have this hash and length and will not
    /// change, without its bytes passing here.
    fn adopt(&self, from: (SpoolKey, ResultObject), blob: (BlobHash, u64))
    -> Result<(), BlobError>;

    /// Returns the objects of results beside the blobs.
    fn results(&self) -> Arc<dyn ResultStore>;

    /// Whether each byte that is read comes over a network.
    fn is_far(&self) -> bool {
        false
    }

    /// Stores complete bytes. Returns their hash.
    fn put(&self, bytes: &[u8]) -> Result<BlobHash, BlobError> {
        let mut writer = self.writer()?;
        writer.write_all(bytes).map_err(BlobError::at("a new blob"))?;
        Ok(writer.finish()?.0)
    }

    /// Reads a whole blob. Returns None if it is intact, otherwise a description of the damage.
    fn verify(&self, hash: BlobHash, length: u64) -> Option<String> {
        match self.open(hash).map(|blob| blob.map(hash_of)) {
            Err(error) => Some(format!("blob {hash}: {}", error.source)),
            Ok(None) => Some(format!("blob {hash}: it is not there")),
            Ok(Some(Err(error))) => Some(format!("blob {hash}: {error}")),
            Ok(Some(Ok((found, _)))) if found != hash => {
                Some(format!("blob {hash}: its bytes have the hash {found}"))
            }
            Ok(Some(Ok((_, found)))) if found != length => {
                Some(format!("blob {hash}: {found} bytes where {length} were recorded"))
            }
            Ok(Some(Ok(_))) => None,
        }
    }
}

fn hash_of(mut blob: Box<dyn BlobRead>) -> io::Result<(BlobHash, u64)> {
    let mut hasher = blake3::Hasher::new();
    let mut buffer = vec![0; READ_BYTES];
    loop {
        match blob.read_at(hasher.count(), &mut buffer)? {
            0 => return Ok((BlobHash(*hasher.finalize().as_bytes()), hasher.count())),
            count => hasher.update(&buffer[..count]),
        };
    }
}
