//! Ending a unit early, taking it back before it has begun, and how far it is. Owns two atomics,
//! shared by node and device.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

const IDLE: u8 = 0;
const BEGUN: u8 = 1;
const CANCELLED: u8 = 2;
const CUT: u8 = 3;

/// Shared by whoever asks for a unit and the device that renders it.
#[derive(Clone, Debug, Default)]
pub struct CancelToken {
    state: Arc<AtomicU8>,
    /// One more than what is done; 0: the device does not tell.
    told: Arc<AtomicU64>,
}

impl CancelToken {
    /// Stop as soon as convenient, begun or not.
    pub fn cancel(&self) {
        self.state.store(CANCELLED, Ordering::Release);
    }

    /// Stop at the next sample that all pixels have: what there is until then is the result. A
    /// device that cannot goes on; one that has not begun does not begin.
    pub fn cut(&self) {
        let cut = self.state.compare_exchange(BEGUN, CUT, Ordering::AcqRel, Ordering::Acquire);
        if cut == Err(IDLE) {
            self.withdraw();
        }
    }

    /// The device should stop at the next sample.
    pub fn is_cut(&self) -> bool {
        self.state.load(Ordering::Acquire) == CUT
    }

    /// Take the unit back if it has not begun; true where it will not begin any more.
    pub fn withdraw(&self) -> bool {
        self.state.compare_exchange(IDLE, CANCELLED, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// The device is about to begin; false where it must not.
    pub fn begin(&self) -> bool {
        self.state.compare_exchange(IDLE, BEGUN, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// The device has begun, and tells how far it is: it has done so many more samples or indices.
    pub fn advance(&self, done: u64) {
        let _ = self.told.compare_exchange(0, 1, Ordering::AcqRel, Ordering::Acquire);
        self.told.fetch_add(done, Ordering::AcqRel);
    }

    /// What is done; None where the device has not begun, or does not tell.
    pub fn done(&self) -> Option<u64> {
        self.told.load(Ordering::Acquire).checked_sub(1)
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
    fn a_begun_unit_can_be_cancelled_but_not_withdrawn() {
        let token = CancelToken::default();
        assert!(token.begin());
        assert!(!token.withdraw());
        assert!(!token.is_cancelled());
        token.cancel();
        assert!(token.is_cancelled());
    }

    #[test]
    fn progress_grows_and_is_unknown_before_the_start() {
        let token = CancelToken::default();
        assert_eq!(token.done(), None);
        let shared = token.clone();
        shared.advance(0);
        assert_eq!(token.done(), Some(0));
        shared.advance(7);
        shared.advance(5);
        assert_eq!(token.done(), Some(12));
    }

    #[test]
    fn a_begun_unit_is_cut_and_a_waiting_one_never_begins() {
        let (begun, waiting, cancelled) =
            (CancelToken::default(), CancelToken::default(), CancelToken::default());
        assert!(begun.begin());
        cancelled.cancel();
        for token in [&begun, &waiting, &cancelled] {
            token.cut();
        }
        assert!(begun.is_cut() && !begun.is_cancelled());
        assert!(!waiting.begin() && !waiting.is_cut());
        assert!(cancelled.is_cancelled() && !cancelled.is_cut());
        begun.cancel();
        assert!(begun.is_cancelled());
    }

    #[test]
    fn a_withdrawn_unit_never_begins() {
        let token = CancelToken::default();
        assert!(token.withdraw());
        assert!(!token.begin());
    }
}
