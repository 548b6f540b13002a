//! Why bytes are no record or part of a snapshot.

use tessera_protocol::{CodecError, VersionError};

/// Why bytes are no record.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// Written by a build that this one cannot read.
    #[error(transparent)]
    Version(#[from] VersionError),
    /// No byte at all.
    #[error("record is empty")]
    Empty,
    /// The version is known and the rest is not such a record: it is damaged, or names an option
    /// that this build does not know.
    #[error("record cannot be read: {}", .0.cause())]
    Damaged(CodecError),
}
