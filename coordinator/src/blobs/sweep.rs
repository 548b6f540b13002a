//! Garbage collection of blobs. A blob that no job names is marked, and deleted if it is still not
//! named after a grace. A blob that a job names is never touched.
//!
//! A blob is deleted if three things hold: no job names it; it was written, uploaded or asked for
//! longer ago than the grace; and an earlier round of this process, at least [`PAUSE`] before, had
//! marked it. The times are those of the files, so a restart does not begin the grace again. The
//! marks are in memory, with a monotonic clock. So neither a crash between mark and sweep nor a
//! wall clock that jumps can delete a blob between its upload and its job.

use super::guard::GuardedBlobs;
use super::store::Blobs;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant, SystemTime};
use tessera_protocol::BlobHash;

/// Shortest time between mark and sweep. A client submits the job within it after the upload.
pub const PAUSE: Duration = Duration::from_secs(600);

/// Time of a round, by two clocks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Now {
    /// Time of the wall clock, as in the files.
    pub(crate) wall: SystemTime,
    /// Time of a monotonic clock.
    pub(crate) steady: Instant,
}

impl Now {
    pub(crate) fn read() -> Self {
        Self { wall: SystemTime::now(), steady: Instant::now() }
    }
}

/// Result of a round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// Number of blobs that no job names, and that stay for now.
    pub marked: u64,
    /// Number of deleted blobs.
    pub blobs: u64,
    /// Bytes of the deleted blobs.
    pub bytes: u64,
    /// Number of deleted interrupted uploads.
    pub uploads: u64,
}

/// Runs one round: marks blobs that are not in `named`, and deletes those that have been marked and
/// old for long enough.
pub(crate) fn round(
    blobs: &GuardedBlobs,
    named: &BTreeSet<BlobHash>,
    (grace, pause): (Duration, Duration),
    now: Now,
) -> Swept {
    let mut swept = Swept::default();
    let store = blobs.store();
    let mut seen = BTreeMap::new();
    let listed = store.list(&mut |entry| seen.extend(entry.hash.map(|hash| (hash, entry.length))));
    if let Err(error) = listed {
        tracing::warn!(place = error.place, error = %error.source, "blobs cannot be listed");
        return swept;
    }
    let (count, bytes) = (seen.len() as u64, seen.values().sum::<u64>());
    blobs.with_marks(|marks| {
        marks.retain(|hash| seen.contains_key(hash) && !named.contains(hash));
    });
    let before = now.wall.checked_sub(grace).unwrap_or(SystemTime::UNIX_EPOCH);
    for (hash, length) in seen.into_iter().filter(|(hash, _)| !named.contains(hash)) {
        let due = blobs.begin_deletion(hash, |marks| marks.is_due(hash, now.steady, pause));
        let gone = due.is_some_and(|_deletion| delete(&*store, hash, before));
        if gone {
            tracing::info!(%hash, length, "blob that no job names is deleted");
            swept.blobs += 1;
            swept.bytes += length;
            blobs.with_marks(|marks| marks.remove(hash));
        } else {
            swept.marked += 1;
        }
    }
    blobs.note_listed(count - swept.blobs, bytes - swept.bytes);
    swept.uploads = if blobs.is_held() { 0 } else { store.delete_uploads(before) };
    swept
}

/// Deletes a blob that was last written before this time.
fn delete(store: &dyn Blobs, hash: BlobHash, before: SystemTime) -> bool {
    let deleted = store.delete_if_older(hash, before);
    deleted.unwrap_or_else(|error| {
        tracing::warn!(place = error.place, error = %error.source, "a blob cannot be deleted");
        false
    })
}

#[cfg(test)]
#[path = "sweep_tests.rs"]
mod tests;
