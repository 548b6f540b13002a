//! Cancelling a unit, withdrawing it before it has begun, and its progress. Owns the atomics that
//! node and device share.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};

const IDLE: u8 = 0;
const BEGUN: u8 = 1;
const CANCELLED: u8 = 2;
const CUT: u8 = 3;

/// Shared by the owner of a unit and the device that renders it.
#[derive(Clone, Debug, Default)]
pub struct CancelToken {
    state: Arc<AtomicU8>,
    /// Whether the unit was cancelled, for work that knows nothing of units.
    stop: Arc<AtomicBool>,
    /// Progress plus one; 0 if the device does not report it.
    told: Arc<AtomicU64>,
}

impl CancelToken {
    /// Asks the device to stop as soon as convenient, whether it has begun or not.
    pub fn cancel(&self) {
        self.state.store(CANCELLED, Ordering::Release);
        self.stop.store(true, Ordering::Release);
    }

    /// Returns what becomes true once the unit is cancelled, but not if it is cut.
    pub fn stop(&self) -> &AtomicBool {
        &self.stop
    }

    /// Asks the device to stop at the next sample that all pixels have; the samples so far are the
    /// result. A device that cannot do so continues. One that has not begun does not begin.
    ///
    /// A finishing unit is finished: it takes seconds, and would be lost. The notice of a spot
    /// machine is longer.
    pub fn cut(&self) {
        let cut = self.state.compare_exchange(BEGUN, CUT, Ordering::AcqRel, Ordering::Acquire);
        if cut == Err(IDLE) {
            self.withdraw();
        }
    }

    /// Returns whether the device should stop at the next sample.
    pub fn is_cut(&self) -> bool {
        self.state.load(Ordering::Acquire) == CUT
    }

    /// Takes the unit back if it has not begun. Returns true if it will not begin any more.
    pub fn withdraw(&self) -> bool {
        self.state.compare_exchange(IDLE, CANCELLED, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// Returns whether the device has begun and may still work on the unit.
    pub fn has_begun(&self) -> bool {
        matches!(self.state.load(Ordering::Acquire), BEGUN | CUT)
    }

    /// Marks that the device is about to begin. Returns false if it must not.
    pub fn begin(&self) -> bool {
        self.state.compare_exchange(IDLE, BEGUN, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// Reports that the device has done this many more samples or indices.
    pub fn advance(&self, done: u64) {
        let _ = self.told.compare_exchange(0, 1, Ordering::AcqRel, Ordering::Acquire);
        self.told.fetch_add(done, Ordering::AcqRel);
    }

    /// Returns the progress; None if the device has not begun, or does not report it.
    pub fn done(&self) -> Option<u64> {
        self.told.load(Ordering::Acquire).checked_sub(1)
    }

    /// Returns whether the device should stop.
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
        assert!(!begun.stop().load(Ordering::Acquire));
        assert!(!waiting.begin() && !waiting.is_cut());
        assert!(cancelled.is_cancelled() && !cancelled.is_cut());
        begun.cancel();
        assert!(begun.is_cancelled() && begun.stop().load(Ordering::Acquire));
    }

    #[test]
    fn a_withdrawn_unit_never_begins() {
        let token = CancelToken::default();
        assert!(token.withdraw());
        assert!(!token.begin());
    }
}
