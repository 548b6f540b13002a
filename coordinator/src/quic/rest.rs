//! How long a store of results elsewhere is left alone after it did not take one.

use crate::sync::lock;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// How long the store is not tried after it failed.
const RESTS_FOR: Duration = Duration::from_secs(10);

/// Whether the store is left alone for a while, because it did not take a result.
#[derive(Debug, Default)]
pub(crate) struct Rest {
    until: Mutex<Option<Instant>>,
}

impl Rest {
    /// Begins a rest. Returns whether it is the first one since the store took something.
    pub(super) fn begin(&self) -> bool {
        lock(&self.until).replace(Instant::now() + RESTS_FOR).is_none()
    }

    pub(super) fn end(&self) {
        *lock(&self.until) = None;
    }

    pub(super) fn is_resting(&self) -> bool {
        lock(&self.until).is_some_and(|until| Instant::now() < until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outage_is_told_once() {
        let rest = Rest::default();
        assert!(!rest.is_resting());
        assert!(rest.begin() && rest.is_resting());
        assert!(!rest.begin());
        rest.end();
        assert!(!rest.is_resting() && rest.begin());
    }
}
