//! What reading arrays has in common: memory for them, and what is said of a file that cannot be
//! read.

use crate::disk::failure_of;
use std::path::Path;
use tessera_protocol::compute::InputArray;
use tessera_protocol::node::{Failure, LimitReached, NodeLimit};

/// Memory for an array of so many bytes.
pub(super) fn words_for(input: &InputArray, length: usize) -> Result<Vec<u64>, Failure> {
    let mut words: Vec<u64> = Vec::new();
    let count = length.div_ceil(8);
    words.try_reserve_exact(count).map_err(|_| {
        let reason = format!("not enough memory for input `{}` of {length} bytes", input.name);
        Failure::Limit(LimitReached { limit: NodeLimit::Memory, reason })
    })?;
    words.resize(count, 0);
    Ok(words)
}

/// What is said of a file that cannot be read.
pub(super) fn unreadable(path: &Path, error: &std::io::Error) -> Failure {
    failure_of(error, format!("`{}`: {error}", path.display()))
}
