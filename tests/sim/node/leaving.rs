//! Nodes that have to leave: which one does, and what it hands in of its units.

use crate::model::parts::{cut, size_of};
use crate::node::UnitState;
use crate::world::World;
use crate::world::events::NodeEvent;
use tessera_protocol::ids::Lease;
use tessera_protocol::node::{NodeToCoordinator, Task};

impl World {
    /// A node that works on samples; rather one that works on the rest of a unit, or that forges.
    pub(crate) fn node_to_leave(&mut self) -> Option<usize> {
        let (mut all, mut rests, mut forgers) = (Vec::new(), Vec::new(), Vec::new());
        for (index, node) in self.nodes.iter().enumerate() {
            let Some(process) = node.process.as_ref().filter(|process| !process.draining) else {
                continue;
            };
            let units = process.running.values().filter_map(|lease| process.units.get(lease));
            for unit in units.filter(|unit| matches!(unit.assignment.task, Task::Tile { .. })) {
                if size_of(unit.assignment.task) < 2 {
                    continue;
                }
                all.push(index);
                let key = unit.assignment.lease().unit;
                let parts = self.ledger.believed.frame(key).map(|frame| &frame.parts);
                if parts.is_some_and(|parts| parts.contains_key(&key.unit.0)) {
                    rests.push(index);
                }
                if node.plan.forger {
                    forgers.push(index);
                }
            }
        }
        let (rest, forger, any) =
            (self.random.pick(&rests), self.random.pick(&forgers), self.random.pick(&all));
        match self.random.index(3) {
            0 => rest.or(any),
            1 => forger.or(any),
            _ => any,
        }
    }

    /// A node has to be gone soon: its devices stop at a sample, and what they have is handed in.
    /// What has none goes back.
    pub(crate) fn cut_units(&mut self, node: usize) {
        let Some(process) = &mut self.nodes[node].process else { return };
        let running: Vec<(u64, Lease)> =
            process.running.iter().map(|(run, lease)| (*run, *lease)).collect();
        let (mut returned, mut stored) = (Vec::new(), Vec::new());
        for (run, lease) in running {
            let Some(unit) = process.units.get_mut(&lease) else { continue };
            process.running.remove(&run);
            let most = u64::from(size_of(unit.assignment.task));
            // Often so soon that there is little.
            let done =
                if self.random.permille(500) { 1 } else { self.random.between(0, most) as u32 };
            if done == 0 || !matches!(unit.assignment.task, Task::Tile { .. }) {
                process.units.remove(&lease);
                returned.push(lease);
            } else {
                // Stopped just before the end, it may be all of it.
                unit.assignment.task = cut(unit.assignment.task, 0, done);
                unit.state = UnitState::Storing;
                stored.push(lease);
            }
        }
        for lease in stored {
            let delay = self.random.between(1, 40);
            self.node_after(node, delay, NodeEvent::Stored(lease));
        }
        if !returned.is_empty() {
            self.control(node, NodeToCoordinator::Returned { leases: returned });
        }
        self.leave_if_done(node);
    }
}
