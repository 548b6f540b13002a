//! Garbage among the blobs: what no job names is marked, and swept when it is still not named after
//! a grace. Decides by the core's word and the blobs' times; never touches a blob that a job names.
//!
//! A blob goes when three things hold: no job names it; it was written, uploaded or asked for
//! longer ago than the grace; and an earlier round of this process, [`PAUSE`] or more before, had
//! marked it already. The times are the files' own, so that a restart does not begin the grace
//! anew; the marks are kept in memory, by a clock that nobody sets, so that neither a crash between
//! mark and sweep nor a wall clock that jumps lets a blob go between its upload and its job.

use super::guard::GuardedBlobs;
use super::store::Blobs;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant, SystemTime};
use tessera_protocol::BlobHash;

/// Between mark and sweep, at least: an upload is followed by its job within it.
pub const PAUSE: Duration = Duration::from_secs(600);

/// When a round takes place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Now {
    /// By the wall clock, as files have it.
    pub(crate) wall: SystemTime,
    /// By a clock that nobody sets.
    pub(crate) steady: Instant,
}

impl Now {
    pub(crate) fn read() -> Self {
        Self { wall: SystemTime::now(), steady: Instant::now() }
    }
}

/// What a round did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// Blobs that no job names, and that stay for now.
    pub marked: u64,
    /// Blobs deleted.
    pub blobs: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Interrupted uploads deleted.
    pub uploads: u64,
}

/// One round: marks what `named` does not hold, and sweeps what has been marked and old for long
/// enough.
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
    blobs.with_marks(|marks| {
        marks.retain(|hash| seen.contains_key(hash) && !named.contains(hash));
    });
    let before = now.wall.checked_sub(grace).unwrap_or(SystemTime::UNIX_EPOCH);
    for (hash, length) in seen.into_iter().filter(|(hash, _)| !named.contains(hash)) {
        // Under the lock by which a blob is claimed: it is claimed before, and stays, or after, and
        // is not there any more.
        let gone = blobs.with_marks(|marks| {
            marks.is_due(hash, now.steady, pause)
                && !blobs.is_held()
                && delete(&*store, hash, before)
        });
        if gone {
            tracing::info!(%hash, length, "blob that no job names is deleted");
            swept.blobs += 1;
            swept.bytes += length;
            blobs.with_marks(|marks| marks.remove(hash));
        } else {
            swept.marked += 1;
        }
    }
    swept.uploads = blobs.with_marks(|_| match blobs.is_held() {
        true => 0,
        false => store.delete_uploads(before),
    });
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
