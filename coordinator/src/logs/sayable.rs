//! What a node may say lines about: itself, and the jobs and units that it was given of late. A
//! valid node cannot write into the logs of others' jobs.

use crate::sync::lock;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use tessera_protocol::logs::LogAbout;
use tessera_protocol::node::Assignment;
use tessera_protocol::{JobId, UnitKey};

/// Jobs that are remembered of each node. Lines about a job that has just ended come late.
const JOBS_MAX: usize = 256;
/// Units that are remembered of each node: twice as many as it can hold, 48 KiB.
const UNITS_MAX: usize = 2048;

/// Jobs, with the numbers of their owners, and units that a node was given, the newest last.
#[derive(Clone, Debug, Default)]
struct Given {
    jobs: VecDeque<(JobId, u64)>,
    units: VecDeque<UnitKey>,
}

/// What one node may say lines about. Clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sayable(Arc<Mutex<Given>>);

impl Sayable {
    /// Takes over what the same process was given in its former session.
    pub(crate) fn take_over(&self, former: &Self) {
        // Every session has its own mutex, so this cannot deadlock.
        let former = lock(&former.0).clone();
        *lock(&self.0) = former;
    }

    /// The node was given a job.
    pub(crate) fn admit_job(&self, job: JobId, owner: u64) {
        let mut given = lock(&self.0);
        given.jobs.retain(|(known, _)| *known != job);
        push(&mut given.jobs, (job, owner), JOBS_MAX);
    }

    /// The node was given units.
    pub(crate) fn admit_units(&self, units: impl IntoIterator<Item = UnitKey>) {
        let mut given = lock(&self.0);
        units.into_iter().for_each(|unit| push(&mut given.units, unit, UNITS_MAX));
    }

    /// The node was given these leases.
    pub(crate) fn admit_work(&self, work: &[Assignment]) {
        self.admit_units(work.iter().map(|one| one.lease().unit));
    }

    /// Returns the owner of the job that a line is about, which may be none. None: the node may not
    /// say the line.
    pub(crate) fn owner_of(&self, about: &LogAbout) -> Option<Option<u64>> {
        let Some(job) = about.job() else { return Some(None) };
        let given = lock(&self.0);
        if let Some(lease) = about.lease()
            && !given.units.contains(&lease.unit)
        {
            return None;
        }
        let known = given.jobs.iter().find(|(known, _)| *known == job);
        known.map(|(_, owner)| Some(*owner))
    }
}

fn push<T>(queue: &mut VecDeque<T>, one: T, most: usize) {
    if queue.len() >= most {
        queue.pop_front();
    }
    queue.push_back(one);
}

#[cfg(test)]
mod tests {
    use super::*;
    use tessera_protocol::{Epoch, FrameNumber, Lease, UnitIndex};

    fn lease(job: JobId, unit: u32) -> Lease {
        let unit = UnitKey { job, frame: FrameNumber(1), unit: UnitIndex(unit) };
        Lease { unit, epoch: Epoch(1) }
    }

    // promise: P8
    #[test]
    fn a_node_speaks_of_what_it_was_given_alone() {
        let (mine, other, frame) = (JobId::new(), JobId::new(), FrameNumber(1));
        let sayable = Sayable::default();
        sayable.admit_job(mine, 3);
        sayable.admit_units([lease(mine, 7).unit]);
        assert_eq!(sayable.owner_of(&LogAbout::Node), Some(None));
        assert_eq!(sayable.owner_of(&LogAbout::Job(mine)), Some(Some(3)));
        assert_eq!(sayable.owner_of(&LogAbout::Frame { job: mine, frame }), Some(Some(3)));
        assert_eq!(sayable.owner_of(&LogAbout::Unit(lease(mine, 7))), Some(Some(3)));
        assert_eq!(sayable.owner_of(&LogAbout::Unit(lease(mine, 8))), None);
        assert_eq!(sayable.owner_of(&LogAbout::Job(other)), None);
        assert_eq!(sayable.owner_of(&LogAbout::Unit(lease(other, 7))), None);
        let next = Sayable::default();
        next.take_over(&sayable);
        assert_eq!(next.owner_of(&LogAbout::Unit(lease(mine, 7))), Some(Some(3)));
    }

    // promise: P8
    #[test]
    fn only_the_newest_of_what_a_node_was_given_is_kept() {
        let sayable = Sayable::default();
        let first = JobId::new();
        sayable.admit_job(first, 3);
        (0..1000).for_each(|_| sayable.admit_job(JobId::new(), 4));
        sayable.admit_units((0..10_000).map(|unit| lease(first, unit).unit));
        assert_eq!(sayable.owner_of(&LogAbout::Job(first)), None);
        let given = lock(&sayable.0);
        assert_eq!((given.jobs.len(), given.units.len()), (JOBS_MAX, UNITS_MAX));
    }
}
