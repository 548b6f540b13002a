//! Requests of clients, their answers, and enrolment.

use crate::access::{
    ApiTokenScope, AuthorityStatus, DeniedIdentity, Keep, LogReport, MemberSummary, TokenScope,
    TokenSummary,
};
use crate::cost::{CostReport, CostRules};
use crate::explain::{Explanation, Subject};
use crate::frames::FrameSet;
use crate::ids::{BlobHash, JobId, NodeId};
use crate::job::{JobEdit, RawJobSpec};
use crate::live::{LiveTile, Watched};
use crate::logs::{LogPage, LogQuery};
use crate::news::JobsNews;
use crate::preset::{Preset, PresetSummary};
use crate::selection::{JobPage, JobQuery, JobsChange, JobsChanged};
use crate::status::{FrameStatus, JobDetail, JobSummary, NodeSummary};
use crate::usage::{OwnerUsage, Swept};
use serde::{Deserialize, Serialize};

pub use crate::request_error::RequestError;
pub use crate::role::Role;

/// A request of a client to the coordinator.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Request {
    /// Asks which of these blobs the coordinator does not have. Answered by [`Response::Blobs`].
    MissingBlobs(Vec<BlobHash>),
    /// Submits a job. Answered by [`Response::Accepted`] once the job is durable. The same id and
    /// spec can be submitted again.
    Submit {
        /// Id that the client gives to the job.
        job: JobId,
        /// Spec of the job, boxed because it is large.
        spec: Box<RawJobSpec>,
    },
    /// Asks for jobs, page by page. Answered by [`Response::Jobs`].
    Jobs(JobQuery),
    /// Asks for one job. Answered by [`Response::Job`].
    Job(JobId),
    /// Asks for frames of a job, in order, from a position on. Answered by [`Response::Frames`]
    /// with at most [`crate::limits::FRAME_PAGE_MAX`] frames.
    Frames {
        /// Job of the frames.
        job: JobId,
        /// Position of the first frame among the job's frames.
        from: u32,
    },
    /// Asks for the job's summary now and after each change, at most ten times per second, until
    /// the job has ended. Answered by a sequence of [`Response::Progress`].
    Watch(JobId),
    /// Asks for all nodes. Answered by [`Response::Nodes`].
    Nodes,
    /// Drains a node, or gives it work again; also an absent one. Answered by [`Response::Nodes`]
    /// with the node.
    Drain {
        /// Id or name of the node.
        node: String,
        /// True drains the node; false ends the drain.
        drain: bool,
        /// Whether a drained node also leaves, once it has finished its units.
        leave: bool,
    },
    /// Creates a join token. Answered by [`Response::Token`].
    CreateToken(TokenScope),
    /// Checks the store against its own records. Answered by [`Response::Audit`].
    Audit,
    /// Asks for tokens in the order of their names, from a position on. Answered by
    /// [`Response::Tokens`] with at most [`crate::access::TOKEN_PAGE_MAX`] tokens: to admins with
    /// all, to others with those that act for themselves.
    Tokens {
        /// Position of the first token.
        from: u32,
    },
    /// Revokes a token: nothing can join, and nobody is signed in, with it any more. Answered by
    /// [`Response::Done`].
    RevokeToken {
        /// Id of the token, or a beginning of it that no other token has.
        id: String,
    },
    /// Shuts an identity out at once. Answered by [`Response::Denied`] with the identity.
    Deny {
        /// `node:NAME`, `node:UUID`, `user:NAME`, `#` and the identity's number, or only a name.
        identity: String,
        /// Reason, for people who ask later.
        reason: String,
    },
    /// Lets a denied identity in again. Answered by [`Response::Denied`] with the identity.
    Allow {
        /// Identity, written as for `Deny`.
        identity: String,
    },
    /// Asks for all denied identities. Answered by [`Response::Denied`].
    Denied,
    /// Checks the chain of the audit log and asks for its newest entries. Answered by
    /// [`Response::Log`].
    Log {
        /// Number of entries, at most [`crate::access::LOG_PAGE_MAX`].
        last: u32,
    },
    /// Asks for the farm's authority. Answered by [`Response::Authority`].
    Authority,
    /// Makes a new authority. The farm trusts the old one beside it for a time. Answered by
    /// [`Response::Authority`].
    RotateAuthority {
        /// How long the old authority stays trusted in seconds, at most 62 days. None: until every
        /// certificate that it signed has expired or is renewed.
        overlap_secs: Option<u64>,
    },
    /// Asks for a backup of the whole farm, without its keys. Answered by a sequence of
    /// [`Response::Backup`], then the end of the stream.
    Backup,
    /// Asks what the kernel of a compute job printed so far, and what compilers said of it.
    /// Answered by [`Response::KernelText`], to the job's owner and to operators.
    KernelText(JobId),
    /// Asks what each owner has of the farm. Answered by [`Response::Usage`]: to operators with all
    /// owners, to others with themselves.
    Usage,
    /// Cancels, pauses, resumes, retries or forgets one job or many in one step. Answered by
    /// [`Response::Changed`], also if some or all of them were refused.
    ChangeJobs(Box<JobsChange>),
    /// Cancels and deletes all jobs of an owner with their frames, and deletes uploaded files of
    /// the owner that no other open job names. Answered by [`Response::Swept`].
    Sweep {
        /// Owner: the name, or `#` and the number of the identity.
        owner: String,
        /// True only counts what would be deleted.
        dry_run: bool,
    },
    /// Asks for all members, in the order of their numbers, from a position on. Answered by
    /// [`Response::Members`] with at most [`crate::access::MEMBER_PAGE_MAX`] members.
    Members {
        /// Position of the first member.
        from: u32,
    },
    /// Decides which of two copies of an identity counts from now on. Answered by
    /// [`Response::Members`] with the member.
    KeepMember {
        /// Member: its name, its node id, or `#` and its number.
        member: String,
        /// The copy to trust.
        keep: Keep,
    },
    /// Takes a name away from its holder: the holder's certificates no longer count, and the name
    /// is free. Answered by [`Response::Members`] with the member.
    RemoveMember {
        /// Member, written as for `KeepMember`.
        member: String,
    },
    /// Takes an absent node off the list of nodes. Its identity stays valid. Answered by
    /// [`Response::Nodes`] with the node.
    RemoveNode {
        /// Id or name of the node.
        node: String,
    },
    /// Edits a job that has not ended. Answered by [`Response::Done`].
    EditJob {
        /// Job to change.
        job: JobId,
        /// What is to be different.
        edit: Box<JobEdit>,
    },
    /// Creates a token for HTTP requests. Answered by [`Response::Token`].
    CreateApiToken(ApiTokenScope),
    /// Asks for a link that signs a browser in as the asking identity, once. Answered by
    /// [`Response::WebLink`].
    WebLink,
    /// Asks for live tiles of a frame or a job: those that are kept, then further ones as they
    /// come, until the frame or the job has ended. Answered by a sequence of [`Response::Live`].
    Live(Watched),
    /// Asks why a job, a frame or a node stands as it does, and what would help. Answered by
    /// [`Response::Explained`].
    Explain(Subject),
    /// Asks for lines of a job, to its owner and to operators, or of a node, to operators. Answered
    /// by [`Response::Logs`].
    Logs(Box<LogQuery>),
    /// Asks for the same, and for further lines as they come, until the job has ended or is gone.
    /// Answered by a sequence of [`Response::Logs`].
    FollowLogs(Box<LogQuery>),
    /// Asks for news of all jobs: those that are open, and then what changes, until the
    /// coordinator stops. Answered by a sequence of [`Response::News`], some without news.
    WatchAll {
        /// Jobs that have ended at this time or later are listed too, in seconds since the Unix
        /// epoch; None lists only open ones.
        since: Option<u64>,
    },
    /// Sends a test event to a target of the file of events. Answered by [`Response::Done`] once it
    /// was delivered, or by the reason why it was not.
    TestTarget {
        /// Name of the target.
        target: String,
    },
    /// Asks what owners have spent, and how far budgets are used. Answered by [`Response::Costs`]:
    /// to operators with all owners, to others with themselves and the budgets that they spend of.
    Costs {
        /// Month in UTC, such as `2026-11`; None for this month.
        month: Option<String>,
    },
    /// Asks what device time costs and what may be spent. Answered by [`Response::CostRules`], to
    /// operators.
    CostRules,
    /// Sets what device time costs and what may be spent, from now on. Answered by
    /// [`Response::Done`].
    SetCostRules(Box<CostRules>),
    /// Asks for all presets. Answered by [`Response::Presets`].
    Presets,
    /// Asks for a preset. Answered by [`Response::Preset`].
    Preset {
        /// Its name.
        name: String,
    },
    /// Publishes a template for all who submit, or takes it away. Answered by [`Response::Done`].
    SetPreset {
        /// Name of the preset; see [`Preset::name`].
        name: String,
        /// The template; None takes the preset away.
        text: Option<String>,
    },
}

