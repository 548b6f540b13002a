//! What the process counts of itself for monitoring: plain atomics that nobody waits for. What is
//! true of the farm is not here, but in its state.

use crate::live::LiveMeters;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tessera_protocol::Fingerprint;
use tessera_transport::validity::now_secs;

/// Bounds of the times from a commit's way to the store until it is durable, in seconds. A sync
/// takes a tenth of a millisecond on a good disk and some tens on a bad one.
const COMMIT_SECONDS: [f64; 12] =
    [0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0];
/// Bounds of the commits that share a sync.
const GROUP_COMMITS: [f64; 9] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0];

/// Most bounds of a histogram.
const BOUNDS_MAX: usize = 12;
/// Parts of a unit in which the sum of a histogram is kept.
const PARTS: f64 = 1e9;

/// Counts of values between fixed bounds.
#[derive(Debug)]
pub(crate) struct Histogram {
    bounds: &'static [f64],
    /// One for each bound, and one for what is above all.
    counts: [AtomicU64; BOUNDS_MAX + 1],
    sum: AtomicU64,
}

/// A histogram at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Spread {
    /// Bounds with the number of values up to each that are above the bound before. The last bound
    /// is infinite.
    pub buckets: Vec<(f64, u64)>,
    /// Sum of all values.
    pub sum: f64,
    /// Number of all values.
    pub count: u64,
}

impl Histogram {
    fn new(bounds: &'static [f64]) -> Self {
        Self { bounds, counts: Default::default(), sum: AtomicU64::new(0) }
    }

    /// Counts a value.
    pub(crate) fn note(&self, value: f64) {
        let bucket = self.bounds.iter().position(|bound| value <= *bound);
        let bucket = bucket.unwrap_or(self.bounds.len()).min(BOUNDS_MAX);
        self.counts[bucket].fetch_add(1, Ordering::Relaxed);
        self.sum.fetch_add((value * PARTS) as u64, Ordering::Relaxed);
    }

    /// Returns the counts so far.
    pub(crate) fn spread(&self) -> Spread {
        let bounds = self.bounds.iter().copied().chain([f64::INFINITY]);
        let counts = self.counts.iter().map(|count| count.load(Ordering::Relaxed));
        let buckets: Vec<(f64, u64)> = bounds.zip(counts).collect();
        let count = buckets.iter().map(|(_, count)| count).sum();
        Spread { buckets, sum: self.sum.load(Ordering::Relaxed) as f64 / PARTS, count }
    }
}

/// What the store's thread counts.
#[derive(Debug)]
pub(crate) struct StoreMeters {
    commit_seconds: Histogram,
    group_commits: Histogram,
}

impl Default for StoreMeters {
    fn default() -> Self {
        Self {
            commit_seconds: Histogram::new(&COMMIT_SECONDS),
            group_commits: Histogram::new(&GROUP_COMMITS),
        }
    }
}

impl StoreMeters {
    /// Counts a group that is durable now, with the time that each of its commits took.
    pub(crate) fn note_group(&self, took: impl ExactSizeIterator<Item = Duration>) {
        self.group_commits.note(took.len() as f64);
        took.for_each(|took| self.commit_seconds.note(took.as_secs_f64()));
    }

    /// Returns the times that commits took, and the sizes of groups.
    pub(crate) fn spreads(&self) -> (Spread, Spread) {
        (self.commit_seconds.spread(), self.group_commits.spread())
    }
}

/// Why a connection over QUIC was not served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// There are too many connections or handshakes: it was not answered.
    Busy,
    /// The handshake failed: no valid certificate, another protocol, or no answer.
    Handshake,
    /// Its identity has too many connections.
    Share,
    /// Its identity is denied, or its certificate is void or has expired.
    Identity,
}

impl Refused {
    const ALL: [Self; 4] = [Self::Busy, Self::Handshake, Self::Share, Self::Identity];

    fn name(self) -> &'static str {
        match self {
            Self::Busy => "busy",
            Self::Handshake => "handshake",
            Self::Share => "share",
            Self::Identity => "identity",
        }
    }
}

/// What the coordinator's tasks count, beside the store.
#[derive(Debug)]
pub(crate) struct Meters {
    pub(crate) fingerprint: Fingerprint,
    /// When the process began to run, in seconds since the Unix epoch.
    pub(crate) started_at: u64,
    refused: [AtomicU64; Refused::ALL.len()],
    /// Live tiles.
    pub(crate) live: LiveMeters,
    /// When the certificate of the pages ends, in seconds since the Unix epoch; 0: it is unknown.
    web_until: AtomicU64,
}

impl Meters {
    /// Begins to count, in a build with this fingerprint.
    pub(crate) fn new(fingerprint: Fingerprint) -> Self {
        Self {
            fingerprint,
            started_at: now_secs(),
            refused: Default::default(),
            live: LiveMeters::default(),
            web_until: AtomicU64::new(0),
        }
    }

    /// Counts a connection that was not served.
    pub(crate) fn refuse(&self, why: Refused) {
        self.refused[why as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the connections that were not served, by why.
    pub(crate) fn refused(&self) -> Vec<(&'static str, u64)> {
        let counts = Refused::ALL.into_iter().zip(&self.refused);
        counts.map(|(why, count)| (why.name(), count.load(Ordering::Relaxed))).collect()
    }

    /// Notes when the certificate of the pages ends.
    pub(crate) fn note_web_certificate(&self, until: u64) {
        self.web_until.store(until, Ordering::Relaxed);
    }

    /// Returns when the certificate of the pages ends; None where there is none.
    pub(crate) fn web_certificate(&self) -> Option<u64> {
        Some(self.web_until.load(Ordering::Relaxed)).filter(|until| *until > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_counted_between_their_bounds() {
        let meters = StoreMeters::default();
        let millis = Duration::from_millis;
        meters.note_group([millis(1), millis(30), millis(9000)].into_iter());
        meters.note_group([millis(2)].into_iter());
        let (seconds, groups) = meters.spreads();
        let filled: Vec<(f64, u64)> =
            seconds.buckets.into_iter().filter(|(_, count)| *count > 0).collect();
        assert_eq!(filled, [(0.001, 1), (0.002_5, 1), (0.05, 1), (f64::INFINITY, 1)]);
        assert!((seconds.sum - 9.033).abs() < 1e-6 && seconds.count == 4, "{}", seconds.sum);
        assert_eq!((groups.sum, groups.count), (4.0, 2));
    }

    #[test]
    fn refusals_are_counted_by_why() {
        let meters = Meters::new(Fingerprint([0; 32]));
        [Refused::Busy, Refused::Identity, Refused::Busy]
            .into_iter()
            .for_each(|why| meters.refuse(why));
        let counts = [("busy", 2), ("handshake", 0), ("share", 0), ("identity", 1)];
        assert_eq!(meters.refused(), counts);
        assert_eq!(meters.web_certificate(), None);
        meters.note_web_certificate(7);
        assert_eq!(meters.web_certificate(), Some(7));
    }
}
