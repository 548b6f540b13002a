//! A secret of the coordinator that no node knows: it marks leases, and chooses the results that
//! are checked. Stored by the shell.

use std::fmt;
use tessera_protocol::ids::{BlobHash, Lease, NodeId, UnitKey};

/// Number of low bits of an epoch that are its mark; the bits above count the leases.
pub(crate) const MARK_BITS: u32 = 24;
/// Beginnings of the two uses of the secret, so that one reveals nothing about the other.
const MARK: u8 = 1;
const DRAW: u8 = 2;

/// 32 random bytes that stay the same over restarts. `Debug` does not show them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Secret(pub [u8; 32]);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

impl Secret {
    fn hash(&self, purpose: u8, unit: UnitKey, node: NodeId, count: u64) -> u64 {
        let mut bytes = Vec::with_capacity(32 + 1 + 16 + 4 + 4 + 16 + 8);
        bytes.extend_from_slice(&self.0);
        bytes.push(purpose);
        bytes.extend_from_slice(unit.job.0.as_bytes());
        bytes.extend_from_slice(&unit.frame.0.to_le_bytes());
        bytes.extend_from_slice(&unit.unit.0.to_le_bytes());
        bytes.extend_from_slice(node.0.as_bytes());
        bytes.extend_from_slice(&count.to_le_bytes());
        let BlobHash(hash) = BlobHash::of(&bytes);
        let mut first = [0; 8];
        first.copy_from_slice(&hash[..8]);
        u64::from_le_bytes(first)
    }

    /// Returns the mark of the `count`th lease of the farm: the low bits of its epoch.
    pub(crate) fn mark(&self, unit: UnitKey, node: NodeId, count: u64) -> u64 {
        self.hash(MARK, unit, node, count) & ((1 << MARK_BITS) - 1)
    }

    /// Whether this farm gave this lease to this node, in any process. A forged epoch passes once
    /// in 2^24 times.
    pub(crate) fn has_marked(&self, lease: Lease, node: NodeId) -> bool {
        let epoch = lease.epoch.0;
        self.mark(lease.unit, node, epoch >> MARK_BITS) == epoch & ((1 << MARK_BITS) - 1)
    }

    /// Returns a number below 1024 for a result, which no node can predict or find out.
    pub(crate) fn draw(&self, lease: Lease, node: NodeId) -> u64 {
        self.hash(DRAW, lease.unit, node, lease.epoch.0) >> 54
    }
}
