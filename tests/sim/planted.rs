//! Bugs planted between the simulator and the core, to see that they are caught. The core itself stays whole.

use crate::random::Random;
use crate::shell::Process;
use std::collections::BTreeMap;
use tessera_core::{Action, Input, Record, SessionId, Step};
use tessera_protocol::ids::Lease;
use tessera_protocol::node::CoordinatorToNode;

/// What is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bug {
    /// Lease: a lost session is not noticed, so that its leases outlive the grace of their node.
    LeaseOutlivesNode,
    /// Lease: a lease that a node gives back is not freed.
    LeaseNotFreed,
    /// Lease: a node is not told that its lease has ended.
    LeaseNotRevoked,
    /// Lease: work is sent to two nodes.
    LeaseGivenTwice,
    /// Epoch: a result is taken by its unit alone, as if it had the epoch of the lease that is held now.
    EpochNotCompared,
    /// Epoch: after a restart, the epochs of the last reservation are given out again.
    EpochReused,
    /// Replay: a record is passed over.
    ReplayDropsRecord,
    /// Replay: a record is taken twice.
    ReplayDoublesRecord,
}

/// A bug and what it remembers.
#[derive(Clone, Debug)]
pub(crate) struct Planted {
    bug: Bug,
    /// Results that were passed off as others: what the core was told, and the truth.
    forged: BTreeMap<(SessionId, Lease), (SessionId, Lease)>,
}

impl Planted {
    pub(crate) fn new(bug: Bug) -> Self {
        Self { bug, forged: BTreeMap::new() }
    }

    /// A start could tell the bug by reading everything twice; the epochs alone are to show it.
    pub(crate) fn is_left_to_epochs(&self) -> bool {
        self.bug == Bug::EpochReused
    }

    /// What the core is handed instead of an input.
    pub(crate) fn on_input(&mut self, input: Input, process: &Process, random: &mut Random) -> Option<Input> {
        match (self.bug, input) {
            (Bug::LeaseOutlivesNode, Input::SessionLost { .. }) if random.permille(300) => None,
            (Bug::LeaseNotFreed, Input::Returned { .. }) => None,
            (Bug::EpochNotCompared, Input::ResultArrived { session, mut result }) => {
                let held = process.core.lease_of(result.lease.unit);
                let holder = held.and_then(|(lease, node)| Some((lease, process.watch.session_of(node)?)));
                let Some((lease, holder)) = holder.filter(|(lease, _)| *lease != result.lease) else {
                    return Some(Input::ResultArrived { session, result });
                };
                self.forged.insert((holder, lease), (session, result.lease));
                result.lease = lease;
                Some(Input::ResultArrived { session: holder, result })
            }
            (_, input) => Some(input),
        }
    }

    /// Changes what the core decided.
    pub(crate) fn on_step(&mut self, step: &mut Step, process: &Process, random: &mut Random) {
        for action in &mut step.actions {
            if let Action::KeepResult { session, lease } | Action::DropResult { session, lease } = action
                && let Some((true_session, true_lease)) = self.forged.remove(&(*session, *lease))
            {
                (*session, *lease) = (true_session, true_lease);
            }
        }
        if self.bug == Bug::LeaseNotRevoked {
            let is_revoke = |action: &Action| {
                matches!(action, Action::Send { message: CoordinatorToNode::Revoke { .. }, .. })
            };
            step.actions.retain(|action| !is_revoke(action));
        }
        if self.bug == Bug::LeaseGivenTwice && random.permille(50) {
            let work = step.actions.iter().find_map(|action| match action {
                Action::Send { session, message: CoordinatorToNode::Work(work) } => {
                    Some((*session, work.clone()))
                }
                _ => None,
            });
            let others: Vec<SessionId> = process.sessions.keys().copied().collect();
            if let (Some((session, work)), Some(other)) = (work, random.pick(&others))
                && other != session
            {
                let message = CoordinatorToNode::Work(work);
                step.actions.push(Action::Send { session: other, message });
            }
        }
    }

    /// Changes what a start reads.
    pub(crate) fn on_replay(&mut self, records: &mut Vec<Record>, random: &mut Random) {
        let is_reservation = |record: &Record| matches!(record, Record::EpochsReserved { .. });
        match self.bug {
            Bug::EpochReused => {
                if let Some(position) = records.iter().rposition(is_reservation) {
                    records.remove(position);
                }
            }
            Bug::ReplayDropsRecord if !records.is_empty() => {
                records.remove(random.index(records.len()));
            }
            Bug::ReplayDoublesRecord if !records.is_empty() => {
                let position = random.index(records.len());
                records.insert(position, records[position].clone());
            }
            _ => {}
        }
    }
}
