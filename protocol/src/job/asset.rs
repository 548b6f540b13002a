//! Files of a job, by path and hash.

use crate::ids::BlobHash;
use crate::limits::ASSET_PATH_MAX;
use serde::{Deserialize, Serialize};

/// A file of a scene.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AssetFile {
    /// Path relative to the scene's own folder: `/`-separated, never absolute, no `..`.
    pub path: String,
    /// Names the file's bytes.
    pub hash: BlobHash,
    /// Length in bytes.
    pub length: u64,
}

/// Returns whether a path stays inside the scene's folder: relative, `/`-separated, no empty, `.`
/// or `..` part, no `\`, `:` or control character.
pub fn is_confined_path(path: &str) -> bool {
    !path.is_empty()
        && path.len() <= ASSET_PATH_MAX
        && !path.chars().any(|c| c.is_control() || c == '\\' || c == ':')
        && path.split('/').all(|part| !matches!(part, "" | "." | ".."))
}
