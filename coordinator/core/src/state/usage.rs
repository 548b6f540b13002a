//! What the jobs of each owner have together. Kept beside the jobs, because it is asked for with
//! every submit; checked against them by [`super::farm::Farm::check_usage`].

use crate::owner::Owner;
use crate::state::job::Job;
use std::collections::BTreeMap;

/// What the jobs of one owner have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JobUsage {
    /// Jobs that have not ended.
    pub jobs: u64,
    /// Jobs that have ended and are kept.
    pub jobs_ended: u64,
    /// Frames of jobs that have not ended, and finished frames of those that have.
    pub frames: u64,
    /// Units that wait for a result.
    pub units: u64,
    /// Bytes of the descriptions of all jobs.
    pub spec_bytes: u64,
    /// Bytes of the files of finished frames.
    pub frame_bytes: u64,
}

impl JobUsage {
    /// Returns what one job has.
    pub(crate) fn of(job: &Job) -> Self {
        let done = job.frames().done();
        let kept = Self {
            spec_bytes: job.spec_bytes(),
            frame_bytes: done.sums().bytes,
            ..Self::default()
        };
        match job.is_final() {
            true => Self { jobs_ended: 1, frames: u64::from(done.len()), ..kept },
            false => {
                let (frames, units) = (u64::from(job.frames().len()), job.counts().units_open);
                Self { jobs: 1, frames, units, ..kept }
            }
        }
    }

    fn combine(&mut self, other: &Self, with: impl Fn(u64, u64) -> u64) {
        let fields = [
            (&mut self.jobs, other.jobs),
            (&mut self.jobs_ended, other.jobs_ended),
            (&mut self.frames, other.frames),
            (&mut self.units, other.units),
            (&mut self.spec_bytes, other.spec_bytes),
            (&mut self.frame_bytes, other.frame_bytes),
        ];
        fields.into_iter().for_each(|(own, other)| *own = with(*own, other));
    }
}

/// What the jobs of all owners have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usage(BTreeMap<Owner, JobUsage>);

impl Usage {
    /// Sums up what jobs have.
    pub(crate) fn of<'a>(jobs: impl Iterator<Item = &'a Job>) -> Self {
        let mut usage = Self::default();
        jobs.for_each(|job| usage.change(&job.held_by(), None, Some(JobUsage::of(job))));
        usage
    }

    /// Notes that a job of an owner has changed, or is new or gone.
    pub(crate) fn change(
        &mut self,
        owner: &Owner,
        before: Option<JobUsage>,
        after: Option<JobUsage>,
    ) {
        let sum = self.0.entry(owner.clone()).or_default();
        if let Some(after) = after {
            sum.combine(&after, |own, more| own + more);
        }
        if let Some(before) = before {
            sum.combine(&before, |own, less| own.saturating_sub(less));
        }
        if *sum == JobUsage::default() {
            self.0.remove(owner);
        }
    }

    /// Returns what the jobs of an owner have.
    pub(crate) fn of_owner(&self, owner: &Owner) -> JobUsage {
        self.0.get(owner).copied().unwrap_or_default()
    }

    /// Returns what the jobs of every owner have.
    pub(crate) fn all(&self) -> &BTreeMap<Owner, JobUsage> {
        &self.0
    }
}
