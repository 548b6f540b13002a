//! Live tiles of a frame, as a stream of bytes for one client.

use super::jobs;
use crate::auth::Signed;
use crate::problem::{Problem, stopping};
use crate::state::Shared;
use crate::stream::Pieces;
use axum::extract::{Path, State};
use axum::response::IntoResponse;
use bytes::Bytes;
use std::time::Duration;
use tessera_coordinator::api::Live;
use tessera_protocol::FrameNumber;
use tessera_protocol::job::{RenderSpec, Window};
use tessera_protocol::live::{LiveTile, Watched, live_step};

/// How often a silent stream says that it lives, and its client's rights are looked at again.
const BEAT: Duration = Duration::from_secs(15);

/// Kinds of messages.
const HEAD: u32 = 0;
const TILE: u32 = 1;
const ALIVE: u32 = 2;
const END: u32 = 3;

/// Watch a frame while it is rendered
///
/// A stream of messages: a length in bytes, a kind, and what the kind has. All numbers have 32 bits
/// and are little endian. Kind 0 is the first: width and height of the picture and its number of
/// tiles. Kind 1 is the mean of a tile's samples: the unit; left and top edge of the tile in the
/// picture, which may be negative, its width and height; the first sample and their number; the
/// edge of the squares of pixels that one value stands for; then the values row by row, as R, G and
/// B in half floats of linear light. Means of other samples of a tile count by their numbers of
/// samples, and a unit with the same first sample may come again. Kind 2 says only that the stream
/// lives. Kind 3 ends it: the frame is finished, or has failed. What was rendered before anybody
/// watched is not told, and what a client is too slow for is left out.
#[utoipa::path(get, path = "/jobs/{job}/frames/{frame}/live", tag = "jobs",
    params(("job" = String, Path), ("frame" = u32, Path, description = "Number of the frame")),
    responses((status = 200, content_type = "application/octet-stream", body = [u8]),
    (status = 400, body = Problem), (status = 401, body = Problem),
    (status = 404, body = Problem), (status = 503, body = Problem)))]
pub(crate) async fn live(
    State(server): State<Shared>,
    signed: Signed,
    Path((job, frame)): Path<(String, String)>,
) -> Result<impl IntoResponse, Problem> {
    let number: u32 =
        frame.parse().map_err(|_| Problem::not_found(format!("there is no frame {frame:?}")))?;
    let detail = jobs::detail(&server, &signed, &job).await?;
    let what = Watched { job: detail.summary.job, frame: Some(FrameNumber(number)) };
    let live = server.api.live(signed.caller(), what).await?;
    let render = detail.spec.kind.render().ok_or_else(stopping)?.clone();
    let (pieces, send) = Pieces::channel(None);
    let valid = move || server.api.is_valid(&signed.bearer);
    tokio::spawn(tell(live, render, send, valid));
    Ok(pieces.live("application/octet-stream"))
}

/// Sends what comes until the frame is over, the client is gone or has lost its rights.
async fn tell(
    mut live: Live,
    render: RenderSpec,
    send: tokio::sync::mpsc::Sender<std::io::Result<Bytes>>,
    valid: impl Fn() -> bool,
) {
    let data = render.data_window();
    let head = message(HEAD, &[data.width(), data.height(), render.tiles().count()], &[]);
    if send.send(Ok(head)).await.is_err() {
        return;
    }
    let mut beat = tokio::time::interval(BEAT);
    loop {
        let next = tokio::select! {
            tile = live.next() => match tile {
                Some(tile) => match tile_message(&tile, &render, &data) {
                    Some(told) => told,
                    None => continue,
                },
                None => {
                    // The client may be gone.
                    let _ = send.send(Ok(message(END, &[], &[]))).await;
                    return;
                }
            },
            _ = beat.tick() => match valid() {
                true => message(ALIVE, &[], &[]),
                false => return,
            },
            () = send.closed() => return,
        };
        if send.send(Ok(next)).await.is_err() {
            return;
        }
    }
}

/// Writes a live tile; None for one that is not in the picture.
fn tile_message(tile: &LiveTile, render: &RenderSpec, data: &Window) -> Option<Bytes> {
    let place = render.tiles().window_of(&tile.tile)?.from(data);
    let numbers = [
        tile.lease.unit.unit.0,
        place.left.cast_unsigned(),
        place.top.cast_unsigned(),
        tile.tile.width,
        tile.tile.height,
        tile.samples.first,
        tile.samples.count,
        live_step(&tile.tile),
    ];
    Some(message(TILE, &numbers, &tile.values.0))
}

fn message(kind: u32, numbers: &[u32], values: &[u8]) -> Bytes {
    let length = 4 * (1 + numbers.len()) + values.len();
    let mut bytes = Vec::with_capacity(4 + length);
    // A live tile has 24 KiB of values at most.
    bytes.extend_from_slice(&(length as u32).to_le_bytes());
    bytes.extend_from_slice(&kind.to_le_bytes());
    numbers.iter().for_each(|number| bytes.extend_from_slice(&number.to_le_bytes()));
    bytes.extend_from_slice(values);
    bytes.into()
}
