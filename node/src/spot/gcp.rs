//! Notices of Google Compute Engine: two values of its metadata server that change.

use super::Notice;
use super::http::{Metadata, MetadataError};

const PREEMPTED: &str = "/computeMetadata/v1/instance/preempted";
const MAINTENANCE: &str = "/computeMetadata/v1/instance/maintenance-event";

/// Returns the present notice.
pub(super) async fn look(service: &Metadata) -> Result<Option<Notice>, MetadataError> {
    if get(service, PREEMPTED).await? == "TRUE" {
        return Ok(Some(Notice { what: "Google preempts this machine".into(), certain: true }));
    }
    // A machine that is migrated continues. A machine with a GPU cannot be migrated, and is ended.
    let event = get(service, MAINTENANCE).await?;
    Ok(event.starts_with("TERMINATE").then(|| Notice {
        what: format!("Google ends this machine for maintenance of its host: {event}"),
        certain: true,
    }))
}

async fn get(service: &Metadata, path: &'static str) -> Result<String, MetadataError> {
    let answer = service.ask("GET", path, "Metadata-Flavor: Google").await?;
    match answer.status {
        200 => Ok(answer.body.trim().to_owned()),
        _ => Err(service.status_error(&answer, path)),
    }
}
