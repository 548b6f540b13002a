//! The farm as a whole in JSON: shares, the authority, the audit of the records.

use serde::Serialize;
use tessera_protocol::{access, client, usage};
use utoipa::ToSchema;

/// What one owner has of the farm.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct OwnerUsage {
    /// Name of the user or node.
    owner: String,
    /// Number of the identity.
    owner_id: u64,
    /// Number of jobs that have not ended.
    jobs: u64,
    /// Number of jobs that have ended and are kept.
    jobs_ended: u64,
    /// Number of frames of open jobs, and of finished frames of ended ones.
    frames: u64,
    /// Number of units that wait for a result.
    units: u64,
    /// Bytes of the descriptions of all jobs.
    spec_bytes: u64,
    /// Bytes of the files of finished frames.
    frame_bytes: u64,
    /// Number of uploaded files.
    files: u64,
    /// Bytes of uploaded files that an open job names.
    named_bytes: u64,
    /// Bytes of uploaded files that no open job names.
    unnamed_bytes: u64,
    /// Bytes of results in memory; of a node.
    result_bytes: u64,
    /// Number of jobs that are watched now.
    watchers: u64,
    /// Number of requests that are answered now.
    requests: u64,
}

impl From<&usage::OwnerUsage> for OwnerUsage {
    fn from(usage: &usage::OwnerUsage) -> Self {
        Self {
            owner: usage.owner.clone(),
            owner_id: usage.owner_id,
            jobs: usage.jobs,
            jobs_ended: usage.jobs_ended,
            frames: usage.frames,
            units: usage.units,
            spec_bytes: usage.spec_bytes,
            frame_bytes: usage.frame_bytes,
            files: usage.files,
            named_bytes: usage.named_bytes,
            unnamed_bytes: usage.unnamed_bytes,
            result_bytes: usage.result_bytes,
            watchers: usage.watchers,
            requests: usage.requests,
        }
    }
}

/// What was done to everything of one owner, or would be.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct Swept {
    /// Number of jobs that were cancelled.
    jobs_cancelled: u64,
    /// Number of jobs that were deleted.
    jobs_forgotten: u64,
    /// Number of finished frames of deleted jobs.
    frames: u64,
    /// Bytes of the files of those frames.
    frame_bytes: u64,
    /// Number of deleted uploaded files.
    files: u64,
    /// Bytes of those files.
    file_bytes: u64,
}

impl From<usage::Swept> for Swept {
    fn from(swept: usage::Swept) -> Self {
        Self {
            jobs_cancelled: swept.jobs_cancelled,
            jobs_forgotten: swept.jobs_forgotten,
            frames: swept.frames,
            frame_bytes: swept.frame_bytes,
            files: swept.files,
            file_bytes: swept.file_bytes,
        }
    }
}

/// The farm's certificate authority.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct Authority {
    /// BLAKE3 of the authority's public key, which join tokens name.
    pin: String,
    /// When the former authority stops being trusted; null if there is none.
    former_until: Option<u64>,
}

impl From<access::AuthorityStatus> for Authority {
    fn from(status: access::AuthorityStatus) -> Self {
        let access::AuthorityStatus { pin, former_until } = status;
        Self { pin, former_until }
    }
}

/// Result of a check of the store against its own records.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct AuditReport {
    /// Number of records that were read.
    records: u64,
    /// Number of jobs in the journal.
    jobs: u64,
    /// Number of committed units.
    units_committed: u64,
    /// Number of units that were committed more than once. It must be 0.
    units_committed_twice: u64,
    /// Number of finished frames.
    frames: u64,
    /// Device time that was spent for all jobs, in milliseconds.
    device_millis: u64,
    /// Faults. Empty if there are none.
    problems: Vec<String>,
}

impl From<client::AuditReport> for AuditReport {
    fn from(report: client::AuditReport) -> Self {
        let client::AuditReport {
            records,
            jobs,
            units_committed,
            units_committed_twice,
            frames,
            device_millis,
            problems,
        } = report;
        Self {
            records,
            jobs,
            units_committed,
            units_committed_twice,
            frames,
            device_millis,
            problems,
        }
    }
}
