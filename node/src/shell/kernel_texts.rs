//! How much of what kernels print the coordinator was told, job by job.

use std::collections::{BTreeMap, BTreeSet};
use tessera_protocol::JobId;
use tessera_protocol::ids::UnitKey;
use tessera_protocol::limits::{JOB_TEXT_BYTES_MAX, UNIT_TEXT_BYTES_MAX};

/// Bytes that kernels printed, of each job, as far as the coordinator was told, and the units that
/// printed them. A unit that runs again counts once, as with the coordinator.
#[derive(Debug, Default)]
pub(super) struct KernelTexts(BTreeMap<JobId, (usize, BTreeSet<UnitKey>)>);

impl KernelTexts {
    /// Returns what the coordinator is told of a unit's text; None once its job has printed too
    /// much here.
    pub(super) fn take(&mut self, unit: UnitKey, mut text: String) -> Option<String> {
        text.truncate(text.floor_char_boundary(UNIT_TEXT_BYTES_MAX + 1));
        let (told, units) = self.0.entry(unit.job).or_default();
        if !units.contains(&unit) {
            if *told > JOB_TEXT_BYTES_MAX {
                return None;
            }
            *told += text.len();
            units.insert(unit);
        }
        Some(text)
    }

    /// Drops a job that is no more.
    pub(super) fn forget(&mut self, job: JobId) {
        self.0.remove(&job);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tessera_protocol::ids::{FrameNumber, UnitIndex};

    #[test]
    fn a_unit_that_runs_again_counts_once() {
        let job = JobId::new();
        let unit = |number| UnitKey { job, frame: FrameNumber(1), unit: UnitIndex(number) };
        let long = || "x".repeat(2 * UNIT_TEXT_BYTES_MAX);
        let mut texts = KernelTexts::default();
        for number in [0, 0, 0, 0, 0, 1, 2, 3] {
            let told = texts.take(unit(number), long()).expect("within the job's bound");
            assert_eq!(told.len(), UNIT_TEXT_BYTES_MAX + 1);
        }
        assert_eq!(texts.take(unit(4), long()), None);
        assert!(texts.take(unit(3), long()).is_some(), "it was told of before");
        texts.forget(job);
        assert!(texts.take(unit(4), long()).is_some());
    }
}
