//! News of all jobs, for who follows the farm.

use crate::ids::JobId;
use crate::status::{FrameStatus, JobSummary};
use serde::{Deserialize, Serialize};

/// What a message of news is a part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NewsPart {
    /// Of a list of the jobs as they are. Further parts of it follow.
    Listed,
    /// The last part of a list: who has all parts knows all jobs that were asked for.
    ListEnd,
    /// What has changed since the message before.
    Changes,
}

/// News of jobs. First comes a list, then what changes. A list comes again where changes were lost
/// because the reader was slow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JobsNews {
    /// What it is a part of.
    pub part: NewsPart,
    /// Time of the coordinator, in seconds since the Unix epoch.
    pub at: u64,
    /// Jobs that have changed, or are listed, as they are now.
    pub jobs: Vec<JobSummary>,
    /// Jobs that were forgotten.
    pub gone: Vec<JobId>,
    /// Frames that have changed, as they are now. Of many at once, some are left out.
    pub frames: Vec<(JobId, FrameStatus)>,
}
