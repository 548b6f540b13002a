//! Orders to make a frame's files or to measure a round of it: which are not answered yet, and
//! which failed and are due again later. Not durable: after a restart they are given again.

use crate::time::Moment;
use std::collections::BTreeMap;
use tessera_protocol::ids::{FrameNumber, JobId};

/// A failed order that is given again later.
#[derive(Clone, Debug)]
struct Wait {
    failures: u32,
    reason: String,
    /// Time at which the order is given again; None if it was.
    again: Option<Moment>,
}

/// The orders of all open jobs.
#[derive(Debug, Default)]
pub(crate) struct Orders {
    /// Orders that have failed so far.
    waits: BTreeMap<(JobId, FrameNumber), Wait>,
    /// Orders that are not answered yet, each with whether its answer is outdated.
    given: BTreeMap<(JobId, FrameNumber), bool>,
}

impl Orders {
    /// Adds an order of a frame; false if one is not answered yet.
    pub(crate) fn give(&mut self, job: JobId, frame: FrameNumber) -> bool {
        let is_new = !self.given.contains_key(&(job, frame));
        if is_new {
            self.given.insert((job, frame), false);
        }
        is_new
    }

    /// Whether an order of a frame waits for its answer, or failed.
    pub(crate) fn is_known(&self, job: JobId, frame: FrameNumber) -> bool {
        self.given.contains_key(&(job, frame)) || self.has_failed(job, frame)
    }

    /// Removes the answered order of a frame. True if the answer is outdated.
    pub(crate) fn answer(&mut self, job: JobId, frame: FrameNumber) -> bool {
        self.given.remove(&(job, frame)) == Some(true)
    }

    /// Whether the order of a frame failed, or is still to be given again.
    pub(crate) fn has_failed(&self, job: JobId, frame: FrameNumber) -> bool {
        self.waits.contains_key(&(job, frame))
    }

    /// Notes that the order of a frame failed, and plans the next one: `again` gives its time after
    /// so many failures. Returns that time; None if it was planned already.
    pub(crate) fn fail(
        &mut self,
        job: JobId,
        frame: FrameNumber,
        reason: String,
        again: impl FnOnce(u32) -> Moment,
    ) -> Option<Moment> {
        let before = self.waits.get(&(job, frame));
        if before.is_some_and(|wait| wait.again.is_some()) {
            return None;
        }
        let failures = before.map_or(0, |wait| wait.failures).saturating_add(1);
        let again = again(failures);
        self.waits.insert((job, frame), Wait { failures, reason, again: Some(again) });
        Some(again)
    }

    /// Whether a frame's order is due again now. Takes it, so that it is due once.
    pub(crate) fn take_due(&mut self, job: JobId, frame: FrameNumber, now: Moment) -> bool {
        let wait = self.waits.get_mut(&(job, frame));
        let wait = wait.filter(|wait| wait.again.is_some_and(|again| again <= now));
        wait.map(|wait| wait.again = None).is_some()
    }

    /// Drops the failures of a frame's orders: the frame is resolved, has failed, or continues.
    pub(crate) fn forget_failures(&mut self, job: JobId, frame: FrameNumber) {
        self.waits.remove(&(job, frame));
    }

    /// Notes that units of a frame have been taken back, so that the answer to its order is
    /// outdated.
    pub(crate) fn drop_frame(&mut self, job: JobId, frame: FrameNumber) {
        self.forget_failures(job, frame);
        if let Some(stale) = self.given.get_mut(&(job, frame)) {
            *stale = true;
        }
    }

    /// Drops the orders of a job that has ended. Answers to them are outdated, even if the job is
    /// opened again.
    pub(crate) fn drop_job(&mut self, id: JobId) {
        self.waits.retain(|(job, _), _| *job != id);
        let given = self.given.iter_mut().filter(|((job, _), _)| *job == id);
        given.for_each(|(_, stale)| *stale = true);
    }

    /// Returns the first frame of a job whose order failed, and the reason.
    pub(crate) fn failure_of(&self, id: JobId) -> Option<(FrameNumber, &str)> {
        let mut failed = self.waits.iter().filter(|((job, _), _)| *job == id);
        failed.next().map(|((_, frame), wait)| (*frame, wait.reason.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRAME: FrameNumber = FrameNumber(3);

    fn job() -> JobId {
        JobId(uuid::Uuid::from_u128(1))
    }

    #[test]
    fn an_order_is_given_once_until_it_is_answered() {
        let mut orders = Orders::default();
        assert!(orders.give(job(), FRAME) && !orders.give(job(), FRAME));
        assert!(!orders.answer(job(), FRAME));
        assert!(orders.give(job(), FRAME));
        orders.drop_frame(job(), FRAME);
        assert!(orders.answer(job(), FRAME), "its frame has changed since");
        assert!(!orders.answer(job(), FRAME));
    }

    #[test]
    fn a_failed_order_is_due_once_at_its_moment() {
        let mut orders = Orders::default();
        let again = |failures: u32| Moment(u64::from(failures) * 100);
        assert_eq!(orders.fail(job(), FRAME, "full".to_owned(), again), Some(Moment(100)));
        assert_eq!(orders.fail(job(), FRAME, "full".to_owned(), again), None);
        assert_eq!(orders.failure_of(job()), Some((FRAME, "full")));
        assert!(!orders.take_due(job(), FRAME, Moment(99)));
        assert!(orders.take_due(job(), FRAME, Moment(100)));
        assert!(!orders.take_due(job(), FRAME, Moment(101)));
        assert_eq!(orders.fail(job(), FRAME, "full".to_owned(), again), Some(Moment(200)));
        orders.drop_job(job());
        assert!(!orders.has_failed(job(), FRAME));
    }
}
