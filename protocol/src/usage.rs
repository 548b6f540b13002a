//! What each owner has of the farm, and what a sweep removed of it.

use serde::{Deserialize, Serialize};

/// What one owner has of the farm.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnerUsage {
    /// Name of the user or node.
    pub owner: String,
    /// Number of the identity.
    pub owner_id: u64,
    /// Number of jobs that have not ended.
    pub jobs: u64,
    /// Number of jobs that have ended and are kept.
    pub jobs_ended: u64,
    /// Number of frames of jobs that have not ended, and of finished frames of those that have.
    pub frames: u64,
    /// Number of units that wait for a result.
    pub units: u64,
    /// Bytes of the descriptions of all jobs.
    pub spec_bytes: u64,
    /// Bytes of the files of finished frames.
    pub frame_bytes: u64,
    /// Number of uploaded files, complete or not.
    pub files: u64,
    /// Bytes of uploaded files that an open job names.
    pub named_bytes: u64,
    /// Bytes of uploaded files that no open job names.
    pub unnamed_bytes: u64,
    /// Bytes of results in memory; of a node.
    pub result_bytes: u64,
    /// Number of jobs that are watched now.
    pub watchers: u64,
    /// Number of requests that are answered now.
    pub requests: u64,
}

/// What was done to everything of one owner, or would be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Swept {
    /// Number of jobs that were cancelled.
    pub jobs_cancelled: u64,
    /// Number of jobs that were deleted, with those that were cancelled.
    pub jobs_forgotten: u64,
    /// Number of finished frames of deleted jobs.
    pub frames: u64,
    /// Bytes of the files of those frames. A file that another job also names stays.
    pub frame_bytes: u64,
    /// Number of deleted uploaded files that no open job names.
    pub files: u64,
    /// Bytes of those files.
    pub file_bytes: u64,
}
