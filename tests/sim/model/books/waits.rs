//! What jobs wait for, by the records: when a wait may end, and when it must.

use super::{Books, FrameEnd, JobBook};
use crate::checks::violation::{Checked, violated};
use tessera_core::Core;
use tessera_protocol::ids::{FrameNumber, JobId};
use tessera_protocol::job::{After, JobSpec, Until};
use tessera_protocol::status::{JobState, JobSummary, Waits};

/// Text in the note of a job that ended because of another.
pub(crate) const ENDED_WITH: &str = "for which this job waits";

/// Whether a wait goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    GoesOn,
    Over,
    Lost,
}

impl JobBook {
    /// A frame is finished.
    pub(crate) fn has_done(&self, frame: FrameNumber) -> bool {
        self.frames.get(&frame).is_some_and(|frame| frame.end == FrameEnd::Done)
    }
}

impl Books {
    /// What is waited for was accepted before.
    pub(super) fn check_known(&self, job: JobId, spec: &JobSpec) -> Checked {
        match spec.after.iter().find(|after| !self.jobs.contains_key(&after.job)) {
            Some(after) => violated(format!("job {job} waits for {}, which is unknown", after.job)),
            None => Ok(()),
        }
    }

    /// Whether a wait of a job goes on.
    pub(crate) fn wait(&self, book: &JobBook, after: &After) -> Wait {
        let Some(on) = self.jobs.get(&after.job) else { return Wait::Lost };
        let ended_well = match after.until {
            Until::Success => on.ended == Some(JobState::Done),
            Until::End => on.ended.is_some(),
            Until::Frames => book.frames.keys().all(|frame| on.has_done(*frame)),
        };
        match (ended_well, on.ended) {
            (true, _) => Wait::Over,
            (false, None) => Wait::GoesOn,
            (false, Some(_)) => Wait::Lost,
        }
    }

    pub(super) fn end_wait(&mut self, job: JobId, on: JobId) -> Checked {
        let Some(book) = self.jobs.get(&job).filter(|book| book.ended.is_none()) else {
            return violated(format!("a wait of {job} ends, which is unknown or has ended"));
        };
        let Some(after) = book.waits.iter().find(|after| after.job == on).copied() else {
            return violated(format!("job {job} does not wait for {on}, and ends that"));
        };
        if self.wait(book, &after) != Wait::Over {
            return violated(format!("the wait of {job} for {on} ends too early"));
        }
        self.going(job)?.waits.retain(|after| after.job != on);
        Ok(())
    }

    /// A job ends with one that it waits for only where it waits in vain.
    pub(super) fn check_end_with(&self, job: JobId, note: &str) -> Checked {
        let Some(book) = self.jobs.get(&job).filter(|_| note.contains(ENDED_WITH)) else {
            return Ok(());
        };
        match book.waits.iter().any(|after| self.wait(book, after) == Wait::Lost) {
            true => Ok(()),
            false => violated(format!("job {job} ends, and waits for nothing in vain: {note}")),
        }
    }

    /// No wait is left whose end has come, or cannot come any more.
    pub(crate) fn check_waits(&self) -> Checked {
        for (job, book) in self.jobs.iter().filter(|(_, book)| book.ended.is_none()) {
            for after in &book.waits {
                let wait = self.wait(book, after);
                if wait != Wait::GoesOn {
                    return violated(format!("{job} still waits for {}: {wait:?}", after.job));
                }
            }
        }
        Ok(())
    }

    /// No unit of the frame may be leased, because its job waits.
    pub(crate) fn holds_back(&self, job: JobId, frame: FrameNumber) -> bool {
        let waits = self.jobs.get(&job).map(|book| book.waits.as_slice()).unwrap_or_default();
        waits.iter().any(|after| {
            let on = self.jobs.get(&after.job);
            after.until != Until::Frames || !on.is_some_and(|on| on.has_done(frame))
        })
    }

    /// No unit of the job may be leased, because it waits.
    pub(crate) fn holds_all_back(&self, job: JobId) -> bool {
        let frames = self.jobs.get(&job).into_iter().flat_map(|book| book.frames.keys());
        frames.into_iter().all(|frame| self.holds_back(job, *frame))
    }

    /// The core says of what a job waits for what the records say.
    pub(super) fn compare_waits(&self, row: &JobSummary, core: &Core) -> Checked {
        let Some(book) = self.jobs.get(&row.job).filter(|book| !book.spec.after.is_empty()) else {
            return Ok(());
        };
        let detail = core.job(row.job);
        let over = detail.iter().flat_map(|detail| &detail.after).filter(|after| after.over);
        let known = book.spec.after.iter().filter(|after| !book.waits.contains(after));
        if !over.map(|after| after.job).eq(known.map(|after| after.job)) {
            return violated(format!("the core is wrong about what {} waits for", row.job));
        }
        if book.ended.is_some() || book.paused {
            return Ok(());
        }
        let says = row.waits == Some(Waits::After);
        let must = !book.waits.is_empty() && self.holds_all_back(row.job);
        match must && !says || says && book.waits.is_empty() {
            true => violated(format!("{} says that it waits for {:?}", row.job, row.waits)),
            false => Ok(()),
        }
    }
}
