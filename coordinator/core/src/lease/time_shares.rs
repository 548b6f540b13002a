//! How much of the farm's time each frame has used. Time is divided evenly among the leases that
//! are held: a frame that is rendered by itself uses all of it, frames that are rendered side by
//! side share it, and a frame without leases uses none. Depends only on leases and the time; not
//! durable.

use crate::time::Moment;
use std::collections::BTreeMap;
use tessera_protocol::ids::{FrameNumber, JobId};

/// Resolution of the shares, in fractions of a millisecond: a thousand leases of a millisecond each
/// add up to one within a thousandth.
const FRACTION_BITS: u32 = 20;

/// Shares of the farm's time, by frame.
#[derive(Debug, Default)]
pub(crate) struct TimeShares {
    /// Share of a lease that was held since the start.
    of_a_lease: u64,
    /// Time up to which shares are counted.
    at: Moment,
    /// Shares of frames' ended leases, if they are counted.
    of_frames: BTreeMap<(JobId, FrameNumber), u64>,
}

impl TimeShares {
    /// Advances the clock while so many leases are held.
    pub(crate) fn pass(&mut self, now: Moment, leases: usize) {
        let parts = now.0.saturating_sub(self.at.0).saturating_mul(1 << FRACTION_BITS);
        if let Some(each) = parts.checked_div(leases as u64) {
            self.of_a_lease = self.of_a_lease.saturating_add(each);
        }
        self.at = self.at.max(now);
    }

    /// Returns the share of a lease that was held since the start. The difference of two readings
    /// is the share of a lease that was held between them.
    pub(crate) fn reading(&self) -> u64 {
        self.of_a_lease
    }

    /// Ends a lease of a frame that began at this reading.
    pub(crate) fn add(&mut self, job: JobId, frame: FrameNumber, began: u64) {
        let had = self.of_frames.entry((job, frame)).or_default();
        *had = had.saturating_add(self.of_a_lease - began);
    }

    /// Returns the share of a frame's ended leases, in milliseconds.
    pub(crate) fn millis_of(&self, job: JobId, frame: FrameNumber) -> u64 {
        self.of_frames.get(&(job, frame)).map_or(0, |had| had >> FRACTION_BITS)
    }

    /// Drops the share of a frame: it is recorded, or no longer needed.
    pub(crate) fn forget(&mut self, job: JobId, frame: FrameNumber) {
        self.of_frames.remove(&(job, frame));
    }

    /// Drops the shares of all frames of a job.
    pub(crate) fn forget_job(&mut self, job: JobId) {
        self.of_frames.retain(|(other, _), _| *other != job);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leases_share_the_time_in_which_they_are_held() {
        let (job, mut shares) = (JobId(Default::default()), TimeShares::default());
        let [one, other] = [1, 2].map(FrameNumber);
        shares.pass(Moment(1_000_000), 0);
        let began = shares.reading();
        shares.pass(Moment(1_000_900), 1);
        let later = shares.reading();
        shares.pass(Moment(1_001_500), 2);
        shares.add(job, one, began);
        shares.pass(Moment(1_001_600), 1);
        shares.add(job, other, later);
        assert_eq!([one, other].map(|frame| shares.millis_of(job, frame)), [900 + 300, 300 + 100]);
        // Without leases, and with a clock that goes back, nothing changes.
        shares.pass(Moment(9_000_000), 0);
        shares.pass(Moment(8_000_000), 1);
        let began = shares.reading();
        shares.pass(Moment(9_000_010), 3);
        (0..3).for_each(|_| shares.add(job, one, began));
        assert_eq!(
            shares.millis_of(job, one),
            1200 + 9,
            "what is lost is less than a part for each lease"
        );
        shares.forget(job, one);
        assert_eq!((shares.millis_of(job, one), shares.millis_of(job, other)), (0, 400));
        shares.forget_job(job);
        assert_eq!(shares.millis_of(job, other), 0);
    }
}
