//! What the parts of a history share: moments, a job as it was shown, and a broken promise.

use tessera_protocol::ids::JobId;
use tessera_protocol::status::JobState;

/// When a question was asked: the number of answers seen before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Asked(pub(crate) u64);

/// A job as somebody was shown it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobSeen {
    /// Which.
    pub job: JobId,
    /// Its state.
    pub state: JobState,
    /// Units in all.
    pub units: u64,
    /// Units committed.
    pub units_committed: u64,
    /// Frames in all.
    pub frames: u32,
    /// Frames finished.
    pub frames_done: u32,
}

/// A promise that was not kept.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{promise}: {what}")]
pub struct Broken {
    /// `P1`, `P2` or `P3` of docs/promises.md.
    pub promise: &'static str,
    /// What was told, and what before.
    pub what: String,
}

/// A promise is broken.
pub(crate) fn broken<T>(promise: &'static str, what: String) -> Result<T, Broken> {
    Err(Broken { promise, what })
}
