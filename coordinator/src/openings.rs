//! What a coordinator opens in its folder beside the journal, and the limits of its settings.

use crate::api::Counts;
use crate::config::Config;
use crate::folder::{DataFolder, FolderError};
use crate::logs::Logs;
use crate::store::WriterLimits;
use crate::uploads::{UploadLimit, Uploads};
use std::sync::Arc;
use std::time::Duration;
use tessera_telemetry::Lines;
use tessera_transport::files;

/// Pause of the store between two groups of results. Nodes that render small tiles send them every
/// 40 ms, so that two of them have one group in it.
const RESULTS_PAUSE: Duration = Duration::from_millis(30);

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

pub(crate) fn writer_limits(config: &Config) -> WriterLimits {
    WriterLimits {
        root: config.data.clone(),
        reserve_bytes: config.disk_reserve_bytes,
        results_pause: RESULTS_PAUSE,
    }
}
