//! The form of server-sent events.

use utoipa::ToSchema;

/// A server-sent event, by its fields.
#[derive(ToSchema)]
#[expect(dead_code, reason = "events are written as text; this describes them")]
pub(crate) struct ServerSent {
    /// What it is.
    event: String,
    /// JSON on one line.
    data: String,
    /// What to give as `Last-Event-ID`, to go on after it.
    id: Option<String>,
}
