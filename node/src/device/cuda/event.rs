//! What the supervisor of a CUDA device is told, by the node, the monitor and the compute thread.

use super::child::Heard;
use crate::device::DeviceUnit;
use crate::device::xid::XidAction;
use std::sync::mpsc::Sender;

/// A message to the supervisor of a device.
pub(super) enum Event {
    /// A unit to do.
    Submit(DeviceUnit),
    /// A message from the worker of that number.
    Heard(u64, Heard),
    /// The driver has reported an event of this device.
    Xid { code: u64, action: XidAction, meaning: String },
    /// Test the device before it gets more: a user's kernel has failed on it.
    Doubt,
    /// Give up what no unit uses of the device's memory, for a compute job; then say so, or drop
    /// the way to say it.
    GiveUp(Sender<()>),
    /// Let everything go.
    Stop,
}
