//! Whether a node is trusted with work: one on which attempt after attempt fails gets none for a
//! while. What wrong results do to a node is in `checks`.

use crate::time::Moment;
use std::collections::BTreeSet;
use std::time::Duration;
use tessera_protocol::ids::JobId;

/// Failures in a row, of several jobs, after which the node is at fault rather than a job.
const FAILURES_OF_SEVERAL_JOBS: u32 = 3;
/// Failures in a row after which the node is at fault, even if all are of one job.
const FAILURES_OF_ANY_JOB: u32 = 8;

/// Failures of a node, and their consequences.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Fitness {
    /// Failures since its last commit.
    failures: u32,
    /// Jobs of those failures.
    failed_jobs: BTreeSet<JobId>,
    /// Number of times that it became unfit since its last commit.
    times_unfit: u32,
    /// Time until which it gets no work, and the reason.
    unfit: Option<(Moment, String)>,
}

impl Fitness {
    /// Returns the time until which the node gets no work, and the reason; None if it may have
    /// work.
    pub(crate) fn unfit(&self) -> Option<&(Moment, String)> {
        self.unfit.as_ref()
    }

    /// Counts a failed attempt of a job. True if the node rather than the job is at fault, and is
    /// not unfit yet.
    pub(crate) fn note_failure(&mut self, job: JobId) -> bool {
        self.failures = self.failures.saturating_add(1);
        self.failed_jobs.insert(job);
        let several = self.failed_jobs.len() > 1 && self.failures >= FAILURES_OF_SEVERAL_JOBS;
        (several || self.failures >= FAILURES_OF_ANY_JOB) && self.unfit.is_none()
    }

    /// Gives the node no work for a while, `first` the first time. Returns when that ends.
    pub(crate) fn set_unfit(&mut self, now: Moment, first: Duration) -> Moment {
        let until = now.after(unfit_for(first, self.times_unfit));
        let note = format!(
            "{} attempts of {} jobs failed here in a row",
            self.failures,
            self.failed_jobs.len()
        );
        self.unfit = Some((until, note));
        self.times_unfit += 1;
        (self.failures, self.failed_jobs) = (0, BTreeSet::new());
        until
    }

    /// Gives the node no work for a while, because it does nothing. Returns when that ends.
    pub(crate) fn set_idle(&mut self, now: Moment, first: Duration, why: &str) -> Moment {
        let until = now.after(unfit_for(first, self.times_unfit));
        self.unfit = Some((until, why.to_owned()));
        self.times_unfit += 1;
        until
    }

    /// Ends the time without work if it is over. True if it was.
    pub(crate) fn recover(&mut self, now: Moment) -> bool {
        let over = self.unfit.as_ref().is_some_and(|(until, _)| *until <= now);
        if over {
            self.unfit = None;
        }
        over
    }

    /// Resets the count of failures, because the node has committed a result.
    pub(crate) fn note_commit(&mut self) {
        *self = Self { unfit: self.unfit.take(), ..Self::default() };
    }
}

/// Returns how long a node is unfit the next time: twice as long each time, up to an hour.
fn unfit_for(first: Duration, times_before: u32) -> Duration {
    first.saturating_mul(1 << times_before.min(6)).min(Duration::from_secs(3600).max(first))
}
