//! Texts of users' kernels: what they print, and what compilers say of them. Kept in memory and for
//! a bounded number of bytes, since a text is for people and decides nothing.

use std::collections::BTreeMap;
use tessera_protocol::JobId;
use tessera_protocol::ids::{FrameNumber, UnitIndex, UnitKey};
use tessera_protocol::limits::{JOB_TEXT_BYTES_MAX, UNIT_TEXT_BYTES_MAX};
use tessera_transport::close::cut;

/// Most bytes of the texts of all jobs: 512 jobs that print as much as they can.
const TOTAL_BYTES_MAX: usize = 512 * JOB_TEXT_BYTES_MAX;
/// Last line of a text of which more was said.
const MORE: &str = "[further text is not kept]\n";

/// Texts of one job.
#[derive(Debug)]
struct OfJob {
    /// Number of the owner's identity.
    owner: u64,
    /// Text of the first run of each unit that said something.
    units: BTreeMap<(FrameNumber, UnitIndex), String>,
    bytes: usize,
    is_cut: bool,
}

/// Texts of all jobs.
#[derive(Debug, Default)]
pub(super) struct KernelTexts {
    jobs: BTreeMap<JobId, OfJob>,
    bytes: usize,
}

impl KernelTexts {
    /// Adds the text of a unit. A unit that runs again says nothing new.
    pub(super) fn add(&mut self, owner: u64, unit: UnitKey, text: &str) {
        let of_job = self.jobs.entry(unit.job).or_insert_with(|| OfJob {
            owner,
            units: BTreeMap::new(),
            bytes: 0,
            is_cut: false,
        });
        let place = (unit.frame, unit.unit);
        if of_job.units.contains_key(&place) || text.is_empty() {
            return;
        }
        let room = UNIT_TEXT_BYTES_MAX.min(JOB_TEXT_BYTES_MAX - of_job.bytes);
        let kept = cut(text, room);
        of_job.is_cut |= kept.len() < text.len();
        if kept.is_empty() {
            return;
        }
        of_job.units.insert(place, kept.to_owned());
        of_job.bytes += kept.len();
        self.bytes += kept.len();
        self.make_room();
    }

    /// Returns the text of a job in the order of its units; empty if there is none.
    pub(super) fn of(&self, job: JobId) -> String {
        let Some(of_job) = self.jobs.get(&job) else { return String::new() };
        let mut text = String::new();
        for part in of_job.units.values() {
            text.push_str(part);
            if !part.ends_with('\n') {
                text.push('\n');
            }
        }
        if of_job.is_cut {
            text.push_str(MORE);
        }
        text
    }

    /// Drops the texts of jobs that are no more.
    pub(super) fn retain(&mut self, exists: impl Fn(JobId) -> bool) {
        self.jobs.retain(|job, _| exists(*job));
        self.bytes = self.jobs.values().map(|of_job| of_job.bytes).sum();
    }

    /// Drops the oldest job of the owner whose texts are the longest.
    fn make_room(&mut self) {
        while self.bytes > TOTAL_BYTES_MAX {
            let mut owners: BTreeMap<u64, usize> = BTreeMap::new();
            for of_job in self.jobs.values() {
                *owners.entry(of_job.owner).or_default() += of_job.bytes;
            }
            let longest = owners.into_iter().max_by_key(|(_, bytes)| *bytes);
            let Some(owner) = longest.map(|(owner, _)| owner) else { return };
            let oldest = self.jobs.iter().find(|(_, of_job)| of_job.owner == owner);
            let Some(job) = oldest.map(|(job, _)| *job) else { return };
            self.bytes -= self.jobs.remove(&job).map_or(0, |of_job| of_job.bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    fn unit(job: u128, unit: u32) -> UnitKey {
        let job = JobId(Uuid::from_u128(job));
        UnitKey { job, frame: FrameNumber(1), unit: UnitIndex(unit) }
    }

    #[test]
    fn a_text_is_in_the_order_of_units_and_once() {
        let mut texts = KernelTexts::default();
        texts.add(3, unit(1, 2), "second");
        texts.add(3, unit(1, 0), "first\n");
        texts.add(3, unit(1, 0), "again\n");
        texts.add(4, unit(2, 0), "other\n");
        assert_eq!(texts.of(unit(1, 0).job), "first\nsecond\n");
        texts.retain(|job| job != unit(1, 0).job);
        assert_eq!(texts.of(unit(1, 0).job), "");
        assert_eq!(texts.bytes, 6);
    }

    #[test]
    fn texts_are_cut_at_their_limits() {
        let mut texts = KernelTexts::default();
        let long = "x".repeat(2 * UNIT_TEXT_BYTES_MAX);
        for index in 0..100 {
            texts.add(3, unit(1, index), &long);
        }
        assert_eq!(texts.bytes, JOB_TEXT_BYTES_MAX);
        let text = texts.of(unit(1, 0).job);
        assert!(text.len() <= JOB_TEXT_BYTES_MAX + 64 && text.ends_with(MORE));
    }

    #[test]
    fn who_prints_much_loses_the_own_oldest_text() {
        let mut texts = KernelTexts::default();
        texts.add(4, unit(1, 0), "short\n");
        let long = "x".repeat(UNIT_TEXT_BYTES_MAX);
        for job in 2..1000 {
            for index in 0..4 {
                texts.add(3, unit(job, index), &long);
            }
        }
        assert!(texts.bytes <= TOTAL_BYTES_MAX);
        assert_eq!(texts.of(unit(1, 0).job), "short\n");
        assert_eq!(texts.of(unit(2, 0).job), "");
        assert!(!texts.of(unit(999, 0).job).is_empty());
    }
}
