//! How results of a job are compared, and the nodes that get no more of it because they were wrong.

use super::Job;
use crate::state::kernel_votes::Blame;
use crate::time::Moment;
use std::collections::BTreeSet;
use tessera_protocol::compute::ComputeSpec;
use tessera_protocol::ids::{NodeId, UnitKey};
use tessera_protocol::status::FailureNote;

impl Job {
    /// Whose fault it may be that results differ.
    pub(crate) fn blame(&self) -> Blame {
        match self.kind().compute().is_some_and(ComputeSpec::runs_users_kernel) {
            true => Blame::Kernel,
            false => Blame::Node,
        }
    }

    /// Whether results are compared at all: not if the kernel is meant to give others each time.
    pub(crate) fn is_compared(&self) -> bool {
        self.kind().compute().is_none_or(|compute| !compute.nondeterministic)
    }

    /// Nodes that were wrong about a chunk of the user's kernel.
    pub(crate) fn barred(&self) -> &BTreeSet<NodeId> {
        &self.barred
    }

    /// Notes that a node was wrong about a chunk of the user's kernel.
    pub(in crate::state) fn bar(
        &mut self,
        (node, name): (NodeId, &str),
        at: Moment,
        unit: UnitKey,
        reason: &str,
    ) -> Result<(), String> {
        if self.is_final() || self.blame() != Blame::Kernel {
            return Err(format!("{node} is barred from job {}, which bars none", self.id));
        }
        self.barred.insert(node);
        self.unhear(node);
        self.note_failure(FailureNote {
            at: at.secs(),
            unit: format!("{}/u{:05}", unit.frame, unit.unit.0),
            node: name.to_owned(),
            reason: reason.to_owned(),
        });
        Ok(())
    }
}
