//! Events that reach the shell of a node from its tasks, its devices and its owner.

use crate::agent::FrameKey;
use crate::compute::PreparedCompute;
use crate::device::{DeviceError, PreparedFrame, UnitOutput};
use crate::status::NodeError;
use quinn::Connection;
use std::sync::Arc;
use std::time::Duration;
use tessera_protocol::Lease;
use tessera_protocol::node::{CoordinatorToNode, Failure, Heartbeat, NodeToCoordinator};
use tokio::sync::mpsc;

/// A frame that units can be started on.
#[derive(Clone, Debug)]
pub(super) enum Prepared {
    /// A frame of a render job.
    Scene(Arc<PreparedFrame>),
    /// A frame of a compute job.
    Compute(Arc<PreparedCompute>),
}

/// A session that stands.
#[derive(Debug)]
pub(super) struct Session {
    /// Counts up from 1; tells its events from those of sessions before it.
    pub(super) number: u64,
    pub(super) connection: Connection,
    /// Dropped to end the control stream.
    pub(super) outgoing: mpsc::Sender<NodeToCoordinator>,
    pub(super) heartbeats: mpsc::Sender<Heartbeat>,
}

/// Something has happened.
#[derive(Debug)]
pub(super) enum Event {
    /// A session stands.
    Connected(Session),
    /// It is gone.
    Lost(u64),
    /// There will be none any more.
    Hopeless(NodeError),
    /// The coordinator says something.
    Message { session: u64, message: CoordinatorToNode },
    /// A frame is prepared, or cannot be.
    Frame { frame: FrameKey, result: Result<Prepared, Failure>, took: Duration },
    /// A device has ended a unit.
    Rendered { device: usize, lease: Lease, result: Result<UnitOutput, DeviceError> },
    /// The output of a unit has been waiting for room on the disk; [`Self::Stored`] follows when it
    /// ends.
    NoRoom { lease: Lease, problem: String },
    /// The output of a unit is on disk, or will never be.
    Stored { lease: Lease, result: Result<(), Failure> },
    /// A result was not taken by the coordinator's transport.
    NotOffered { session: u64, lease: Lease },
    /// A result in the outbox cannot be read any more.
    ResultLost { lease: Lease, problem: String },
}

/// What the owner of a node may ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Command {
    /// Finish what has begun, give back the rest, leave.
    Drain,
    /// End what has begun at the next sample, hand that in, leave.
    HandIn,
    /// Leave at once.
    Stop,
}
