//! Requests of clients, their answers, and enrolment.

use crate::access::{AuthorityStatus, DeniedIdentity, LogReport, TokenScope, TokenSummary};
use crate::frames::FrameSet;
use crate::ids::{BlobHash, JobId, NodeId};
use crate::job::RawJobSpec;
use crate::status::{FrameStatus, JobDetail, JobSummary, NodeSummary};
use serde::{Deserialize, Serialize};

pub use crate::role::Role;

/// What a client may ask.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Request {
    /// Which of these blobs are not here? Answered by [`Response::Blobs`].
    MissingBlobs(Vec<BlobHash>),
    /// Accept this job. Answered by [`Response::Accepted`] once durable; the same id and spec again
    /// is accepted again.
    Submit {
        /// The client's id for it.
        job: JobId,
        /// What is asked for; boxed because it is large.
        spec: Box<RawJobSpec>,
    },
    /// All jobs, newest last. Answered by [`Response::Jobs`].
    Jobs,
    /// One job. Answered by [`Response::Job`].
    Job(JobId),
    /// Frames of a job, in order, from the given position among its frames on. Answered by
    /// [`Response::Frames`] of at most [`crate::limits::FRAME_PAGE_MAX`].
    Frames {
        /// Which job.
        job: JobId,
        /// Position of the first frame wanted.
        from: u32,
    },
    /// The job's summary now and at each change (at most ten a second), until it has ended. A
    /// sequence of [`Response::Progress`].
    Watch(JobId),
    /// End a job; a repeated cancel is harmless. Answered by [`Response::Done`].
    Cancel(JobId),
    /// All nodes. Answered by [`Response::Nodes`].
    Nodes,
    /// No new work for a node, or work again. Answered by [`Response::Done`].
    Drain {
        /// Id or name of the node.
        node: String,
        /// Drain, or end the draining.
        drain: bool,
    },
    /// A join token. Answered by [`Response::Token`].
    CreateToken(TokenScope),
    /// Checks the store against its own records: [`Response::Audit`].
    Audit,
    /// Tokens in the order of their names, from this position on. Answered by [`Response::Tokens`]
    /// of at most [`crate::access::TOKEN_PAGE_MAX`].
    Tokens {
        /// Position of the first wanted.
        from: u32,
    },
    /// A token lets nobody in any more. Answered by [`Response::Done`].
    RevokeToken {
        /// Its id, or the beginning of it that no other has.
        id: String,
    },
    /// Shuts an identity out, at once. Answered by [`Response::Denied`] with what was shut out.
    Deny {
        /// `node:NAME`, `node:UUID`, `user:NAME`, or a name alone: a node's if one has it, else a
        /// person's.
        identity: String,
        /// Why, for whoever asks later.
        reason: String,
    },
    /// Lets it in again. Answered by [`Response::Denied`] with what was let in.
    Allow {
        /// As for `Deny`.
        identity: String,
    },
    /// All identities that are shut out. Answered by [`Response::Denied`].
    Denied,
    /// The audit log: its chain is checked, and its newest entries given. Answered by
    /// [`Response::Log`].
    Log {
        /// How many entries, at most [`crate::access::LOG_PAGE_MAX`].
        last: u32,
    },
    /// The farm's authority. Answered by [`Response::Authority`].
    Authority,
    /// A new authority, the old one trusted beside it for a time. Answered by
    /// [`Response::Authority`].
    RotateAuthority {
        /// For so many seconds, at most 62 days; None: until every certificate that the old one has
        /// signed is over or renewed.
        overlap_secs: Option<u64>,
    },
    /// Forget a job that has ended, with its frames. Answered by [`Response::Done`].
    Forget(JobId),
    /// The farm as it is now, whole but for its keys. A sequence of [`Response::Backup`], then the
    /// stream's end.
    Backup,
    /// No more work for a job until it is resumed; a repeated pause is harmless. Answered by
    /// [`Response::Done`].
    Pause(JobId),
    /// A paused job goes on; one that is not paused does anyway. Answered by [`Response::Done`].
    Resume(JobId),
    /// The failed frames of a job are rendered again; finished ones stay. Answered by
    /// [`Response::Done`].
    Retry(JobId),
}

/// What the coordinator answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Response {
    /// The missing ones of [`Request::MissingBlobs`], in the order asked.
    Blobs(Vec<BlobHash>),
    /// The job is durable.
    Accepted(JobId),
    /// Rows.
    Jobs(Vec<JobSummary>),
    /// One job.
    Job(Box<JobDetail>),
    /// A page of frames.
    Frames(Vec<FrameStatus>),
    /// A change.
    Progress(Box<Progress>),
    /// Rows.
    Nodes(Vec<NodeSummary>),
    /// It is done, and durable.
    Done,
    /// The token, to be given to whoever joins. Shown once; kept hashed.
    Token(String),
    /// What the audit saw.
    Audit(AuditReport),
    /// It is not done.
    Error(RequestError),
    /// A page of tokens.
    Tokens(Vec<TokenSummary>),
    /// Identities that are shut out.
    Denied(Vec<DeniedIdentity>),
    /// The audit log.
    Log(LogReport),
    /// The farm's authority.
    Authority(AuthorityStatus),
    /// The next bytes of a backup, at most a quarter of a megabyte.
    Backup(Vec<u8>),
}

/// A job's state for a watcher.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    /// The job.
    pub summary: JobSummary,
    /// Frames finished since the last message.
    pub finished: FrameSet,
}

/// Why a request was not done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum RequestError {
    /// No such job, node or blob.
    #[error("{0}")]
    NotFound(String),
    /// The identity may not.
    #[error("{0}")]
    NotAllowed(String),
    /// The request makes no sense.
    #[error("{0}")]
    Invalid(String),
    /// The farm cannot now: full, or its disk is.
    #[error("{0}")]
    Unavailable(String),
}

/// What an audit of the store found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditReport {
    /// Records read.
    pub records: u64,
    /// Jobs.
    pub jobs: u64,
    /// Units committed.
    pub units_committed: u64,
    /// Units committed more than once: must be 0.
    pub units_committed_twice: u64,
    /// Finished frames.
    pub frames: u64,
    /// Everything that is wrong, a line each; empty is good.
    pub problems: Vec<String>,
}

/// Asks for a certificate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnrolRequest {
    /// The token's secret.
    pub secret: Vec<u8>,
    /// A PKCS #10 certificate request, DER. Only its public key is used.
    pub certificate_request: Vec<u8>,
    /// The id a node wants (its own, kept in its data folder); None for a user.
    pub node: Option<NodeId>,
    /// Name for people.
    pub name: String,
}

/// Answers an [`EnrolRequest`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum EnrolReply {
    /// The chain to present from now on, DER: the new certificate, then the authority's.
    Certificate(Vec<Vec<u8>>),
    /// Why not, and what to do.
    Refused(String),
}
