//! A job's files as a folder for the importer: links into the cache under the files' own paths.

use super::fetch::Fetcher;
use crate::disk::failure_of;
use std::path::Path;
use tempfile::TempDir;
use tessera_protocol::job::{AssetFile, is_confined_path};
use tessera_protocol::node::Failure;

/// Files that are fetched at a time. It hides the round trip to the coordinator for scenes with
/// many small files.
const FETCHES_MAX: usize = 8;

/// Fetches the missing files and lays all files out in a new folder in `views`. The folder is
/// deleted with the returned handle.
pub(super) async fn lay_out(
    views: &Path,
    files: &[AssetFile],
    fetcher: &Fetcher,
) -> Result<TempDir, Failure> {
    let asset = |error: std::io::Error| {
        let reason = format!("cannot lay out the scene in `{}`: {error}", views.display());
        failure_of(&error, reason)
    };
    let view = tempfile::Builder::new().prefix("scene-").tempdir_in(views).map_err(asset)?;
    let mut running = tokio::task::JoinSet::new();
    for file in files {
        if !is_confined_path(&file.path) {
            return Err(Failure::Scene(format!(
                "file path {:?} leaves the scene's folder",
                file.path
            )));
        }
        let target = view.path().join(&file.path);
        if let Some(parent) = target.parent() {
            std::fs::create_dir_all(parent).map_err(asset)?;
        }
        if running.len() >= FETCHES_MAX {
            ended(running.join_next().await)?;
        }
        let (fetcher, file) = (fetcher.clone(), file.clone());
        running.spawn(async move {
            let placed = fetcher.place(file.hash, file.length, &target).await;
            placed.map_err(|error| error.into_failure(Some(&format!("file `{}`", file.path))))
        });
    }
    while !running.is_empty() {
        ended(running.join_next().await)?;
    }
    Ok(view)
}

fn ended(
    result: Option<Result<Result<(), Failure>, tokio::task::JoinError>>,
) -> Result<(), Failure> {
    match result {
        None => Ok(()),
        Some(Ok(placed)) => placed,
        Some(Err(error)) => Err(Failure::Asset(format!("fetching failed: {error}"))),
    }
}
