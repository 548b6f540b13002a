//! Explanations: why a job, a frame or a node stands as it does, and what would help.

use crate::ids::{FrameNumber, JobId};
use serde::{Deserialize, Serialize};

/// Most reasons of one explanation.
pub const REASONS_MAX: usize = 32;

/// What is to be explained.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Subject {
    /// A job.
    Job(JobId),
    /// One frame of a job.
    Frame {
        /// Job of the frame.
        job: JobId,
        /// Number of the frame.
        frame: FrameNumber,
    },
    /// A node, by its id or name.
    Node(String),
}

/// Why something stands as it does. `docs/explain.md` lists all words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reason {
    /// The kind of reason in a word, for programs: `turn`, `pool`, `drained`.
    pub word: String,
    /// Why, for people.
    pub why: String,
    /// What would help; empty if nothing is needed, or if nothing can be done.
    pub help: String,
    /// Seconds until it ends by itself, where that is known.
    pub ends_secs: Option<u64>,
}

/// An owner whose jobs are worked on before a job that waits for its turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ahead {
    /// Name of the owner.
    pub owner: String,
    /// Number of that owner's units that nodes work on.
    pub units: u64,
    /// Name of one of those jobs.
    pub job: String,
}

/// An explanation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Explanation {
    /// What is explained, for people.
    pub about: String,
    /// Its state in a word.
    pub state: String,
    /// All reasons, the most important first.
    pub reasons: Vec<Reason>,
    /// Who is before a job that waits for its turn.
    pub ahead: Vec<Ahead>,
    /// Seconds until a job that waits for its turn should begin; None if it is not known.
    pub begins_secs: Option<u64>,
    /// Seconds until the job should end; None if it is not known.
    pub left_secs: Option<u64>,
}
