//! Notices of Azure: Scheduled Events, a list that may also contain other machines of the same set.

use super::Notice;
use super::http::{Metadata, MetadataError};
use serde::Deserialize;

const EVENTS: &str = "/metadata/scheduledevents?api-version=2020-07-01";
const NAME: &str = "/metadata/instance/compute/name?api-version=2021-02-01&format=text";

/// The needed part of the answer.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Document {
    #[serde(default)]
    events: Vec<Event>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Event {
    event_type: String,
    #[serde(default)]
    not_before: String,
    #[serde(default)]
    resources: Vec<String>,
}

/// Returns the present notice.
pub(super) async fn look(service: &mut Metadata) -> Result<Option<Notice>, MetadataError> {
    let text = get(service, EVENTS).await?;
    let document: Document = serde_json::from_str(&text)
        .map_err(|_| MetadataError::Strange(EVENTS.to_owned(), "no list of events"))?;
    // A frozen machine continues after some seconds.
    let ends = |event: &&Event| {
        ["Preempt", "Terminate", "Reboot", "Redeploy"].contains(&event.event_type.as_str())
    };
    let ending: Vec<&Event> = document.events.iter().filter(ends).collect();
    if ending.is_empty() {
        return Ok(None);
    }
    if service.kept.is_none() {
        service.kept = Some(get(service, NAME).await?.trim().to_owned());
    }
    let name = service.kept.as_deref().unwrap_or_default();
    let ours = ending.into_iter().find(|event| {
        event.resources.is_empty() || event.resources.iter().any(|resource| resource == name)
    });
    Ok(ours.map(|event| Notice {
        what: format!(
            "Azure announces {} of this machine, not before {:?}",
            event.event_type, event.not_before
        ),
        certain: true,
    }))
}

async fn get(service: &Metadata, path: &'static str) -> Result<String, MetadataError> {
    let answer = service.ask("GET", path, "Metadata: true").await?;
    match answer.status {
        200 => Ok(answer.body),
        _ => Err(service.status_error(&answer, path)),
    }
}
