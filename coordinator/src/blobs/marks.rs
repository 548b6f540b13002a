//! Which blobs the sweeper has seen without a name, and since when.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use tessera_protocol::BlobHash;

/// The sweeper's memory between rounds.
#[derive(Debug, Default)]
pub(super) struct Marks(BTreeMap<BlobHash, Instant>);

impl Marks {
    /// Forgets a mark: the blob is wanted, and begins anew.
    pub(super) fn remove(&mut self, hash: BlobHash) {
        self.0.remove(&hash);
    }

    /// Whether the blob was marked so long ago that it may go; marks it where it was not.
    pub(super) fn is_due(&mut self, hash: BlobHash, now: Instant, pause: Duration) -> bool {
        now.saturating_duration_since(*self.0.entry(hash).or_insert(now)) >= pause
    }

    /// Forgets all marks but these.
    pub(super) fn retain(&mut self, stays: impl Fn(&BlobHash) -> bool) {
        self.0.retain(|hash, _| stays(hash));
    }
}
