//! Protection of blobs from the sweeper: a claimed blob stays for the grace, and a held store is
//! not swept at all. Only one process may guard a store.

use super::marks::Marks;
use super::store::{BlobError, BlobWriter, Blobs, Listed, Upload, UploadError};
use crate::spool::{ResultObject, ResultStore, SpoolKey};
use crate::sync::lock;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Seek, SeekFrom, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;
use tessera_protocol::BlobHash;
use tessera_transport::{BlobRead, BlobSink, BlobStore, SinkError};

/// A blob store and its guard. Clones share both.
#[derive(Clone)]
pub struct GuardedBlobs {
    store: Arc<dyn Blobs>,
    guard: Arc<Guard>,
}

/// Blobs that are claimed at a time by one request that names many, so that a store far away does
/// not take a round trip for each.
const CLAIMS_AT_ONCE: usize = 16;

#[derive(Debug, Default)]
struct Guard {
    busy: Mutex<Busy>,
    /// Tells that a blob is not being deleted any more.
    deleted: Condvar,
    /// Number and bytes of all blobs when the sweeper listed them last.
    listed: Mutex<Option<(u64, u64)>>,
}

/// What is under way. Its lock is never held while the store works, which may be far away.
#[derive(Debug, Default)]
struct Busy {
    /// Blobs that no job named when the sweeper looked.
    marks: Marks,
    /// Blobs that are being claimed, and how often. They are not deleted.
    claiming: BTreeMap<BlobHash, usize>,
    /// Blobs that are being deleted. A claim waits for the end of it, and finds nothing.
    deleting: BTreeSet<BlobHash>,
    /// While there are any, nothing is deleted.
    holds: usize,
}

impl Guard {
    fn busy(&self) -> MutexGuard<'_, Busy> {
        lock(&self.busy)
    }

    fn wait<'a>(&'a self, busy: MutexGuard<'a, Busy>) -> MutexGuard<'a, Busy> {
        self.deleted.wait(busy).unwrap_or_else(PoisonError::into_inner)
    }
}

/// A blob that is being claimed, until this value is dropped.
struct Claim<'a>(&'a Guard, BlobHash);

impl<'a> Claim<'a> {
    fn begin(guard: &'a Guard, hash: BlobHash) -> Self {
        let mut busy = guard.busy();
        while busy.deleting.contains(&hash) {
            busy = guard.wait(busy);
        }
        busy.marks.remove(hash);
        *busy.claiming.entry(hash).or_default() += 1;
        Self(guard, hash)
    }
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        let mut busy = self.0.busy();
        let left = busy.claiming.get(&self.1).copied().unwrap_or_default();
        match left {
            0 | 1 => drop(busy.claiming.remove(&self.1)),
            left => drop(busy.claiming.insert(self.1, left - 1)),
        }
    }
}

/// A blob that is being deleted, until this value is dropped.
pub(super) struct Deletion<'a>(&'a Guard, BlobHash);

impl Drop for Deletion<'_> {
    fn drop(&mut self) {
        self.0.busy().deleting.remove(&self.1);
        self.0.deleted.notify_all();
    }
}

/// While this value exists, nothing is swept.
#[derive(Debug)]
pub struct Hold(Arc<Guard>);

impl Drop for Hold {
    fn drop(&mut self) {
        self.0.busy().holds -= 1;
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

    /// Keeps every blob until the returned value is dropped. Waits for deletions that have begun.
    pub fn hold(&self) -> Hold {
        let mut busy = self.guard.busy();
        busy.holds += 1;
        while !busy.deleting.is_empty() {
            busy = self.guard.wait(busy);
        }
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
        self.guard.busy().holds > 0
    }

    /// Runs a short function on the marks.
    pub(super) fn with_marks<T>(&self, work: impl FnOnce(&mut Marks) -> T) -> T {
        work(&mut self.guard.busy().marks)
    }

    /// Begins to delete a blob, if `may` agrees, nobody is claiming it and nothing is held. A claim
    /// before it keeps the blob; a claim after it waits for its end, and finds no blob.
    pub(super) fn begin_deletion(
        &self,
        hash: BlobHash,
        may: impl FnOnce(&mut Marks) -> bool,
    ) -> Option<Deletion<'_>> {
        let mut busy = self.guard.busy();
        let free =
            busy.holds == 0 && !busy.claiming.contains_key(&hash) && !busy.deleting.contains(&hash);
        if !(may(&mut busy.marks) && free) {
            return None;
        }
        busy.deleting.insert(hash);
        Some(Deletion(&self.guard, hash))
    }

