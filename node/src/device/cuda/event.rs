//! Messages to the supervisor of a CUDA device, from the node, the monitor and the compute thread.

use super::child::Heard;
use crate::device::DeviceUnit;
use crate::device::xid::XidAction;
use std::sync::mpsc::Sender;

/// A message to the supervisor of a device.
pub(super) enum Event {
    /// A unit to do.
    Submit(DeviceUnit),
    /// A message from the worker with that number.
    Heard(u64, Heard),
    /// The driver has reported an event of this device.
    Xid { code: u64, action: XidAction, meaning: String },
    /// Test the device before it gets more units, because a user's kernel has failed on it.
    Doubt,
    /// Give up device memory that no unit uses, for a compute job. Then send an answer, or drop the
    /// sender.
    GiveUp(Sender<()>),
    /// Stop and release everything.
    Stop,
}
