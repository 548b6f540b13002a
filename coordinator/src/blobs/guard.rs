//! Protection of blobs from the sweeper: a claimed blob stays for the grace, and a held store is
//! not swept at all. Only one process may guard a store.

use super::marks::Marks;
use super::store::{BlobError, BlobWriter, Blobs, Listed, Upload, UploadError};
use crate::sync::lock;
use std::io::{self, Seek, SeekFrom, Write};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;
use tessera_protocol::BlobHash;
use tessera_transport::{BlobRead, BlobSink, BlobStore, SinkError};

/// A blob store and its guard. Clones share both.
#[derive(Clone)]
pub struct GuardedBlobs {
    store: Arc<dyn Blobs>,
    guard: Arc<Guard>,
}

#[derive(Debug, Default)]
struct Guard {
    /// Blobs that no job named when the sweeper looked. Its lock keeps claims and sweeps apart.
    marks: Mutex<Marks>,
    holds: AtomicUsize,
    /// Number and bytes of all blobs when the sweeper listed them last.
    listed: Mutex<Option<(u64, u64)>>,
}

/// While this value exists, nothing is swept.
#[derive(Debug)]
pub struct Hold(Arc<Guard>);

impl Drop for Hold {
    fn drop(&mut self) {
        self.0.holds.fetch_sub(1, Ordering::SeqCst);
    }
}

impl GuardedBlobs {
    /// Guards a store that no other process sweeps.
    pub fn new(store: Arc<dyn Blobs>) -> Self {
        Self { store, guard: Arc::default() }
    }

    /// Returns the store itself, for readers that hold it.
    pub fn store(&self) -> Arc<dyn Blobs> {
        self.store.clone()
    }

    /// Keeps every blob until the returned value is dropped.
    pub fn hold(&self) -> Hold {
        self.guard.holds.fetch_add(1, Ordering::SeqCst);
        // Once we have had the lock, a running sweep has seen the hold or has ended.
        self.with_marks(|_| ());
        Hold(self.guard.clone())
    }

    /// Returns the number and the bytes of all blobs when they were listed last; None if they were
    /// not yet.
    pub fn listed(&self) -> Option<(u64, u64)> {
        *lock(&self.guard.listed)
    }

    pub(super) fn note_listed(&self, count: u64, bytes: u64) {
        *lock(&self.guard.listed) = Some((count, bytes));
    }

    pub(super) fn is_held(&self) -> bool {
        self.guard.holds.load(Ordering::SeqCst) > 0
    }

    /// Runs a function while no claim and no sweep can happen.
    pub(super) fn with_marks<T>(&self, work: impl FnOnce(&mut Marks) -> T) -> T {
        work(&mut lock(&self.guard.marks))
    }

    /// Returns the length of a complete blob in bytes. The blob then stays for the sweeper's grace,
    /// so the caller can name it in a job.
    pub fn claim(&self, hash: BlobHash) -> Option<u64> {
        self.with_marks(|marks| {
            let length = self.store.length(hash).ok().flatten()?;
            marks.remove(hash);
            if let Err(error) = self.store.refresh(hash) {
                tracing::warn!(%hash, error = %error.source, "a blob's time cannot be set; its \
                    grace goes by the last one");
            }
            Some(length)
        })
    }
}

impl GuardedBlobs {
    /// Deletes a blob that no job names, or the upload of one, whenever it was last used. False if
    /// nothing was there, or if the store is held.
    pub(crate) fn delete_now(&self, hash: BlobHash) -> bool {
        self.with_marks(|marks| {
            if self.is_held() {
                return false;
            }
            marks.remove(hash);
            let whole = self.store.delete(hash).unwrap_or_else(|error| {
                tracing::warn!(place = error.place, error = %error.source, "a blob cannot be \
                    deleted");
                false
            });
            self.store.delete_upload(hash) || whole
        })
    }
}

/// The store as the coordinator uses it: opened and stored blobs are claimed.
impl Blobs for GuardedBlobs {
    fn length(&self, hash: BlobHash) -> Result<Option<u64>, BlobError> {
        self.store.length(hash)
    }

    fn open(&self, hash: BlobHash) -> Result<Option<Box<dyn BlobRead>>, BlobError> {
        self.claim(hash);
        self.store.open(hash)
    }

    fn writer(&self) -> Result<Box<dyn BlobWriter>, BlobError> {
        Ok(Box::new(ClaimingWriter { writer: self.store.writer()?, guard: self.guard.clone() }))
    }

    fn upload(&self, hash: BlobHash, length: u64) -> Result<Box<Upload>, UploadError> {
        let upload = self.with_marks(|_| self.store.upload(hash, length))?;
        Ok(Box::new(Claiming { upload, hash, guard: self.guard.clone() }))
    }

    fn list(&self, visit: &mut dyn FnMut(Listed)) -> Result<(), BlobError> {
        self.store.list(visit)
    }

    fn delete(&self, hash: BlobHash) -> Result<bool, BlobError> {
        self.store.delete(hash)
    }

    fn delete_if_older(&self, hash: BlobHash, than: SystemTime) -> Result<bool, BlobError> {
        self.store.delete_if_older(hash, than)
    }

    fn refresh(&self, hash: BlobHash) -> Result<(), BlobError> {
        self.store.refresh(hash)
    }

    fn is_kept(&self, hash: BlobHash) -> bool {
        self.store.is_kept(hash)
    }

    fn delete_upload(&self, hash: BlobHash) -> bool {
        self.store.delete_upload(hash)
    }

    fn delete_uploads(&self, before: SystemTime) -> u64 {
        self.store.delete_uploads(before)
    }
}

/// A writer whose blob begins with a full grace.
struct ClaimingWriter {
    writer: Box<dyn BlobWriter>,
    guard: Arc<Guard>,
}

impl Write for ClaimingWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.writer.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}

impl Seek for ClaimingWriter {
    fn seek(&mut self, position: SeekFrom) -> io::Result<u64> {
        self.writer.seek(position)
    }
}

impl BlobWriter for ClaimingWriter {
    fn finish(self: Box<Self>) -> Result<(BlobHash, u64), BlobError> {
        let finished = self.writer.finish()?;
        lock(&self.guard.marks).remove(finished.0);
        Ok(finished)
    }
}

/// An upload whose blob begins with a full grace.
struct Claiming {
    upload: Box<Upload>,
    hash: BlobHash,
    guard: Arc<Guard>,
}

impl BlobSink for Claiming {
    fn held(&self) -> u64 {
        self.upload.held()
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.upload.write(bytes)
    }

    fn finish(&mut self) -> Result<(), SinkError> {
        lock(&self.guard.marks).remove(self.hash);
        self.upload.finish()
    }
}

impl BlobStore for GuardedBlobs {
    fn open(&self, hash: BlobHash) -> io::Result<Option<Box<dyn BlobRead>>> {
        Blobs::open(self, hash).map_err(|error| error.source)
    }

    fn begin(&self, hash: BlobHash, length: u64) -> Result<Box<dyn BlobSink>, String> {
        self.upload(hash, length).map_err(|error| error.to_string())
    }
}
