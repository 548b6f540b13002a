//! When blobs were used last. An object of a store cannot be touched, so a use is an empty object
//! beside it; this process writes one in an hour for a blob, and knows the rest.

use std::collections::HashMap;
use std::time::{Duration, SystemTime};
use tessera_protocol::BlobHash;

/// Uses within this time of the last one that is written are only remembered. The grace of blobs is
/// a day.
const WRITTEN_EVERY: Duration = Duration::from_secs(3600);
/// Most lengths that are remembered.
const LENGTHS_MAX: usize = 1 << 16;

/// What this process knows of the store's blobs.
#[derive(Debug, Default)]
pub(crate) struct Known {
    /// Lengths of blobs that are there.
    lengths: HashMap<BlobHash, u64>,
    /// When a use was written last, and when the last one was.
    used: HashMap<BlobHash, (SystemTime, SystemTime)>,
}

impl Known {
    pub(crate) fn length(&self, hash: BlobHash) -> Option<u64> {
        self.lengths.get(&hash).copied()
    }

    /// Notes that a blob is there.
    pub(crate) fn there(&mut self, hash: BlobHash, length: u64) {
        if self.lengths.len() >= LENGTHS_MAX {
            self.lengths.clear();
        }
        self.lengths.insert(hash, length);
    }

    /// Notes that a list has a blob, if there is room for that.
    pub(crate) fn listed(&mut self, hash: BlobHash, length: u64) {
        if self.lengths.len() < LENGTHS_MAX {
            self.lengths.insert(hash, length);
        }
    }

    /// Notes that a blob is not there.
    pub(crate) fn gone(&mut self, hash: BlobHash) {
        self.lengths.remove(&hash);
        self.used.remove(&hash);
    }

    /// Notes a use. Returns whether it must be written.
    pub(crate) fn note_use(&mut self, hash: BlobHash, now: SystemTime) -> bool {
        let Some((written, last)) = self.used.get_mut(&hash) else { return true };
        *last = now;
        !is_recent(*written, now)
    }

    /// Notes that a use is written, or that the blob is new.
    pub(crate) fn wrote_use(&mut self, hash: BlobHash, now: SystemTime) {
        self.used.insert(hash, (now, now));
    }

    /// Returns the last use that this process has seen.
    pub(crate) fn last_use(&self, hash: BlobHash) -> Option<SystemTime> {
        self.used.get(&hash).map(|(_, last)| *last)
    }

    /// Forgets uses that are written and no help any more.
    pub(crate) fn tidy(&mut self, now: SystemTime) {
        self.used.retain(|_, (_, last)| is_recent(*last, now));
    }
}

fn is_recent(time: SystemTime, now: SystemTime) -> bool {
    now.duration_since(time).is_ok_and(|past| past < WRITTEN_EVERY)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_use_is_written_once_an_hour_and_known_to_the_second() {
        let (hash, start) = (BlobHash([1; 32]), SystemTime::UNIX_EPOCH + WRITTEN_EVERY);
        let after = |secs| start + Duration::from_secs(secs);
        let mut known = Known::default();
        assert!(known.note_use(hash, start));
        known.wrote_use(hash, start);
        assert!(!known.note_use(hash, after(3599)));
        assert_eq!(known.last_use(hash), Some(after(3599)));
        assert!(known.note_use(hash, after(3600)));
        known.tidy(after(3600 + 3599));
        assert!(known.last_use(hash).is_some());
        known.tidy(after(3600 + 3600));
        assert_eq!(known.last_use(hash), None);
    }

    #[test]
    fn lengths_are_bounded_and_forgotten_with_their_blob() {
        let mut known = Known::default();
        for number in 0..=LENGTHS_MAX as u64 {
            let mut hash = [0; 32];
            hash[..8].copy_from_slice(&number.to_le_bytes());
            known.there(BlobHash(hash), number);
        }
        assert_eq!(known.lengths.len(), 1);
        known.there(BlobHash([9; 32]), 9);
        known.gone(BlobHash([9; 32]));
        assert_eq!(known.length(BlobHash([9; 32])), None);
    }
}
