//! What a job wants of a node whatever the unit, so that the scheduler passes over all jobs that a
//! node can never serve without looking at one of them.
//!
//! A coarse sieve: a node that does not meet the wants may have no unit of the job; one that does
//! may still be refused by what changes often (free memory, bounds, failures).

use crate::nodes::roster::Node;
use crate::state::job::Job;
use std::sync::Arc;
use tessera_protocol::device::{DeviceInfo, DeviceKind};
use tessera_protocol::ids::Fingerprint;

/// Leading bits of a number of bytes that are told apart, so that a farm's jobs have few different
/// wants.
const BYTES_BITS: u32 = 4;

/// What a job wants of a node. Jobs of equal wants are kept together.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Wants {
    pool: Option<Arc<str>>,
    /// Fingerprint that the job is pinned to.
    fingerprint: Option<Fingerprint>,
    /// Whether only CUDA devices run it.
    cuda: bool,
    /// Bytes that a device must have at least, rounded down; 0 if unknown.
    pub(super) bytes: u64,
}

impl Wants {
    /// Returns what a job wants, if a device must have so many bytes for it.
    pub(crate) fn of(job: &Job, bytes: u64) -> Self {
        let dropped = (u64::BITS - bytes.leading_zeros()).saturating_sub(BYTES_BITS);
        Self {
            pool: job.spec().pool.as_deref().map(Arc::from),
            fingerprint: job.fingerprint(),
            cuda: job.kind().compute().is_some_and(|compute| compute.needs_cuda()),
            bytes: bytes >> dropped << dropped,
        }
    }

    /// Whether a node may have units of such jobs, as far as these wants say.
    pub(crate) fn are_met_by(&self, node: &Node) -> bool {
        let suits = |device: &DeviceInfo| {
            (!self.cuda || device.kind == DeviceKind::Cuda)
                && (device.memory_bytes == 0 || device.memory_bytes >= self.bytes)
        };
        node.is_of(self.pool.as_deref())
            && self.fingerprint.is_none_or(|pinned| pinned == node.fingerprint())
            && node.devices().iter().any(suits)
    }
}
