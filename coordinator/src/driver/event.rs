//! Events that reach the driver from sessions, clients, the resolver and the server.

use super::present::Present;
use super::sessions::SessionHandle;
use crate::finish_inputs::InputsOrder;
use crate::result_memory::ResultPermit;
use crate::spool::ResultObject;
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tessera_core::{
    Arrived, Caller, Census, Input, JobUsage, JobsPage, JobsTally, Owner, Quarantine, RequestId,
    Selection, SessionId, Sweep,
};
use tessera_protocol::client::Response;
use tessera_protocol::cost::CostRules;
use tessera_protocol::explain::Subject;
use tessera_protocol::job::{JobEdit, JobSpec};
use tessera_protocol::live::{LiveTile, Watched};
use tessera_protocol::selection::JobChange;
use tessera_protocol::status::JobSummary;
use tessera_protocol::{BlobHash, FrameNumber, JobId, Lease, NodeId};
use tokio::sync::{OwnedSemaphorePermit, oneshot};

/// A result that has arrived.
pub(crate) enum Taken {
    /// Its bytes are what its header says.
    Whole(Arrived, Bytes),
    /// So many bytes of it are in an object elsewhere, from a position on. Who reads them checks
    /// them.
    Stored(Arrived, u32, (ResultObject, u32)),
    /// They are not, for this reason.
    Damaged(Lease, String),
}

/// An event for the driver.
pub(crate) enum Event {
    /// An input that is passed to the core unchanged.
    Input(Box<Input>),
    /// A node's session begins. Its input is the join.
    Joined { handle: SessionHandle, input: Box<Input> },
    /// Results of one stream have arrived, and were checked.
    Results { session: SessionId, results: Vec<Taken>, permit: ResultPermit },
    /// A unit of a compute job has printed something.
    KernelText { session: SessionId, lease: Lease, text: String },
    /// A live tile of a watched frame has arrived. The place is free again when it is dropped.
    LiveTile { session: SessionId, tile: Box<LiveTile>, place: OwnedSemaphorePermit },
    /// All that is watched live has changed to this.
    Watched(Vec<Watched>),
    /// A client asks for a change.
    Ask { ask: Ask, reply: oneshot::Sender<Response> },
    /// A client asks for information.
    Question { question: Question, reply: oneshot::Sender<Response> },
    /// A watcher begins and needs the job's summary and all its finished frames. The answer is None
    /// if there is no such job.
    Progress { job: JobId, reply: oneshot::Sender<Option<(JobSummary, Vec<FrameNumber>)>> },
    /// A watcher needs the job's summary again.
    Summary { job: JobId, reply: oneshot::Sender<Option<JobSummary>> },
    /// A supervisor checks that the loop runs. The answer comes at once, even if the state in it is
    /// not durable.
    Census(oneshot::Sender<Census>),
    /// Monitoring asks for counts of a part of the jobs, of those after one. The answer comes at
    /// once, even if the state in it is not durable.
    Tally { after: Option<JobId>, reply: oneshot::Sender<(JobsTally, Option<JobId>)> },
    /// Monitoring asks for everything else. The answer comes at once, too.
    Present(oneshot::Sender<Box<Present>>),
    /// Somebody asks which nodes and devices are quarantined or in doubt. The answer comes at once,
    /// too.
    Quarantines(oneshot::Sender<Vec<Quarantine>>),
    /// An audit asks for a check of the core's invariants, for example that every counter is right.
    Verify(oneshot::Sender<Result<(), String>>),
    /// Somebody asks what the jobs of every owner have.
    Usage(oneshot::Sender<BTreeMap<Owner, JobUsage>>),
    /// Somebody asks about blobs.
    AboutBlobs(BlobQuestion),
    /// A node offers results that it can store. The answer is whether it should; if not, the core
    /// has said so of each.
    Offered { session: SessionId, results: Vec<Arrived>, reply: oneshot::Sender<bool> },
    /// A node asks for what a finishing unit reads. None if it does not hold the lease.
    Inputs { session: SessionId, lease: Lease, reply: oneshot::Sender<Option<InputsOrder>> },
    /// The node of a session is to ask for an order for the files of a frame.
    MakeFiles { session: SessionId, order: u64 },
    /// Stops the driver, because the coordinator stops.
    Stop,
}

