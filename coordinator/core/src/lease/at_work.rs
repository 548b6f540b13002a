//! How many leases each node has of each job, counted so that nobody has to search for them.

use std::collections::BTreeMap;
use tessera_protocol::ids::{JobId, NodeId};

/// Leases of jobs on nodes.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct AtWork(BTreeMap<JobId, BTreeMap<NodeId, u32>>);

impl AtWork {
    /// Counts leases, each given by its job and node.
    pub(super) fn of(leases: impl Iterator<Item = (JobId, NodeId)>) -> Self {
        let mut counted = Self::default();
        leases.for_each(|(job, node)| counted.add(job, node));
        counted
    }

    pub(super) fn add(&mut self, job: JobId, node: NodeId) {
        *self.0.entry(job).or_default().entry(node).or_default() += 1;
    }

    pub(super) fn remove(&mut self, job: JobId, node: NodeId) {
        let Some(nodes) = self.0.get_mut(&job) else { return };
        if let Some(count) = nodes.get_mut(&node) {
            *count -= 1;
            if *count == 0 {
                nodes.remove(&node);
            }
        }
        if nodes.is_empty() {
            self.0.remove(&job);
        }
    }

    /// Number of nodes with leases of a job.
    pub(super) fn nodes(&self, job: JobId) -> usize {
        self.0.get(&job).map_or(0, BTreeMap::len)
    }

    /// Whether a node has a lease of a job.
    pub(super) fn works(&self, job: JobId, node: NodeId) -> bool {
        self.0.get(&job).is_some_and(|nodes| nodes.contains_key(&node))
    }
}