    /// Returns the length of a complete blob in bytes. The blob then stays for the sweeper's grace,
    /// so the caller can name it in a job.
    pub fn claim(&self, hash: BlobHash) -> Option<u64> {
        let _claim = Claim::begin(&self.guard, hash);
        let length = self.store.length(hash).ok().flatten()?;
        if let Err(error) = self.store.refresh(hash) {
            tracing::warn!(%hash, error = %error.source, "a blob's time cannot be set; its grace \
                goes by the last one");
        }
        Some(length)
    }

    /// Claims many blobs as [`Self::claim`] does, in order.
    pub fn claim_all(&self, hashes: &[BlobHash]) -> Vec<Option<u64>> {
        let claim = |part: &[BlobHash]| part.iter().map(|hash| self.claim(*hash)).collect();
        if hashes.len() < 3 {
            return claim(hashes);
        }
        let each = hashes.len().div_ceil(CLAIMS_AT_ONCE);
        std::thread::scope(|scope| {
            let threads: Vec<_> = hashes
                .chunks(each)
                .map(|part| (part.len(), scope.spawn(move || -> Vec<_> { claim(part) })))
                .collect();
            let lengths = threads.into_iter().map(|(count, thread)| {
                // A claim that panicked found nothing.
                thread.join().unwrap_or_else(|_| vec![None; count])
            });
            lengths.flatten().collect()
        })
    }

    /// Deletes a blob that no job names, or the upload of one, whenever it was last used. False if
    /// nothing was there, or if it is claimed at this moment or the store is held.
    pub(crate) fn delete_now(&self, hash: BlobHash) -> bool {
        let Some(_deletion) = self.begin_deletion(hash, |marks| {
            marks.remove(hash);
            true
        }) else {
            return false;
        };
        let whole = self.store.delete(hash).unwrap_or_else(|error| {
            tracing::warn!(place = error.place, error = %error.source, "a blob cannot be deleted");
            false
        });
        self.store.delete_upload(hash) || whole
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
        Ok(Box::new(ClaimingWriter { writer: self.store.writer()?, blobs: self.clone() }))
    }

    fn upload(&self, hash: BlobHash, length: u64) -> Result<Box<Upload>, UploadError> {
        let _claim = Claim::begin(&self.guard, hash);
        let upload = self.store.upload(hash, length)?;
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

    fn is_far(&self) -> bool {
        self.store.is_far()
    }

    fn elsewhere(&self, hash: BlobHash, here: bool) -> Option<(String, u64)> {
        if !self.store.is_far() {
            return None;
        }
        self.claim(hash);
        self.store.elsewhere(hash, here)
    }

    fn adopt(
        &self,
        from: (SpoolKey, ResultObject),
        (hash, length): (BlobHash, u64),
    ) -> Result<(), BlobError> {
        // A deletion of the same blob ends first, and none begins meanwhile.
        let _claim = Claim::begin(&self.guard, hash);
        self.store.adopt(from, (hash, length))
    }

    fn results(&self) -> Arc<dyn ResultStore> {
        self.store.results()
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
    blobs: GuardedBlobs,
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
        // The same bytes may have been there, unnamed and old, and on their way out: their hash was
        // not known before.
        let _claim = Claim::begin(&self.blobs.guard, finished.0);
        if self.blobs.store.length(finished.0)?.is_none() {
            let swept = io::Error::other("it was swept at the same moment, and is stored again");
            return Err(BlobError::at(finished.0)(swept));
        }
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
        // A deletion of the same blob ends first, and none begins meanwhile.
        let _claim = Claim::begin(&self.guard, self.hash);
        self.upload.finish()
    }
}

impl BlobStore for GuardedBlobs {
    fn open(&self, hash: BlobHash) -> io::Result<Option<Box<dyn BlobRead>>> {
        Blobs::open(self, hash).map_err(|error| error.source)
    }

    fn elsewhere(&self, hash: BlobHash, here: bool) -> Option<(String, u64)> {
        Blobs::elsewhere(self, hash, here)
    }

    fn begin(&self, hash: BlobHash, length: u64) -> Result<Box<dyn BlobSink>, String> {
        self.upload(hash, length).map_err(|error| error.to_string())
    }
}
