//! The dirty set: the nodes for which something has changed since units were last handed out, so
//! that the scheduler looks at those and at no others.

use tessera_protocol::ids::NodeId;

/// Nodes that may be given more units.
#[derive(Debug, Default)]
pub(crate) struct Dirty {
    /// Every node is dirty: work appeared, or a rule that keeps work from nodes was lifted.
    everyone: bool,
    /// The dirty nodes, if not all are. Rarely more than one.
    nodes: Vec<NodeId>,
    /// Whether dirty nodes may get copies too. Not set by a plain heartbeat: timers look for
    /// copies.
    copies: bool,
}

impl Dirty {
    /// Marks every node, for units and copies.
    pub(crate) fn mark_all(&mut self) {
        (self.everyone, self.copies) = (true, true);
    }

    /// Marks a node that may have room.
    pub(crate) fn mark(&mut self, id: NodeId) {
        self.mark_heard(id);
        self.copies = true;
    }

    /// Marks a node that sent a heartbeat: a unit may suit it by now, but it gets no copies.
    pub(crate) fn mark_heard(&mut self, id: NodeId) {
        if !self.everyone && !self.nodes.contains(&id) {
            self.nodes.push(id);
        }
    }

    /// Whether no node is marked.
    pub(crate) fn is_empty(&self) -> bool {
        !self.everyone && self.nodes.is_empty()
    }

    /// Empties the set and returns its former content.
    pub(crate) fn take(&mut self) -> Self {
        std::mem::take(self)
    }

    /// The marked nodes; None for every node.
    pub(crate) fn nodes(&self) -> Option<&[NodeId]> {
        (!self.everyone).then_some(&self.nodes)
    }

    /// Whether dirty nodes may get copies too.
    pub(crate) fn wants_copies(&self) -> bool {
        self.copies
    }
}
