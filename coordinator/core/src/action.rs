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
    /// Durable facts, in order.
    pub records: Vec<Record>,
    /// What to do, in order.
    pub actions: Vec<Action>,
    /// Units that have moved from one state to another, for the log; none unless they are watched
    /// ([`crate::Core::watch_units`]).
    pub moves: Vec<UnitMove>,
}

impl Step {
    /// Nothing to do.
    pub fn is_empty(&self) -> bool {
        self.records.is_empty() && self.actions.is_empty()
    }
}

/// When an action may be performed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timing {
    /// Durable before the records of its step are: they speak of it.
    BeforeRecords,
    /// Whenever it suits.
    AnyTime,
    /// Once the records of its step, and of all steps before, are durable: it tells somebody of
    /// them.
    AfterRecords,
}

/// One thing to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Append the result's bytes to the spool of its frame: it is committed. At most one per unit
    /// and process; after a crash, bytes of a lease that no `UnitsCommitted` record names may stand
    /// in the spool and are to be skipped.
    KeepResult {
        /// Whose result.
        session: SessionId,
        /// Which.
        lease: Lease,
    },
    /// Forget the result's bytes.
    DropResult {
        /// Whose result.
        session: SessionId,
        /// Which.
        lease: Lease,
    },
    /// Send a control message. A session that is gone loses it; nothing depends on its arrival.
    Send {
        /// To whom.
        session: SessionId,
        /// What.
        message: CoordinatorToNode,
    },
    /// Close a session after what was sent. `SessionLost` may follow and is not needed.
    CloseSession {
        /// Which.
        session: SessionId,
        /// Why.
        reason: String,
    },
    /// Answer a client.
    Reply {
        /// Which request.
        request: RequestId,
        /// The answer.
        response: Response,
    },
    /// All units of the frame are in: make its files. Answered by `FrameResolved` or
    /// `FrameResolveFailed`. Asked again after a restart.
    ResolveFrame {
        /// The job.
        job: JobId,
        /// The frame.
        frame: FrameNumber,
    },
    /// All units of the frame's newest round are in: find out which of its tiles are too noisy
    /// ([`crate::Core::frame_rounds`]). Answered by `RoundMeasured` or `FrameResolveFailed`. Asked
    /// again after a restart.
    MeasureFrame {
        /// The job.
        job: JobId,
        /// The frame.
        frame: FrameNumber,
    },
    /// The frame is finished, durably: its spool may go; watchers may be told.
    FrameFinished {
        /// The job.
        job: JobId,
        /// The frame.
        frame: FrameNumber,
    },
    /// The frame cannot finish: its spool may go.
    FrameFailed {
        /// The job.
        job: JobId,
        /// The frame.
        frame: FrameNumber,
    },
    /// The job has ended, durably: spools of its frames that are not finished may go; watchers may
    /// be told.
    JobEnded {
        /// The job.
        job: JobId,
    },
    /// Log it as an error: something happened that cannot. The core goes on.
    Fault {
        /// The kind of fault, in words.
        what: &'static str,
    },
}

impl Action {
    /// When it may be performed.
    pub fn timing(&self) -> Timing {
        match self {
            Self::KeepResult { .. } => Timing::BeforeRecords,
            Self::DropResult { .. } | Self::Fault { .. } => Timing::AnyTime,
            _ => Timing::AfterRecords,
        }
    }
}
