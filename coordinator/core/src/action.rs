//! What the core asks the shell to do, and when relative to the journal. Performs nothing.

use crate::input::{RequestId, SessionId};
use crate::journal::Record;
use crate::unit_state::UnitMove;
use tessera_protocol::client::Response;
use tessera_protocol::ids::{FrameNumber, JobId, Lease};
use tessera_protocol::node::CoordinatorToNode;

/// What came of the inputs since the last step was taken. Steps are performed in order; within one:
///
/// 1. the actions of [`Timing::BeforeRecords`], made durable;
/// 2. the records, made durable (`fdatasync`);
/// 3. the other actions, in order ([`Timing::AnyTime`] ones may go earlier, also while an older
///    step is being synced).
///
/// A shell that cannot do 1 or 2 (disk full) must wait and try again, or end the process: the core
/// already counts on it. Nothing is acknowledged meanwhile. Several steps may be synced together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Step {
    /// Durable facts in the order in which they happened.
    pub records: Vec<Record>,
    /// Actions in the order in which they were decided.
    pub actions: Vec<Action>,
    /// Units that have moved from one state to another, for the log; none unless they are watched
    /// ([`crate::Core::watch_units`]).
    pub moves: Vec<UnitMove>,
}

impl Step {
    /// Whether the step has neither records nor actions.
    pub fn is_empty(&self) -> bool {
        self.records.is_empty() && self.actions.is_empty()
    }
}

/// When an action may be performed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timing {
    /// Must be durable before the records of its step, which refer to it.
    BeforeRecords,
    /// Independent of the records: at any time, even while older steps are being synced.
    AnyTime,
    /// Only after the records of its step and of all earlier steps are durable, because it
    /// announces them.
    AfterRecords,
}

/// One action for the shell to perform.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Append the result's bytes to the spool of its frame: it is committed. At most one per unit
    /// and process. After a crash, a spool may hold bytes of a lease that no `UnitsCommitted`
    /// record names; they must be skipped.
    KeepResult {
        /// Session that delivered the result.
        session: SessionId,
        /// Lease that the result answers.
        lease: Lease,
    },
    /// Discard the result's bytes.
    DropResult {
        /// Session that delivered the result.
        session: SessionId,
        /// Lease that the result answers.
        lease: Lease,
    },
    /// Send a control message. A session that is gone loses it; nothing depends on its arrival.
    Send {
        /// Session of the receiving node.
        session: SessionId,
        /// Control message to send.
        message: CoordinatorToNode,
    },
    /// Close a session after what was sent. `SessionLost` may follow and is not needed.
    CloseSession {
        /// Session to close.
        session: SessionId,
        /// Reason that the node is told.
        reason: String,
    },
    /// Answer a client's request.
    Reply {
        /// Request that waits for the answer.
        request: RequestId,
        /// Answer to send.
        response: Response,
    },
    /// All units of the frame are committed: make its files. Answered by `FrameResolved` or
    /// `FrameResolveFailed`. Asked again after a restart.
    ResolveFrame {
        /// Job that the frame belongs to.
        job: JobId,
        /// Number of the complete frame.
        frame: FrameNumber,
    },
    /// All units of the frame's newest round are committed: find the tiles that are too noisy
    /// ([`crate::Core::frame_rounds`]). Answered by `RoundMeasured` or `FrameResolveFailed`. Asked
    /// again after a restart.
    MeasureFrame {
        /// Job that the frame belongs to.
        job: JobId,
        /// Number of the frame whose newest round is complete.
        frame: FrameNumber,
    },
    /// The files of the frame are durable: its spool may be deleted, and watchers may be told.
    FrameFinished {
        /// Job that the frame belongs to.
        job: JobId,
        /// Number of the finished frame.
        frame: FrameNumber,
    },
    /// The frame has failed for good: its spool may be deleted.
    FrameFailed {
        /// Job that the frame belongs to.
        job: JobId,
        /// Number of the failed frame.
        frame: FrameNumber,
    },
    /// The end of the job is durable: spools of its unfinished frames may be deleted, and watchers
    /// may be told.
    JobEnded {
        /// Job that was finished, failed or cancelled.
        job: JobId,
    },
    /// Log an error: the core found a contradiction in its own state. The core continues.
    Fault {
        /// Kind of fault, as text for the log.
        what: &'static str,
    },
}

impl Action {
    /// Returns when the action may be performed.
    pub fn timing(&self) -> Timing {
        match self {
            Self::KeepResult { .. } => Timing::BeforeRecords,
            Self::DropResult { .. } | Self::Fault { .. } => Timing::AnyTime,
            _ => Timing::AfterRecords,
        }
    }
}
