//! Copying of a stopped farm's blobs from one place to another. Each is checked by its name.

use super::place::{BlobPlace, BlobPlaceError};
use super::store::{BlobError, Blobs};
use crate::folder::{DataFolder, FolderError};
use crate::store::Purpose;
use crate::sync::lock;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use tessera_protocol::BlobHash;

/// Blobs that are copied at a time. A place far away answers each after a while.
const AT_ONCE: usize = 8;
/// Bytes that are copied at once.
const STEP_BYTES: usize = 1 << 20;

/// What was copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlobMigration {
    /// Number of blobs.
    pub blobs: u64,
    /// Bytes of all of them.
    pub bytes: u64,
    /// Number of objects of results of frames in work.
    pub results: u64,
}

/// Why blobs were not copied. The place that they were in is as it was.
#[derive(Debug, thiserror::Error)]
pub enum BlobMigrationError {
    /// The folder cannot be used.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// One of the places cannot be used.
    #[error(transparent)]
    Place(#[from] BlobPlaceError),
    /// A blob cannot be read or written.
    #[error(transparent)]
    Blob(#[from] BlobError),
    /// A blob is damaged where it is.
    #[error("blob {hash} is damaged: its bytes have the hash {found}")]
    Damaged {
        /// Name of the blob.
        hash: BlobHash,
        /// Hash of its bytes.
        found: BlobHash,
    },
    /// A blob went away meanwhile.
    #[error("blob {0} has gone while it was copied")]
    Gone(BlobHash),
}

/// Copies the blobs of the farm in `data` from one place to another, and makes that the farm's. No
/// coordinator may run. What an earlier attempt copied is not copied again. `progress` gets the
/// bytes that are done and all.
pub fn migrate(
    data: &Path,
    (from, to): (&dyn BlobPlace, &dyn BlobPlace),
    progress: &(dyn Fn(u64, u64) + Sync),
) -> Result<BlobMigration, BlobMigrationError> {
    let folder = DataFolder::open_existing(data)?;
    let source = from.open(&folder, Purpose::CopyFrom, 0)?;
    let target = to.open(&folder, Purpose::CopyTo, 0)?;
    let mut found = Vec::new();
    source.list(&mut |listed| found.extend(listed.hash.map(|hash| (hash, listed.length))))?;
    let moved = BlobMigration {
        blobs: found.len() as u64,
        bytes: found.iter().map(|(_, length)| length).sum(),
        results: 0,
    };
    let (left, done) = (Mutex::new(found), AtomicU64::new(0));
    let work = || -> Result<(), BlobMigrationError> {
        loop {
            let next = lock(&left).pop();
            let Some((hash, length)) = next else { return Ok(()) };
            let copied = copy((&*source, &*target), hash, length);
            if copied.is_err() {
                // The others end with what they have begun.
                lock(&left).clear();
            }
            copied?;
            progress(done.fetch_add(length, Relaxed) + length, moved.bytes);
        }
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..AT_ONCE).map(|_| scope.spawn(work)).collect();
        threads.into_iter().try_for_each(|thread| match thread.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        })
    })?;
    let moved = BlobMigration { results: copy_results(&*source, &*target)?, ..moved };
    drop((source, target));
    to.adopt(&folder)?;
    from.leave(&folder)?;
    Ok(moved)
}

/// Copies the objects of results. Whoever reads them checks them. Returns their number.
fn copy_results(source: &dyn Blobs, target: &dyn Blobs) -> Result<u64, BlobError> {
    let (from, to) = (source.results(), target.results());
    let objects = from.objects().map_err(BlobError::at("results"))?;
    for (frame, object) in &objects {
        let mut bytes = vec![0; object.length as usize];
        let read = from.read_exact_at(*frame, *object, (0, &mut bytes));
        read.map_err(BlobError::at(object))?;
        to.put(*frame, *object, vec![bytes.into()]).map_err(BlobError::at(object))?;
    }
    Ok(objects.len() as u64)
}

fn copy(
    (source, target): (&dyn Blobs, &dyn Blobs),
    hash: BlobHash,
    length: u64,
) -> Result<(), BlobMigrationError> {
    if target.length(hash)? == Some(length) {
        return Ok(());
    }
    let mut blob = source.open(hash)?.ok_or(BlobMigrationError::Gone(hash))?;
    let mut writer = target.writer()?;
    let (mut buffer, mut at) = (vec![0; STEP_BYTES], 0);
    loop {
        let count = blob.read_at(at, &mut buffer).map_err(BlobError::at(hash))?;
        if count == 0 {
            break;
        }
        at += count as u64;
        std::io::Write::write_all(&mut writer, &buffer[..count]).map_err(BlobError::at(hash))?;
    }
    match writer.finish()?.0 {
        found if found == hash => Ok(()),
        found => {
            // Named by what they are, these bytes belong to nobody.
            target.delete(found)?;
            Err(BlobMigrationError::Damaged { hash, found })
        }
    }
}
