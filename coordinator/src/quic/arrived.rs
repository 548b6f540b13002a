//! What the core is told of a result that a node has made.

use crate::spool::SpoolKey;
use tessera_core::{Arrived, ResultShape};
use tessera_protocol::Lease;
use tessera_protocol::node::ResultHeader;

/// Describes a result of this shape for the core.
pub(super) fn describe(header: &ResultHeader, shape: ResultShape) -> Arrived {
    Arrived {
        lease: header.lease,
        hash: header.hash,
        shape,
        device: header.device,
        device_micros: header.device_micros,
        waited_micros: header.waited_micros,
        device_bytes: header.device_bytes,
    }
}

/// Returns the spool of a lease's result.
pub(super) fn frame_of(lease: Lease) -> SpoolKey {
    SpoolKey { job: lease.unit.job, frame: lease.unit.frame }
}
