//! Which jobs wait for a job: an index over what the jobs say themselves, so that the end of a job
//! costs as much as there are jobs that wait for it, however many others there are.

use crate::state::job::Job;
use std::collections::{BTreeMap, BTreeSet};
use tessera_protocol::ids::JobId;

/// For each job, the jobs that name it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Awaited {
    /// Open jobs whose waits for it are not over.
    waiting: BTreeMap<JobId, BTreeSet<JobId>>,
    /// All jobs whose spec names it, if it is known.
    naming: BTreeMap<JobId, BTreeSet<JobId>>,
}

impl Awaited {
    /// Derives the index from all jobs.
    pub(super) fn of(jobs: &BTreeMap<JobId, Job>) -> Self {
        let mut awaited = Self::default();
        for job in jobs.values() {
            awaited.add(job, |on| jobs.contains_key(&on));
        }
        awaited
    }

    /// Adds a job, or its waits anew. `is_known`: whether a job was accepted and not forgotten.
    pub(super) fn add(&mut self, job: &Job, is_known: impl Fn(JobId) -> bool) {
        for after in job.spec().after.iter().filter(|after| is_known(after.job)) {
            self.naming.entry(after.job).or_default().insert(job.id());
        }
        for wait in job.waits().iter().filter(|_| !job.is_final()) {
            self.waiting.entry(wait.after.job).or_default().insert(job.id());
        }
    }

    /// Removes the wait of a job for another.
    pub(super) fn end(&mut self, job: JobId, on: JobId) {
        remove(&mut self.waiting, on, job);
    }

    /// Removes a job that is forgotten.
    pub(super) fn forget(&mut self, job: &Job) {
        for after in &job.spec().after {
            remove(&mut self.naming, after.job, job.id());
        }
        self.naming.remove(&job.id());
    }

    /// Returns the open jobs that wait for a job.
    pub(crate) fn waiting_for(&self, on: JobId) -> impl Iterator<Item = JobId> + '_ {
        self.waiting.get(&on).into_iter().flatten().copied()
    }

    /// Returns the jobs that name a job, and how many these are.
    pub(crate) fn naming(&self, on: JobId) -> (impl Iterator<Item = JobId> + '_, usize) {
        let naming = self.naming.get(&on);
        (naming.into_iter().flatten().copied(), naming.map_or(0, BTreeSet::len))
    }

    /// Returns all waits that are not over: the job that is waited for, and the one that waits.
    pub(crate) fn waits(&self) -> impl Iterator<Item = (JobId, JobId)> + '_ {
        self.waiting.iter().flat_map(|(on, jobs)| jobs.iter().map(move |job| (*on, *job)))
    }
}

fn remove(index: &mut BTreeMap<JobId, BTreeSet<JobId>>, key: JobId, job: JobId) {
    if let Some(jobs) = index.get_mut(&key) {
        jobs.remove(&job);
        if jobs.is_empty() {
            index.remove(&key);
        }
    }
}
