//! The stream of what changes, for one client.

use crate::auth::Signed;
use crate::problem::Problem;
use crate::state::Shared;
use crate::stream::Pieces;
use crate::views::ServerSent;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::IntoResponse;
use bytes::Bytes;
use std::time::Duration;

/// How often a silent stream says that it lives, and its client's rights are looked at again.
const BEAT: Duration = Duration::from_secs(15);
/// Follow the farm
///
/// Server-sent events: `hello` first, with `resumed` false where the client must read its lists
/// (again); then `jobs` with `jobs` and `gone`, `frames` with `frames` and, in `more`, jobs whose
/// frames must be read again, `nodes` with `nodes` and `gone`, and `through` with the sequence of
/// the journal's newest record that was told. `Last-Event-ID` goes on after that event.
#[utoipa::path(get, path = "/events", tag = "farm", responses(
    (status = 200, content_type = "text/event-stream", body = ServerSent),
    (status = 401, body = Problem), (status = 503, body = Problem)))]
pub(crate) async fn events(
    State(server): State<Shared>,
    signed: Signed,
    headers: HeaderMap,
) -> Result<impl IntoResponse, Problem> {
    let watching = server.api.watching(signed.caller())?;
    let last = headers.get("last-event-id").and_then(|value| value.to_str().ok());
    let mut listener = server.hub.listen(last).await?;
    let (pieces, send) = Pieces::channel(None);
    tokio::spawn(async move {
        let _watching = watching;
        let first = std::iter::once(listener.hello.clone());
        let missed = listener.missed.iter().map(|batch| batch.text.clone());
        for text in first.chain(missed) {
            if send.send(Ok(text)).await.is_err() {
                return;
            }
        }
        let mut beat = tokio::time::interval(BEAT);
        loop {
            let text = tokio::select! {
                batch = listener.batches.recv() => match batch {
                    Ok(batch) => batch.text.clone(),
                    // The client asks again, and begins where it can.
                    Err(_) => return,
                },
                _ = beat.tick() => match server.api.is_valid(&signed.bearer) {
                    true => Bytes::from_static(b": alive\n\n"),
                    false => return,
                },
                () = send.closed() => return,
            };
            if send.send(Ok(text)).await.is_err() {
                return;
            }
        }
    });
    Ok(pieces.live("text/event-stream"))
}
