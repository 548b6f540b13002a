//! What monitoring reads of the jobs: counted anew from the books whenever it is asked for, a part
//! of the jobs at a time. Decides nothing.

use crate::books::Books;
use crate::report::job_state::job_state;
use crate::report::waiting::waiting;
use crate::state::job::Job;
use std::ops::Bound;
use tessera_protocol::ids::JobId;
use tessera_protocol::status::{JobState, Waits};

/// Most jobs of a part. An ended one takes well below a microsecond.
const JOBS_MAX: usize = 4096;
/// Most open jobs of a part. Why one waits takes microseconds to find.
const OPEN_MAX: usize = 256;

/// Counts of jobs and of the work that open ones have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobsTally {
    /// Jobs in each state, in the order of [`JobState::ALL`].
    pub states: [u64; JobState::ALL.len()],
    /// Jobs that wait for each reason, in the order of [`Waits::ALL`].
    pub waits: [u64; Waits::ALL.len()],
    /// Units of open jobs that wait for a result, leased or not.
    pub units_open: u64,
    /// Committed units of open jobs.
    pub units_committed: u64,
    /// Committed camera samples of open jobs.
    pub samples_committed: u64,
    /// Results that wait until another node has rendered them again.
    pub checks: u64,
    /// Device time that the jobs which may have work are expected to need until they end, in
    /// microseconds. Of a job without results, a unit counts as a second.
    pub queue_micros: u64,
}

impl JobsTally {
    /// Adds the counts of other jobs.
    pub fn add(&mut self, other: &Self) {
        let add = |own: &mut [u64], other: &[u64]| {
            own.iter_mut().zip(other).for_each(|(own, other)| *own += other);
        };
        add(&mut self.states, &other.states);
        add(&mut self.waits, &other.waits);
        self.units_open += other.units_open;
        self.units_committed += other.units_committed;
        self.samples_committed += other.samples_committed;
        self.checks += other.checks;
        self.queue_micros = self.queue_micros.saturating_add(other.queue_micros);
    }

    fn note_open(&mut self, books: &Books, job: &Job) {
        let leased = books.leases().count_in(job.id()) as u64;
        if let Some(waits) = waiting(books, job, leased).map(|wait| wait.class()) {
            count(&mut self.waits, &Waits::ALL, waits);
        }
        let counts = job.counts();
        self.units_open += counts.units_open;
        self.units_committed += counts.units_committed;
        self.samples_committed += counts.samples_committed;
        let Some(queue) = books.queue(job.id()) else { return };
        let checks = queue.redos().count() as u64;
        self.checks += checks;
        if !books.is_held_back(job) && !job.is_waiting() {
            let samples = counts.samples_open + (checks as f64 * job.mean_unit_samples()) as u64;
            let rest = queue.estimates().cost().rest(samples, counts.units_open + checks);
            self.queue_micros = self.queue_micros.saturating_add(rest);
        }
    }
}

fn count<T: PartialEq>(counts: &mut [u64], all: &[T], one: T) {
    let counted = all.iter().zip(counts).find(|(other, _)| **other == one);
    if let Some((_, count)) = counted {
        *count += 1;
    }
}

/// Counts a part of the jobs, in the order of their ids, of those after one. Returns the last job
/// of the part too, if there may be more.
pub(crate) fn tally(books: &Books, after: Option<JobId>) -> (JobsTally, Option<JobId>) {
    let mut tally = JobsTally::default();
    let mut open = 0;
    let from = after.map_or(Bound::Unbounded, Bound::Excluded);
    for (looked_at, job) in books.farm().jobs_from(from).enumerate() {
        count(&mut tally.states, &JobState::ALL, job_state(books, job));
        if !job.is_final() {
            tally.note_open(books, job);
            open += 1;
        }
        if open == OPEN_MAX || looked_at + 1 == JOBS_MAX {
            return (tally, Some(job.id()));
        }
    }
    (tally, None)
}

/// Counts the nodes that are in doubt, and those that gave wrong results.
pub(crate) fn suspects(books: &Books) -> (u64, u64) {
    let suspects = books.farm().trust().suspects();
    let guilty = suspects.values().filter(|suspect| suspect.guilty).count();
    ((suspects.len() - guilty) as u64, guilty as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Core;
    use crate::input::{Caller, Input, RequestId};
    use crate::settings::Settings;
    use crate::time::Moment;
    use tessera_protocol::ids::BlobHash;
    use tessera_protocol::job::{AssetFile, JobKind, JobSpec, RenderSpec};

    fn submit(core: &mut Core, number: u128) {
        let hash = BlobHash([1; 32]);
        let render = RenderSpec {
            scene: "a.gltf".into(),
            files: vec![AssetFile { path: "a.gltf".into(), hash, length: 1 }],
            width: 64,
            height: 32,
            tile: 32,
            frames: "0".parse().unwrap(),
            spp: 1,
            ..RenderSpec::default()
        };
        let spec = Box::new(JobSpec::new("a", JobKind::Render(render)));
        let job = JobId(uuid::Uuid::from_u128(number));
        let caller = Caller { name: "ada".into(), id: 1, admin: false };
        let request = RequestId(0);
        core.handle(Input::Submit { request, job, spec, caller }, Moment(0));
    }

    #[test]
    fn jobs_are_counted_once_in_parts_of_bounded_length() {
        let mut core = Core::new(Settings::default(), Moment(0));
        assert_eq!(core.tally(None), (JobsTally::default(), None));
        let jobs = 2 * OPEN_MAX as u64 + 10;
        (0..u128::from(jobs)).for_each(|number| submit(&mut core, number));
        let (mut tally, mut after) = core.tally(None);
        assert_eq!(tally.states[0], OPEN_MAX as u64);
        let mut parts = 1;
        while after.is_some() {
            let (part, last) = core.tally(after);
            tally.add(&part);
            after = last;
            parts += 1;
        }
        assert_eq!((parts, tally.states), (3, [jobs, 0, 0, 0, 0, 0]));
        let mut waits = [0; Waits::ALL.len()];
        waits[3] = jobs;
        assert_eq!((tally.waits, Waits::ALL[3]), (waits, Waits::Nodes));
        assert_eq!((tally.units_open, tally.queue_micros), (2 * jobs, 2_000_000 * jobs));
        assert_eq!((tally.units_committed, tally.samples_committed, tally.checks), (0, 0, 0));
    }
}
