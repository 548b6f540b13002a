//! Which nodes were asked to make room, and for which job: data only. What follows from it is in
//! `room`.

use crate::time::Moment;
use std::collections::BTreeMap;
use std::time::Duration;
use tessera_protocol::ids::{JobId, NodeId};

/// Room is made for one job of an owner in so much time, so that many short jobs do not keep all
/// nodes busy with giving back.
const EVERY: Duration = Duration::from_secs(1);

/// Nodes that were asked to make room, each for one job.
#[derive(Debug, Default)]
pub(crate) struct Rooms {
    asked: BTreeMap<NodeId, JobId>,
    /// When a node was last asked to make room for a job of an owner.
    of_owner: BTreeMap<u64, Moment>,
}

impl Rooms {
    /// Notes that a node was asked to make room for a job of an owner.
    pub(crate) fn ask(&mut self, node: NodeId, (job, owner): (JobId, u64), now: Moment) {
        self.forget(job);
        self.asked.insert(node, job);
        self.of_owner.retain(|_, at| now < at.after(EVERY));
        self.of_owner.insert(owner, now);
    }

    /// Forgets the room of a job: it was leased, or has ended.
    pub(crate) fn forget(&mut self, job: JobId) {
        self.asked.retain(|_, other| *other != job);
    }

    /// The job that a node was asked to make room for.
    pub(crate) fn job_for(&self, node: NodeId) -> Option<JobId> {
        self.asked.get(&node).copied()
    }

    /// Whether room may be made for a job of an owner now.
    pub(crate) fn may_ask(&self, owner: u64, now: Moment) -> bool {
        self.of_owner.get(&owner).is_none_or(|at| now >= at.after(EVERY))
    }
}
