//! Garbage among the blobs: what no job names is marked, and swept when it is still not named after
//! a grace. Decides by the core's word and the blobs' times; never touches a blob that a job names.
//!
//! A blob goes when three things hold: no job names it; it was written, uploaded or asked for
//! longer ago than the grace; and an earlier round of this process, [`PAUSE`] or more before, had
//! marked it already. The times are the files' own, so that a restart does not begin the grace
//! anew; the marks are kept in memory, by a clock that nobody sets, so that neither a crash between
//! mark and sweep nor a wall clock that jumps lets a blob go between its upload and its job.

use crate::blobs::Blobs;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
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

/// The sweeper's memory between rounds.
#[derive(Debug, Default)]
pub(crate) struct Marks(BTreeMap<BlobHash, Instant>);

impl Marks {
    /// Somebody wants the blob: it begins anew.
    pub(crate) fn remove(&mut self, hash: BlobHash) {
        self.0.remove(&hash);
    }

    /// Whether the blob was marked so long ago that it may go; marks it where it was not.
    fn is_due(&mut self, hash: BlobHash, now: Instant, pause: Duration) -> bool {
        now.saturating_duration_since(*self.0.entry(hash).or_insert(now)) >= pause
    }
}

/// One round: marks what `named` does not hold, and sweeps what has been marked and old for long
/// enough.
pub(crate) fn round(
    blobs: &Blobs,
    named: &BTreeSet<BlobHash>,
    (grace, pause): (Duration, Duration),
    now: Now,
) -> Swept {
    let mut swept = Swept::default();
    let mut seen = Vec::new();
    blobs.visit(&mut |path, hash, length| {
        if let Some(hash) = hash {
            seen.push((hash, path.to_path_buf(), length));
        }
    });
    let here: BTreeSet<BlobHash> = seen.iter().map(|(hash, ..)| *hash).collect();
    blobs
        .with_marks(|marks| marks.0.retain(|hash, _| here.contains(hash) && !named.contains(hash)));
    for (hash, path, length) in seen {
        if named.contains(&hash) {
            continue;
        }
        // Under the lock by which a blob is claimed: it is claimed before, and stays, or after, and
        // is not there any more.
        let gone = blobs.with_marks(|marks| {
            marks.is_due(hash, now.steady, pause)
                && is_older(&path, grace, now.wall)
                && !blobs.is_held()
                && remove(&path)
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
    swept.uploads = sweep_uploads(blobs, grace, now.wall);
    swept
}

fn sweep_uploads(blobs: &Blobs, grace: Duration, now: SystemTime) -> u64 {
    let parts = std::fs::read_dir(blobs.uploads()).into_iter().flatten().flatten();
    let old = parts.filter(|part| {
        blobs.with_marks(|_| {
            is_older(&part.path(), grace, now) && !blobs.is_held() && remove(&part.path())
        })
    });
    old.count() as u64
}

/// Last written longer ago than the grace; false where that cannot be told.
fn is_older(path: &Path, grace: Duration, now: SystemTime) -> bool {
    let written = std::fs::metadata(path).and_then(|metadata| metadata.modified());
    written.is_ok_and(|written| now.duration_since(written).is_ok_and(|age| age >= grace))
}

fn remove(path: &Path) -> bool {
    match std::fs::remove_file(path) {
        Ok(()) => true,
        Err(error) => {
            tracing::warn!(path = %path.display(), %error, "what no job names cannot be deleted");
            false
        }
    }
}

#[cfg(test)]
#[path = "sweep_tests.rs"]
mod tests;
