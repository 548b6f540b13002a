//! Why a request was not done.

use crate::status::JobName;
use serde::{Deserialize, Serialize};

/// Why a request was not done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum RequestError {
    /// There is no such job, node or blob.
    #[error("{0}")]
    NotFound(String),
    /// The identity does not have the right.
    #[error("{0}")]
    NotAllowed(String),
    /// The request is not valid.
    #[error("{0}")]
    Invalid(String),
    /// The farm cannot do it now, for example because it or its disk is full.
    #[error("{0}")]
    Unavailable(String),
    /// The text means several jobs.
    #[error("{text:?} means {count} jobs")]
    Ambiguous {
        /// Text of the request.
        text: String,
        /// Number of jobs that it means.
        count: u64,
        /// The newest of them, at most [`crate::limits::MEANINGS_NAMED_MAX`].
        jobs: Vec<JobName>,
    },
    /// The name in the request is that of several nodes. The text lists their ids.
    #[error("{0}")]
    SeveralNodes(String),
}
