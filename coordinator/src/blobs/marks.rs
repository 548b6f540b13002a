//! Blobs that the sweeper found without a job that names them, and when it found them.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use tessera_protocol::BlobHash;

/// State of the sweeper between rounds.
#[derive(Debug, Default)]
pub(super) struct Marks(BTreeMap<BlobHash, Instant>);

impl Marks {
    /// Forgets a mark. The blob is wanted, and its grace begins again.
    pub(super) fn remove(&mut self, hash: BlobHash) {
        self.0.remove(&hash);
    }

    /// Returns whether the blob was marked long enough ago to be deleted. Marks it if it has no
    /// mark.
    pub(super) fn is_due(&mut self, hash: BlobHash, now: Instant, pause: Duration) -> bool {
        now.saturating_duration_since(*self.0.entry(hash).or_insert(now)) >= pause
    }

    /// Forgets the marks for which `stays` is false.
    pub(super) fn retain(&mut self, stays: impl Fn(&BlobHash) -> bool) {
        self.0.retain(|hash, _| stays(hash));
    }
}
