//! The ends of a node's work: it is drained, hands in, gives up, and leaves.

use super::{Action, Agent, UnitState};
use tessera_protocol::node::NodeToCoordinator;

impl<F: Clone> Agent<F> {
    /// Drains the node: it takes no new work, returns units that have not begun, finishes the
    /// others, and leaves when all results are acknowledged.
    pub(crate) fn drain(&mut self) {
        if self.draining {
            return;
        }
        self.draining = true;
        if self.connected {
            self.send(NodeToCoordinator::Draining);
        }
        self.return_unbegun();
        self.pump();
        self.leave_if_done();
    }

    /// An operator has drained the node, or given it work again. It stays, and hands back what it
    /// has not begun. That it gets no new work is the coordinator's doing.
    pub(super) fn on_drained(&mut self, drained: bool) {
        self.drained = drained;
        if drained {
            self.return_unbegun();
        }
    }

    /// Gives back the units that have not begun.
    fn return_unbegun(&mut self) {
        let mut returned = Vec::new();
        for (lease, unit) in &self.units {
            match unit.state {
                UnitState::Waiting => returned.push(*lease),
                UnitState::Given { .. } => self.actions.push_back(Action::Withdraw(*lease)),
                UnitState::Storing => {}
            }
        }
        for lease in &returned {
            self.units.remove(lease);
        }
        self.give_back(returned);
    }

    /// Hands in: takes no new work, returns units that have not begun, ends the others at the next
    /// sample, hands these samples in, and leaves when they are acknowledged.
    pub(crate) fn hand_in(&mut self) {
        self.drain();
        let begun =
            self.units.iter().filter(|(_, unit)| matches!(unit.state, UnitState::Given { .. }));
        self.actions.extend(begun.map(|(lease, _)| Action::Cut(*lease)));
    }

    /// Takes no new work and returns every unit, begun or not, so that another node can begin it at
    /// once. Results in the outbox stay there for the next start.
    pub(crate) fn give_up(&mut self) {
        self.drain();
        let units = std::mem::take(&mut self.units);
        for (lease, unit) in &units {
            if matches!(unit.state, UnitState::Given { .. }) {
                self.actions.push_back(Action::Cancel(*lease));
            }
        }
        self.give_back(units.into_keys().collect());
    }

    pub(super) fn leave_if_done(&mut self) {
        let empty = self.units.is_empty() && self.finished.is_empty() && self.untold.is_empty();
        if self.draining && empty && !self.left {
            self.left = true;
            self.actions.push_back(Action::Leave);
        }
    }
}
