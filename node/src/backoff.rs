//! Computes the wait before the next attempt: longer each time, and different for every node. Owns
//! no clock.

use std::time::Duration;

/// Wait before the first repetition.
const FIRST: Duration = Duration::from_millis(200);
/// Longest wait before jitter.
const LONGEST: Duration = Duration::from_secs(15);
/// Longest wait before jitter where a coordinator may be in several places: one that takes over is
/// found within this time, and leases again.
const LONGEST_OF_SEVERAL: Duration = Duration::from_secs(4);

/// Exponential backoff. The jitter comes from the node's id and the number of the try. So nodes do
/// not all dial at the same moments when a coordinator returns, and no random source is needed.
#[derive(Debug)]
pub(crate) struct Backoff {
    key: [u8; 16],
    tries: u32,
    /// Longest wait unless nothing will change soon.
    longest: Duration,
    is_slow: bool,
}

impl Backoff {
    pub(crate) fn new(key: [u8; 16]) -> Self {
        Self { key, tries: 0, longest: LONGEST, is_slow: false }
    }

    /// Waits of a node that knows so many places of coordinators.
    pub(crate) fn among(key: [u8; 16], places: usize) -> Self {
        let longest = if places > 1 { LONGEST_OF_SEVERAL } else { LONGEST };
        Self { longest, ..Self::new(key) }
    }

    /// Returns the wait before the next try: 0.5 to 1 times `FIRST × 2^tries`, at most the longest.
    pub(crate) fn next(&mut self) -> Duration {
        let longest = if self.is_slow { LONGEST } else { self.longest };
        let whole = FIRST.saturating_mul(1 << self.tries.min(16)).min(longest);
        let mut hasher = blake3::Hasher::new();
        hasher.update(&self.key).update(&self.tries.to_le_bytes());
        let share = f64::from(hasher.finalize().as_bytes()[0]) / 255.0;
        self.tries = self.tries.saturating_add(1);
        whole.mul_f64(0.5 + 0.5 * share)
    }

    /// Makes the next wait the longest one, because nothing will change soon.
    pub(crate) fn slow(&mut self) {
        self.tries = self.tries.max(16);
        self.is_slow = true;
    }

    /// Resets the wait after a success: the next failure starts from the first wait.
    pub(crate) fn reset(&mut self) {
        self.tries = 0;
        self.is_slow = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_to_a_bound_and_differ_between_nodes() {
        let waits = |key: u8| {
            let mut backoff = Backoff::new([key; 16]);
            (0..40).map(|_| backoff.next()).collect::<Vec<_>>()
        };
        let (ours, theirs) = (waits(1), waits(2));
        assert!(ours[0] >= FIRST / 2 && ours[0] <= FIRST);
        assert!(ours.iter().all(|wait| *wait <= LONGEST));
        assert!(ours[20..].iter().all(|wait| *wait >= LONGEST / 2));
        assert_ne!(ours, theirs);
    }

    #[test]
    fn success_starts_over() {
        let mut backoff = Backoff::new([3; 16]);
        let first = backoff.next();
        backoff.next();
        backoff.reset();
        assert_eq!(backoff.next(), first);
        backoff.slow();
        assert!(backoff.next() >= LONGEST / 2);
    }

    #[test]
    fn a_coordinator_that_takes_over_is_found_soon() {
        let mut backoff = Backoff::among([5; 16], 2);
        assert!((0..40).all(|_| backoff.next() <= LONGEST_OF_SEVERAL));
        backoff.slow();
        assert!(backoff.next() >= LONGEST / 2, "one that is shut out has time");
        backoff.reset();
        assert!(backoff.next() <= FIRST);
    }
}
