//! Whose compute jobs are, as the coordinator tells it.

use std::collections::BTreeMap;
use tessera_protocol::JobId;
use tessera_protocol::node::CoordinatorToNode;

/// Number of the owner's identity, of each compute job that the node was told of.
#[derive(Debug, Default)]
pub(super) struct Owners(BTreeMap<JobId, u64>);

impl Owners {
    /// Notes a message that names an owner, or ends a job.
    pub(super) fn note(&mut self, message: &CoordinatorToNode) {
        match message {
            CoordinatorToNode::Owner { job, owner } => drop(self.0.insert(*job, *owner)),
            CoordinatorToNode::Forget { job } => drop(self.0.remove(job)),
            _ => {}
        }
    }

    /// Returns the owner of a job; None if the coordinator has not told it.
    pub(super) fn of(&self, job: JobId) -> Option<u64> {
        self.0.get(&job).copied()
    }
}