/// The coordinator's answer to a [`Request`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Response {
    /// The missing blobs of [`Request::MissingBlobs`], in the order of the request.
    Blobs(Vec<BlobHash>),
    /// The job is accepted and durable.
    Accepted(JobId),
    /// One page of jobs.
    Jobs(JobPage),
    /// Answers a request for one job.
    Job(Box<JobDetail>),
    /// One page of frames.
    Frames(Vec<FrameStatus>),
    /// State of a watched job.
    Progress(Box<Progress>),
    /// Answers a request for all nodes.
    Nodes(Vec<NodeSummary>),
    /// The request is done, and its effect is durable.
    Done,
    /// The new token's text. It is shown only once; the coordinator keeps only a hash.
    Token(String),
    /// Result of the audit.
    Audit(AuditReport),
    /// The request was not done.
    Error(RequestError),
    /// One page of tokens.
    Tokens(Vec<TokenSummary>),
    /// Answers a request for the deny-list.
    Denied(Vec<DeniedIdentity>),
    /// Answers a request for the audit log.
    Log(LogReport),
    /// State of the farm's authority.
    Authority(AuthorityStatus),
    /// Next bytes of a backup, at most a quarter of a megabyte.
    Backup(Vec<u8>),
    /// Text of a job's kernel in the order of its units, at most
    /// [`crate::limits::JOB_TEXT_BYTES_MAX`] bytes and a last line. It may have control characters.
    KernelText(String),
    /// What owners have of the farm, by name.
    Usage(Vec<OwnerUsage>),
    /// What was done to everything of one owner, or would be.
    Swept(Swept),
    /// One page of members, or the member that was changed.
    Members(Vec<MemberSummary>),
    /// What was done to the selected jobs, or would be.
    Changed(JobsChanged),
    /// Address of the page that signs a browser in. It works once, for two minutes.
    WebLink(String),
    /// A live tile. Some may be missing where they come faster than the client reads.
    Live(Box<LiveTile>),
    /// An explanation.
    Explained(Box<Explanation>),
    /// Lines of a log.
    Logs(Box<LogPage>),
    /// News of all jobs.
    News(Box<JobsNews>),
    /// What owners have spent.
    Costs(Box<CostReport>),
    /// What device time costs and what may be spent.
    CostRules(Box<CostRules>),
    /// All presets, by name.
    Presets(Vec<PresetSummary>),
    /// A preset.
    Preset(Box<Preset>),
}

