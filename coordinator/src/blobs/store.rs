//! What a store of blobs must do: put whole, get a range, list, delete, by hash.

use std::io::{self, Seek, Write};
use std::time::SystemTime;
use tessera_protocol::BlobHash;
use tessera_transport::{BlobRead, BlobSink};

/// Bytes read at once when a blob is checked.
const READ_BYTES: usize = 1 << 20;

/// Why a blob cannot be kept or read.
#[derive(Debug, thiserror::Error)]
#[error("`{place}` cannot be used")]
pub struct BlobError {
    /// The file or object.
    pub place: String,
    /// Why.
    #[source]
    pub source: io::Error,
}

impl BlobError {
    /// An error about this place.
    pub fn at(place: impl ToString) -> impl FnOnce(io::Error) -> Self {
        let place = place.to_string();
        move |source| Self { place, source }
    }
}

/// Why an upload may not begin, in words for the client.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct UploadError(pub String);

/// Something that stands among the blobs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// What it is called there.
    pub name: String,
    /// The blob that the name stands for; None where it is no blob's name.
    pub hash: Option<BlobHash>,
    /// Length in bytes.
    pub length: u64,
    /// When it was written or last refreshed, as far as the store knows.
    pub modified: Option<SystemTime>,
}

/// A blob that arrives under a hash that is known before: its finish checks the hash.
pub type Upload = dyn BlobSink;

/// A blob in the making, whose hash is known at its end. Encoders seek, so a store without files
/// gathers the bytes on the local disk first. Dropped before its finish, it leaves nothing.
pub trait BlobWriter: Write + Seek + Send {
    /// Makes the blob durable under its hash; gives its hash and length.
    fn finish(self: Box<Self>) -> Result<(BlobHash, u64), BlobError>;
}

/// A store of blobs. A blob is immutable: it is there whole, or not at all, and putting it again is
/// harmless. All methods may block.
pub trait Blobs: Send + Sync + 'static {
    /// Length in bytes of a blob that is here whole.
    fn length(&self, hash: BlobHash) -> Result<Option<u64>, BlobError>;

    /// Opens a blob, to get ranges of it; None where it is not here.
    fn open(&self, hash: BlobHash) -> Result<Option<Box<dyn BlobRead>>, BlobError>;

    /// Begins a blob whose hash is known at its end.
    fn writer(&self) -> Result<Box<dyn BlobWriter>, BlobError>;

    /// Begins an upload of `length` bytes, or goes on with one that was interrupted.
    fn upload(&self, hash: BlobHash, length: u64) -> Result<Box<Upload>, UploadError>;

    /// Shows everything that stands among the blobs, in any order.
    fn list(&self, visit: &mut dyn FnMut(Listed)) -> Result<(), BlobError>;

    /// Deletes a blob; false where it was not here.
    fn delete(&self, hash: BlobHash) -> Result<bool, BlobError>;

    /// Deletes a blob that was last written or refreshed at this time or before; false where it is
    /// younger, or not here.
    fn delete_if_older(&self, hash: BlobHash, than: SystemTime) -> Result<bool, BlobError>;

    /// Makes a blob as young as a new one: its grace begins again.
    fn refresh(&self, hash: BlobHash) -> Result<(), BlobError>;

    /// Deletes interrupted uploads that were last written before this time; gives how many.
    fn delete_uploads(&self, before: SystemTime) -> u64;

    /// Puts bytes that are whole; gives their hash.
    fn put(&self, bytes: &[u8]) -> Result<BlobHash, BlobError> {
        let mut writer = self.writer()?;
        writer.write_all(bytes).map_err(BlobError::at("a new blob"))?;
        Ok(writer.finish()?.0)
    }

    /// Reads a blob through: None where it is intact, else what is wrong.
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

/// The hash that a name stands for: 64 lower-case digits, so that one blob has one name.
pub(crate) fn hash_named(name: &str) -> Option<BlobHash> {
    let mut hash = [0; 32];
    let digits = name.as_bytes();
    if digits.len() != 64 {
        return None;
    }
    for (byte, pair) in hash.iter_mut().zip(digits.chunks(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    let hash = BlobHash(hash);
    (hash.to_string() == name).then_some(hash)
}
