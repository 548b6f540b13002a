//! Small file operations that several modules need, and the meaning of their errors.

use std::fs;
use std::io;
use std::path::Path;
use tessera_protocol::node::{Failure, LimitReached, NodeLimit};

/// Removes a file that may not exist.
pub(crate) fn remove_if_there(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// Returns the failure of a unit whose files could not be used: the node's own limit if its disk is
/// full, and otherwise something that is missing.
pub(crate) fn failure_of(error: &io::Error, reason: String) -> Failure {
    match is_full(error) {
        true => Failure::Limit(LimitReached { limit: NodeLimit::Disk, reason }),
        false => Failure::Asset(reason),
    }
}

/// Returns whether the disk, or the user's share of it, is full.
pub(crate) fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}
