//! Requests, counted by the class of their status.

use axum::http::StatusCode;
use std::sync::atomic::{AtomicU64, Ordering};

/// Classes of statuses.
const CLASSES: [&str; 5] = ["1xx", "2xx", "3xx", "4xx", "5xx"];

/// Counts of requests since the server began.
#[derive(Debug, Default)]
pub(crate) struct Counts([AtomicU64; CLASSES.len()]);

impl Counts {
    /// Counts a request that was answered with this status.
    pub(super) fn note(&self, status: StatusCode) {
        let class = usize::from(status.as_u16() / 100);
        if let Some(count) = class.checked_sub(1).and_then(|class| self.0.get(class)) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Returns the requests that were answered, by the class of the status.
    pub(super) fn requests(&self) -> Vec<(&'static str, u64)> {
        let counts = CLASSES.into_iter().zip(&self.0);
        counts.map(|(class, count)| (class, count.load(Ordering::Relaxed))).collect()
    }
}
