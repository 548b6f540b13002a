//! Ending a unit early, or taking it back before it has begun. Owns one atomic state, shared by node and device.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

const IDLE: u8 = 0;
const BEGUN: u8 = 1;
const CANCELLED: u8 = 2;

/// Shared by whoever asks for a unit and the device that renders it.
#[derive(Clone, Debug, Default)]
pub struct CancelToken {
    state: Arc<AtomicU8>,
}

impl CancelToken {
    /// Stop as soon as convenient, begun or not.
    pub fn cancel(&self) {
        self.state.store(CANCELLED, Ordering::Release);
    }

    /// Take the unit back if it has not begun; true where it will not begin any more.
    pub fn withdraw(&self) -> bool {
        self.state.compare_exchange(IDLE, CANCELLED, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// The device is about to begin; false where it must not.
    pub fn begin(&self) -> bool {
        self.state.compare_exchange(IDLE, BEGUN, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// The device should stop.
    pub fn is_cancelled(&self) -> bool {
        self.state.load(Ordering::Acquire) == CANCELLED
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_that_has_begun_cannot_be_withdrawn_but_cancelled() {
        let token = CancelToken::default();
        assert!(token.begin());
        assert!(!token.withdraw());
        assert!(!token.is_cancelled());
        token.cancel();
        assert!(token.is_cancelled());
    }

    #[test]
    fn a_withdrawn_unit_never_begins() {
        let token = CancelToken::default();
        assert!(token.withdraw());
        assert!(!token.begin());
    }
}
