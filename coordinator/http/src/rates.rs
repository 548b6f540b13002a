//! How often somebody may ask: a bucket of requests for each identity, and one of failed sign-ins
//! for each address.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// Buckets that are kept; beyond, full ones are dropped first.
const BUCKETS_MAX: usize = 8192;

/// A rate and how much of it may come at once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rate {
    /// Per second.
    pub(crate) steady: f64,
    /// At once.
    pub(crate) burst: f64,
}

/// A bucket for each key.
#[derive(Debug)]
pub(crate) struct Buckets<K> {
    rate: Rate,
    filled: Mutex<HashMap<K, (f64, Instant)>>,
}

impl<K: Hash + Eq> Buckets<K> {
    /// Full buckets of this rate.
    pub(crate) fn new(rate: Rate) -> Self {
        Self { rate, filled: Mutex::default() }
    }

    /// Takes one of a key's bucket; false if it is empty.
    pub(crate) fn take(&self, key: K, now: Instant) -> bool {
        let Rate { steady, burst } = self.rate;
        let left = |(left, at): &(f64, Instant)| {
            (left + now.saturating_duration_since(*at).as_secs_f64() * steady).min(burst)
        };
        let mut filled = self.filled.lock().unwrap_or_else(PoisonError::into_inner);
        if filled.len() >= BUCKETS_MAX && !filled.contains_key(&key) {
            filled.retain(|_, bucket| left(bucket) < burst);
            if filled.len() >= BUCKETS_MAX {
                return false;
            }
        }
        let bucket = filled.entry(key).or_insert((burst, now));
        *bucket = (left(bucket), now);
        let takes = bucket.0 >= 1.0;
        if takes {
            bucket.0 -= 1.0;
        }
        takes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_bucket_empties_and_fills_for_its_key_alone() {
        let buckets = Buckets::new(Rate { steady: 2.0, burst: 3.0 });
        let now = Instant::now();
        assert_eq!((0..5).filter(|_| buckets.take(1, now)).count(), 3);
        assert!(buckets.take(2, now));
        let later = now + Duration::from_secs(1);
        assert_eq!((0..5).filter(|_| buckets.take(1, later)).count(), 2);
    }

    #[test]
    fn many_keys_take_bounded_room() {
        let buckets = Buckets::new(Rate { steady: 1.0, burst: 1.0 });
        let now = Instant::now();
        let taken = (0..2 * BUCKETS_MAX).filter(|key| buckets.take(*key, now)).count();
        assert_eq!(taken, BUCKETS_MAX);
        assert!(buckets.take(usize::MAX, now + Duration::from_secs(2)), "full buckets are dropped");
    }
}
