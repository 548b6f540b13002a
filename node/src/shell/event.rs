//! Events that reach the shell of a node from its tasks, its devices and its owner.

use crate::agent::FrameKey;
use crate::compute::PreparedCompute;
use crate::device::{DeviceError, PreparedFrame, UnitOutput};
use crate::frame_memory::{Claim, NotPrepared};
use crate::piece::PreparedPiece;
use crate::shell::preparation::Preparation;
use crate::status::NodeError;
use quinn::Connection;
use std::sync::Arc;
use std::time::Duration;
use tessera_protocol::Lease;
use tessera_protocol::live::LiveTile;
use tessera_protocol::node::{CoordinatorToNode, Failure, Heartbeat, NodeToCoordinator};
use tokio::sync::mpsc;

/// A prepared frame, on which units can be started, and the memory that it takes.
#[derive(Clone, Debug)]
pub(super) struct Prepared {
    pub(super) frame: AnyFrame,
    pub(super) claim: Claim,
    pub(super) preparation: Preparation,
}

/// A prepared frame of any kind.
#[derive(Clone, Debug)]
pub(super) enum AnyFrame {
    /// A frame of a render job.
    Scene(Arc<PreparedFrame>),
    /// A frame of a compute job.
    Compute(Arc<PreparedCompute>),
    /// What one finishing unit reads.
    Piece(Arc<PreparedPiece>),
}

/// A session with the coordinator.
#[derive(Debug)]
pub(super) struct Session {
    /// Number of the session, counted from 1. It distinguishes its events from those of earlier
    /// sessions.
    pub(super) number: u64,
    pub(super) connection: Connection,
    /// Channel of the control stream. Dropping it ends the stream.
    pub(super) outgoing: mpsc::Sender<NodeToCoordinator>,
    pub(super) heartbeats: mpsc::Sender<Heartbeat>,
    /// Live tiles on their way; full where they come faster than the line takes them.
    pub(super) live: mpsc::Sender<LiveTile>,
}

/// An event for the shell.
#[derive(Debug)]
pub(super) enum Event {
    /// A session has begun.
    Connected(Session),
    /// A session was lost.
    Lost(u64),
    /// There will be no session any more.
    Hopeless(NodeError),
    /// A message from the coordinator.
    Message { session: u64, message: CoordinatorToNode },
    /// A frame is prepared, or could not be prepared. The number is that of the preparation.
    Frame { frame: FrameKey, number: u64, result: Result<Prepared, NotPrepared>, took: Duration },
    /// A device has ended a unit.
    Rendered { device: usize, lease: Lease, result: Result<UnitOutput, DeviceError> },
    /// The kernel of a compute unit has printed something.
    KernelText { lease: Lease, text: String },
    /// The output of a unit waits for room on the disk. [`Self::Stored`] follows at the end of the
    /// wait.
    NoRoom { lease: Lease, problem: String },
    /// The output of a unit is on disk, or could not be stored.
    Stored { lease: Lease, result: Result<(), Failure> },
    /// A result was not delivered.
    NotOffered { session: u64, lease: Lease },
    /// A result in the outbox cannot be read any more.
    ResultLost { lease: Lease, problem: String },
}

/// A command of the node's owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Command {
    /// Finish the units that have begun, return the others, and leave for this reason.
    Leave(String),
    /// End the units that have begun at the next sample, hand these samples in, and leave.
    HandIn,
    /// Leave at once, without finishing units.
    Stop,
}
