//! Memory of a job as measured by devices: data only. What follows from it is in `memory`.

use std::collections::BTreeMap;
use tessera_protocol::ids::NodeId;

/// Memory that the units of a job needed, and devices that had too little.
#[derive(Debug, Default)]
pub(crate) struct Measured {
    /// Bytes that a unit needed at least, the most so far; 0: nothing is known.
    bytes: u64,
    /// Nodes on which it ran out of memory, with the memory of the largest device on which it did.
    short: BTreeMap<NodeId, u64>,
}

impl Measured {
    /// A result says what it needed.
    pub(crate) fn note_need(&mut self, bytes: u64) {
        self.bytes = self.bytes.max(bytes);
    }

    /// A unit ran out of memory on a node's device, which has so much in all.
    pub(crate) fn note_short(&mut self, node: NodeId, total: u64) {
        let short = self.short.entry(node).or_default();
        *short = total.max(*short);
    }

    /// A node has begun anew: its devices may be others.
    pub(crate) fn forget(&mut self, node: NodeId) {
        self.short.remove(&node);
    }

    /// Bytes that a device must have for a job that predicts some; 0 if unknown.
    pub(crate) fn need(&self, predicted: u64) -> u64 {
        if self.bytes > 0 { self.bytes } else { predicted }
    }

    /// Memory of the largest device of a node on which a unit ran out of it; None where none did.
    pub(crate) fn short_on(&self, node: NodeId) -> Option<u64> {
        self.short.get(&node).copied()
    }

    /// A unit ran out of memory on some node.
    pub(crate) fn has_short(&self) -> bool {
        !self.short.is_empty()
    }
}
