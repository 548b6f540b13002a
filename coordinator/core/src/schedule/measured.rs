//! Memory of a job as measured by devices: data only. What follows from it is in `memory`.

use std::collections::BTreeMap;
use tessera_protocol::ids::NodeId;

/// Memory that units of a job needed, and devices that had too little.
#[derive(Debug, Default)]
pub(crate) struct Measured {
    /// Largest known need of a unit in bytes, a lower bound; 0 if unknown.
    bytes: u64,
    /// Nodes on which a unit ran out of memory, with the memory of the largest such device.
    short: BTreeMap<NodeId, u64>,
}

impl Measured {
    /// Notes the memory that a result reports.
    pub(crate) fn note_need(&mut self, bytes: u64) {
        self.bytes = self.bytes.max(bytes);
    }

    /// Notes that a unit ran out of memory on a node's device, with the device's total memory.
    pub(crate) fn note_short(&mut self, node: NodeId, total: u64) {
        let short = self.short.entry(node).or_default();
        *short = total.max(*short);
    }

    /// Drops the measurements of a node that has rejoined: its devices may be others.
    pub(crate) fn forget(&mut self, node: NodeId) {
        self.short.remove(&node);
    }

    /// Returns the bytes that a device must have, given the job's prediction; 0 if unknown.
    pub(crate) fn need(&self, predicted: u64) -> u64 {
        if self.bytes > 0 { self.bytes } else { predicted }
    }

    /// Returns the memory of the largest device of a node on which a unit ran out of memory; None
    /// if there is no such device.
    pub(crate) fn short_on(&self, node: NodeId) -> Option<u64> {
        self.short.get(&node).copied()
    }

    /// Whether a unit ran out of memory on some node.
    pub(crate) fn has_short(&self) -> bool {
        !self.short.is_empty()
    }
}
