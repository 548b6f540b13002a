//! A secret of the coordinator that no node knows: it marks leases, and chooses the results that
//! are checked. Stored by the shell.

use std::fmt;
use tessera_protocol::ids::{BlobHash, Lease, NodeId, UnitKey};

/// Bits of an epoch that are its mark; those above count the leases.
pub(crate) const MARK_BITS: u32 = 24;
/// What the two uses of the secret begin with, so that one tells nothing of the other.
const MARK: u8 = 1;
const DRAW: u8 = 2;

/// 32 bytes by chance, the same over restarts. Its `Debug` does not show it.
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

    /// The low bits of the epoch of the lease that is the `count`th of the farm.
    pub(crate) fn mark(&self, unit: UnitKey, node: NodeId, count: u64) -> u64 {
        self.hash(MARK, unit, node, count) & ((1 << MARK_BITS) - 1)
    }

    /// This farm gave this lease to this node, in this process or another. Whoever makes one up is
    /// right once in 2^24 times.
    pub(crate) fn has_marked(&self, lease: Lease, node: NodeId) -> bool {
        let epoch = lease.epoch.0;
        self.mark(lease.unit, node, epoch >> MARK_BITS) == epoch & ((1 << MARK_BITS) - 1)
    }

    /// A number below 1024 for a result. A node cannot know it, before it sends the result or
    /// after.
    pub(crate) fn draw(&self, lease: Lease, node: NodeId) -> u64 {
        self.hash(DRAW, lease.unit, node, lease.epoch.0) >> 54
    }
}