/// A question about blobs.
pub(crate) enum BlobQuestion {
    /// The sweeper asks which blobs are named by jobs.
    Named(oneshot::Sender<Vec<BlobHash>>),
    /// A check of uploads asks which files open jobs name. The answer comes at once.
    NamedFiles(oneshot::Sender<Arc<BTreeSet<BlobHash>>>),
    /// A sweep asks for the files and frames of all jobs, also of those that have ended, but not
    /// for those of one owner. The answer comes at once.
    Known { without: Option<Owner>, reply: oneshot::Sender<BTreeSet<BlobHash>> },
    /// A sweep asks for the files of the finished frames of an owner's jobs.
    FrameFiles { of: Owner, reply: oneshot::Sender<Vec<BlobHash>> },
    /// A transport asks whether a caller is allowed to read a blob, as a file of this frame.
    MayRead {
        hash: BlobHash,
        of: Option<(JobId, FrameNumber)>,
        caller: Caller,
        reply: oneshot::Sender<bool>,
    },
}

/// A change that a client asks the core for.
pub(crate) enum Ask {
    /// Submits a job whose blobs are stored.
    Submit { job: JobId, spec: Box<JobSpec>, caller: Caller },
    /// Cancels, pauses, resumes, retries or forgets jobs.
    ChangeJobs { change: JobChange, selection: Box<Selection>, dry_run: bool, caller: Caller },
    /// Deletes all jobs of an owner.
    Sweep { owner: Owner, sweep: Sweep, caller: Caller },
    /// Drains a node, or gives it work again.
    Drain { node: String, drain: bool, leave: bool, by: String },
    /// Takes an absent node off the list.
    RemoveNode { node: String, by: String },
    /// Takes a node off the list whose identity is void.
    RetireNode { node: NodeId, why: String },
    /// Sets what device time costs and what may be spent.
    SetCostRules { rules: Box<CostRules>, by: String },
    /// Publishes a template, or takes it away.
    SetPreset { preset: (String, Option<String>), by: String },
    /// Edits a job that has not ended.
    EditJob { job: JobId, edit: Box<JobEdit>, caller: Caller },
}

impl Ask {
    pub(super) fn into_input(self, request: RequestId) -> Input {
        match self {
            Self::Submit { job, spec, caller } => Input::Submit { request, job, spec, caller },
            Self::ChangeJobs { change, selection, dry_run, caller } => {
                Input::ChangeJobs { request, change, selection, dry_run, caller }
            }
            Self::Sweep { owner, sweep, caller } => Input::Sweep { request, owner, sweep, caller },
            Self::Drain { node, drain, leave, by } => {
                Input::Drain { request, node, drain, leave, by }
            }
            Self::RemoveNode { node, by } => Input::RemoveNode { request, node, by },
            Self::SetCostRules { rules, by } => Input::SetCostRules { request, rules, by },
            Self::SetPreset { preset, by } => Input::SetPreset { request, preset, by },
            Self::RetireNode { node, why } => Input::RetireNode { request, node, why },
            Self::EditJob { job, edit, caller } => Input::EditJob { request, job, edit, caller },
        }
    }
}

/// Information that a client asks the core for.
pub(crate) enum Question {
    /// A page of jobs.
    Jobs { selection: Box<Selection>, page: JobsPage },
    /// Details of one job.
    Job(JobId),
    /// Frames of a job from a position on, at most so many.
    Frames { job: JobId, from: u32, most: u32 },
    /// One frame of a job.
    Frame { job: JobId, frame: FrameNumber },
    /// Text of a job's kernel, for its owner or an admin.
    KernelText { job: JobId, caller: Caller },
    /// Details of one job, for its owner or an admin.
    Owned { job: JobId, caller: Caller },
    /// Summaries of all nodes.
    Nodes,
    /// What owners have spent in a month, or in this one.
    Costs { month: Option<String> },
    /// What device time costs and what may be spent.
    CostRules,
    /// The templates that admins have published.
    Presets,
    /// One of them.
    Preset(String),
    /// Why a job, a frame or a node stands as it does.
    Explain(Subject),
}