/// State of a job, for a watcher.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    /// Summary of the job.
    pub summary: JobSummary,
    /// Frames that were finished since the last message.
    pub finished: FrameSet,
}

/// Result of an audit of the store.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditReport {
    /// Number of records that were read.
    pub records: u64,
    /// Number of jobs in the journal.
    pub jobs: u64,
    /// Number of committed units.
    pub units_committed: u64,
    /// Number of units that were committed more than once. It must be 0.
    pub units_committed_twice: u64,
    /// Number of finished frames.
    pub frames: u64,
    /// Device time that was spent for all jobs, in milliseconds, also for forgotten ones.
    pub device_millis: u64,
    /// Faults, one per line. Empty if there are none.
    pub problems: Vec<String>,
}

/// Asks for a certificate with a join token.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnrolRequest {
    /// Secret of the join token.
    pub secret: Vec<u8>,
    /// A PKCS #10 certificate request, DER. Only its public key is used.
    pub certificate_request: Vec<u8>,
    /// Id that a node asks for, which it keeps in its data folder; None for a user.
    pub node: Option<NodeId>,
    /// Name of the node or user.
    pub name: String,
}

/// Answers an [`EnrolRequest`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum EnrolReply {
    /// The chain to present from now on (DER): the new certificate, then the authority's.
    Certificate(Vec<Vec<u8>>),
    /// Says why there is no certificate, and what to do.
    Refused(String),
}
