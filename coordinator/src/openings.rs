//! What a coordinator opens in its folder beside the journal, and the limits of its settings.

use crate::api::Counts;
use crate::config::Config;
use crate::folder::{DataFolder, FolderError};
use crate::logs::Logs;
use crate::uploads::{UploadLimit, Uploads};
use std::sync::Arc;
use tessera_telemetry::Lines;
use tessera_transport::files;

/// Returns the bytes of the disk that uploads leave free.
pub(crate) fn upload_reserve(config: &Config) -> Result<u64, FolderError> {
    let path = &config.data;
    let failed = |source| FolderError::Io { path: path.clone(), source };
    let frames = match config.frame_reserve_bytes {
        Some(bytes) => bytes,
        None => (files::total_bytes(path).map_err(failed)? / 20).min(1 << 30),
    };
    Ok(config.disk_reserve_bytes.saturating_add(frames))
}

pub(crate) fn open_uploads(folder: &DataFolder) -> Result<Arc<Uploads>, FolderError> {
    let path = folder.uploads();
    Uploads::open(&path).map_err(|source| FolderError::Io { path, source })
}

pub(crate) fn open_logs(folder: &DataFolder, lines: Lines) -> Result<Logs, FolderError> {
    let path = folder.logs();
    Logs::open(&path, lines).map_err(|source| FolderError::Io { path, source })
}

pub(crate) fn upload_limit(config: &Config) -> UploadLimit {
    UploadLimit { bytes: config.limits.uploads_per_user, root: config.data.clone() }
}

pub(crate) fn asking_limits(config: &Config) -> Counts {
    let (watchers, requests) = (config.limits.watchers_per_user, config.limits.requests_per_user);
    Counts { watchers, requests }
}
