//! The audit of a running coordinator, and the short form of `fsck` that goes over the wire.

use crate::folder::FolderError;
use crate::fsck::{self, Depth, Finding, FsckReport, Places};
use crate::quic::Shared;
use crate::store::{Commit, StoreError};
use std::path::Path;
use std::sync::Arc;
use tessera_protocol::client::{AuditReport, RequestError};
use tokio::sync::oneshot;

/// Why there is no audit.
#[derive(Debug, thiserror::Error)]
pub enum AuditError {
    /// The folder cannot be used; one that is in use is audited by asking its coordinator.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// The store cannot be read at all.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Audits the data folder of a coordinator that is not running. Changes nothing.
pub fn audit(data: &Path) -> Result<AuditReport, AuditError> {
    fsck::fsck(data, Depth::Whole).map(|report| short(&report))
}

/// Audits a coordinator from within.
pub(crate) async fn running(shared: &Arc<Shared>) -> Result<AuditReport, RequestError> {
    let loaded = inspect(shared).await?;
    let places = Places { blobs: (*shared.blobs).clone(), spools: shared.spools.clone() };
    let writer = shared.writer.clone();
    let checked = tokio::task::spawn_blocking(move || {
        let report =
            fsck::check_running(&loaded, &places, &|key| writer.spool_length(key).is_some());
        short(&report)
    });
    let mut report = checked.await.map_err(|error| unreadable(&error))?;
    let (reply, verified) = oneshot::channel();
    shared
        .events
        .send(crate::driver::Event::Verify(reply))
        .await
        .map_err(|error| unreadable(&error))?;
    if let Err(problem) = verified.await.map_err(|error| unreadable(&error))? {
        report.problems.push(format!("leases and units as they are now: {problem}"));
    }
    Ok(report)
}

/// Everything in the store of a running coordinator, at one moment.
pub(crate) async fn inspect(shared: &Shared) -> Result<crate::store::Loaded, RequestError> {
    let (mut commit, _) = Commit::new();
    let (inspect, seen) = oneshot::channel();
    commit.inspect = Some(inspect);
    shared.writer.queue().send(commit).map_err(|error| unreadable(&error))?;
    seen.await.map_err(|error| unreadable(&error))?.map_err(|error| unreadable(&error))
}

fn unreadable(error: &dyn std::fmt::Display) -> RequestError {
    RequestError::Unavailable(format!("the store cannot be read: {error}"))
}

fn short(report: &FsckReport) -> AuditReport {
    let line = |finding: &Finding| format!("{}: {}", finding.place, finding.problem);
    AuditReport {
        records: report.records,
        jobs: report.jobs,
        units_committed: report.units_committed,
        units_committed_twice: report.units_committed_twice,
        frames: report.frames,
        problems: report.errors().map(line).collect(),
    }
}
