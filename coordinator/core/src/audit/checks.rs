//! Records of checks: a unit that was computed again, and nodes that are believed no more.

use super::ledger::Ledger;
use crate::journal::Redone;
use crate::state::kernel_votes::Blame;
use crate::state::votes::Vote;
use tessera_protocol::ids::{FrameNumber, JobId, NodeId, UnitIndex};

impl Ledger {
    pub(super) fn check(&mut self, id: JobId, frame: FrameNumber, redone: &Redone) {
        let (unit, epoch) = (redone.unit, redone.epoch);
        if epoch >= self.reserved || !self.epochs.insert(epoch) {
            self.problem(format!("{id}/{frame}: a check has {epoch}, which is not its own"));
        }
        let Some(entry) = self.open(id, "a check") else { return };
        let Some(votes) = entry.unchecked.get_mut(&(frame, unit)) else {
            return self
                .problem(format!("{id}/{frame}/u{:05} is checked, and was not to be", unit.0));
        };
        let vote = Vote { node: redone.node, epoch, hash: redone.hash };
        let verdict = votes.decide(entry.blame, &vote);
        let stands = verdict.is_some_and(|verdict| verdict.truth == votes.committed().hash);
        votes.add(vote);
        if stands {
            entry.next_check(frame, unit);
        }
    }

    pub(super) fn end_check(&mut self, id: JobId, frame: FrameNumber, unit: UnitIndex) {
        let Some(entry) = self.open(id, "a check") else { return };
        if !entry.next_check(frame, unit) {
            self.problem(format!(
                "{id}/{frame}/u{:05} is waived, and was not to be checked",
                unit.0
            ));
        }
    }

    pub(super) fn suspect(&mut self, node: NodeId) {
        let checks = self.jobs.values_mut().flat_map(|entry| entry.unchecked.values_mut());
        checks.for_each(|check| check.strike(node));
    }

    pub(super) fn bar(&mut self, id: JobId, node: NodeId) {
        let Some(entry) = self.open(id, "a wrong chunk") else { return };
        entry.unchecked.values_mut().for_each(|check| check.strike(node));
        if entry.blame != Blame::Kernel {
            self.problem(format!("node {node} is barred from job {id}, which bars none"));
        }
    }
}
