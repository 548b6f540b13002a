//! The audit of a running coordinator.

use super::context::{Context, unreadable};
use crate::driver::Event;
use crate::fsck::{self, Places};
use tessera_protocol::client::{AuditReport, RequestError};

/// Checks the store against its records, blobs and spools, and the core against itself.
pub(super) async fn audit(context: &Context) -> Result<AuditReport, RequestError> {
    let loaded = context.inspect().await?;
    let places = Places { blobs: context.blobs.store(), spools: context.spools.clone() };
    let writer = context.writer.clone();
    let checked = tokio::task::spawn_blocking(move || {
        let is_known = |key| writer.spool_extent(key).is_some();
        fsck::check_running(&loaded, &places, &is_known).audit()
    });
    let mut report = checked.await.map_err(|error| unreadable(&error))?;
    if let Err(problem) = context.send(Event::Verify).await? {
        report.problems.push(format!("leases and units as they are now: {problem}"));
    }
    Ok(report)
}
