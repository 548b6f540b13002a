//! What reaches the driver, from sessions, clients, the resolver and the server.

use super::sessions::SessionHandle;
use bytes::Bytes;
use tessera_core::{Arrived, Caller, Census, Input, RequestId, SessionId};
use tessera_protocol::client::Response;
use tessera_protocol::job::JobSpec;
use tessera_protocol::status::JobSummary;
use tessera_protocol::{BlobHash, FrameNumber, JobId};
use tokio::sync::{OwnedSemaphorePermit, oneshot};

/// One event.
pub(crate) enum Event {
    /// For the core as it is.
    Input(Box<Input>),
    /// A node's session begins; its input is the join.
    Joined { handle: SessionHandle, input: Box<Input> },
    /// A result has arrived, whole and checked.
    Result { session: SessionId, arrived: Arrived, bytes: Bytes, permit: OwnedSemaphorePermit },
    /// A client wants something done.
    Ask { ask: Ask, reply: oneshot::Sender<Response> },
    /// A client wants to know something.
    Question { question: Question, reply: oneshot::Sender<Response> },
    /// A watcher begins: a job's summary and all its finished frames; None for no such job.
    Progress { job: JobId, reply: oneshot::Sender<Option<(JobSummary, Vec<FrameNumber>)>> },
    /// A watcher goes on.
    Summary { job: JobId, reply: oneshot::Sender<Option<JobSummary>> },
    /// Whoever watches over the coordinator wants to see that the loop turns: answered at once,
    /// durable or not.
    Census(oneshot::Sender<Census>),
    /// Whoever audits wants the core's invariants checked: leases are running units, counters are
    /// what they count.
    Verify(oneshot::Sender<Result<(), String>>),
    /// Whoever sweeps wants to know which blobs jobs name.
    NamedBlobs(oneshot::Sender<Vec<BlobHash>>),
    /// The end.
    Stop,
}

/// What the core is to do for a client.
pub(crate) enum Ask {
    /// Accept a job.
    Submit { job: JobId, spec: Box<JobSpec>, caller: Caller },
    /// End a job.
    Cancel { job: JobId, caller: Caller },
    /// Pause a job, or let it go on.
    Pause { job: JobId, pause: bool, caller: Caller },
    /// Render the failed frames of a job again.
    Retry { job: JobId, caller: Caller },
    /// Forget a job that has ended.
    Forget { job: JobId, caller: Caller },
    /// Take a node out of work, or put it back.
    Drain { node: String, drain: bool },
}

impl Ask {
    pub(super) fn into_input(self, request: RequestId) -> Input {
        match self {
            Self::Submit { job, spec, caller } => Input::Submit { request, job, spec, caller },
            Self::Cancel { job, caller } => Input::Cancel { request, job, caller },
            Self::Pause { job, pause, caller } => Input::Pause { request, job, pause, caller },
            Self::Retry { job, caller } => Input::Retry { request, job, caller },
            Self::Forget { job, caller } => Input::Forget { request, job, caller },
            Self::Drain { node, drain } => Input::Drain { request, node, drain },
        }
    }
}

/// What a client may want to know of the core.
pub(crate) enum Question {
    /// All jobs.
    Jobs,
    /// One job.
    Job(JobId),
    /// A page of its frames.
    Frames { job: JobId, from: u32 },
    /// All nodes.
    Nodes,
}
