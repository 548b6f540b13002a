//! How far a device can be trusted: decides when it is restarted, and when it is given up. A pure
//! state machine.

use crate::backoff::Backoff;
use std::time::Duration;

/// Failures in a row, without a finished unit in between, after which a device is quarantined.
const FAILURES_MAX: u32 = 4;
/// Wrong answers in total after which a device is quarantined. One may be a fault that the restart
/// has cured. Two mean that the device computes wrongly.
const WRONG_MAX: u32 = 2;
/// A device may have one failure for this many finished units, in addition to [`FAILURES_MAX`] × 4.
const UNITS_PER_FAILURE: u64 = 1000;

/// How a worker ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// It died, the watchdog ended it, or its driver reported an error.
    Worker,
    /// It gave a wrong known answer.
    WrongAnswer,
}

/// What to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// Start another worker after this time.
    Restart(Duration),
    /// Do not use the device any more.
    Quarantine,
}

/// History of one device.
#[derive(Debug)]
pub(super) struct Health {
    backoff: Backoff,
    in_a_row: u32,
    wrong: u32,
    failures: u64,
    units: u64,
}

impl Health {
    /// Creates the history of a new device.
    pub(super) fn new(backoff: Backoff) -> Self {
        Self { backoff, in_a_row: 0, wrong: 0, failures: 0, units: 0 }
    }

    /// Records a finished unit of a healthy device.
    pub(super) fn on_unit(&mut self) {
        self.units += 1;
        self.in_a_row = 0;
        self.backoff.reset();
    }

    /// Records the end of the worker. Returns what to do next.
    pub(super) fn on_fault(&mut self, fault: Fault) -> Next {
        self.in_a_row += 1;
        self.failures += 1;
        self.wrong += u32::from(fault == Fault::WrongAnswer);
        let often = self.failures > u64::from(4 * FAILURES_MAX) + self.units / UNITS_PER_FAILURE;
        if self.in_a_row >= FAILURES_MAX || self.wrong >= WRONG_MAX || often {
            return Next::Quarantine;
        }
        Next::Restart(self.backoff.next())
    }

    /// Returns the number of workers that have ended early.
    pub(super) fn failures(&self) -> u64 {
        self.failures
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device() -> Health {
        Health::new(Backoff::new([7; 16]))
    }

    #[test]
    fn occasional_failures_always_lead_to_a_restart() {
        let mut health = device();
        for _ in 0..10 {
            assert!(matches!(health.on_fault(Fault::Worker), Next::Restart(_)));
            (0..1000).for_each(|_| health.on_unit());
        }
        assert_eq!(health.failures(), 10);
    }

    #[test]
    fn repeated_failures_back_off_and_end_in_quarantine() {
        let mut health = device();
        let nexts: Vec<Next> = (0..4).map(|_| health.on_fault(Fault::Worker)).collect();
        assert!(nexts[..3].iter().all(|next| matches!(next, Next::Restart(_))), "{nexts:?}");
        assert_eq!(nexts[3], Next::Quarantine);
    }

    #[test]
    fn two_wrong_answers_quarantine_a_device() {
        let mut health = device();
        assert!(matches!(health.on_fault(Fault::WrongAnswer), Next::Restart(_)));
        (0..10_000).for_each(|_| health.on_unit());
        assert_eq!(health.on_fault(Fault::WrongAnswer), Next::Quarantine);
    }

    #[test]
    fn frequent_failures_end_in_quarantine() {
        let mut health = device();
        let ends = |health: &mut Health| {
            (0..10).for_each(|_| health.on_unit());
            health.on_fault(Fault::Worker) == Next::Quarantine
        };
        let failures = (1..100).find(|_| ends(&mut health));
        assert_eq!(failures, Some(17));
    }
}
