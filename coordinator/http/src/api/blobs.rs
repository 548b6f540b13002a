//! Files of scenes by their hashes: which are missing, uploads that go on where they stopped, and
//! reading them again.

use crate::asking::{ask, stopping};
use crate::auth::Signed;
use crate::forms::{Asked, JsonList};
use crate::problem::Problem;
use crate::state::Shared;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response as HttpResponse;
use bytes::Bytes;
use http_body_util::BodyExt;
use serde::{Deserialize, Serialize};
use std::time::Duration;
use tessera_coordinator::api::{BlobPut, BlobPutError};
use tessera_coordinator::blobs::{SinkError, Upload};
use tessera_protocol::BlobHash;
use tessera_protocol::client::{Request, Response};
use tessera_protocol::limits::BLOB_BYTES_MAX;
use tokio::sync::mpsc;
use utoipa::{IntoParams, ToSchema};

/// Longest wait for the next bytes of an upload.
const BYTES_WITHIN: Duration = Duration::from_secs(30);
/// Pieces that wait to be written.
const WAITING_MAX: usize = 8;

fn hash(text: &str) -> Result<BlobHash, Problem> {
    text.parse().map_err(|error| Problem::not_found(format!("{error}: the BLAKE3 of a file")))
}

/// Ask which files must be uploaded
///
/// The answer has the hashes that the coordinator does not have.
#[utoipa::path(post, path = "/blobs/missing", tag = "files", request_body = Vec<String>,
    responses((status = 200, body = Vec<String>), (status = 400, body = Problem),
    (status = 401, body = Problem), (status = 403, body = Problem),
    (status = 404, body = Problem), (status = 422, body = Problem)))]
pub(crate) async fn missing(
    State(server): State<Shared>,
    signed: Signed,
    JsonList(hashes): JsonList<String>,
) -> Result<axum::Json<Vec<String>>, Problem> {
    let hashes = hashes.iter().map(|text| hash(text)).collect::<Result<_, _>>()?;
    match ask(&server, signed.caller(), Request::MissingBlobs(hashes)).await? {
        Response::Blobs(missing) => {
            Ok(axum::Json(missing.iter().map(ToString::to_string).collect()))
        }
        _ => Err(stopping()),
    }
}

/// Read a file of an own job
#[utoipa::path(get, path = "/blobs/{hash}", tag = "files",
    params(("hash" = String, Path, description = "BLAKE3 of the file")),
    responses((status = 200, content_type = "application/octet-stream", body = [u8]),
    (status = 206, content_type = "application/octet-stream", body = [u8]), (status = 304),
    (status = 401, body = Problem), (status = 403, body = Problem),
    (status = 404, body = Problem), (status = 416, body = Problem)))]
pub(crate) async fn get(
    State(server): State<Shared>,
    signed: Signed,
    Path(text): Path<String>,
    headers: HeaderMap,
) -> Result<HttpResponse, Problem> {
    super::files::blob(&server, &signed, (hash(&text)?, None), &headers).await
}

/// Which bytes of a file are sent.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct PutAsked {
    /// Length of the whole file in bytes.
    length: u64,
    /// Position of the first byte that is sent: `held` of the answer before.
    #[serde(default)]
    offset: u64,
}

/// Length of a file.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct HeldAsked {
    /// Length of the whole file in bytes.
    length: u64,
}

/// How much of a file is here.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Held {
    /// Number of bytes from the beginning that are here.
    held: u64,
    /// Whether the file is whole and checked.
    whole: bool,
}

fn begin(
    server: &Shared,
    signed: &Signed,
    hash: BlobHash,
    length: u64,
) -> impl Future<Output = Result<BlobPut, Problem>> + use<> {
    let (server, caller) = (server.clone(), signed.caller().clone());
    async move {
        if length > BLOB_BYTES_MAX {
            let text = format!("{length} bytes are more than a file may have, {BLOB_BYTES_MAX}");
            return Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, text));
        }
        let begun =
            tokio::task::spawn_blocking(move || server.api.put_blob(&caller, hash, length)).await;
        begun.map_err(|_| stopping())?.map_err(|error| match error {
            BlobPutError::Request(error) => error.into(),
            BlobPutError::Upload(error) => {
                Problem::new(StatusCode::INSUFFICIENT_STORAGE, error.to_string())
            }
        })
    }
}

/// Ask how much of an upload is here
///
/// An upload that was interrupted goes on from there.
#[utoipa::path(get, path = "/blobs/{hash}/held", tag = "files",
    params(("hash" = String, Path, description = "BLAKE3 of the file"), HeldAsked),
    responses((status = 200, body = Held), (status = 400, body = Problem),
    (status = 401, body = Problem), (status = 403, body = Problem),
    (status = 404, body = Problem), (status = 413, body = Problem),
    (status = 507, body = Problem)))]
pub(crate) async fn held(
    State(server): State<Shared>,
    signed: Signed,
    Path(text): Path<String>,
    Asked(HeldAsked { length }): Asked<HeldAsked>,
) -> Result<axum::Json<Held>, Problem> {
    let held = match begin(&server, &signed, hash(&text)?, length).await? {
        BlobPut::Held => Held { held: length, whole: true },
        BlobPut::From(upload) => Held { held: upload.held(), whole: false },
    };
    Ok(axum::Json(held))
}

/// Upload a file
///
/// The body has the bytes from `offset` on. Bytes that arrived stay when the connection is lost.
/// With the last byte the hash is checked.
#[utoipa::path(put, path = "/blobs/{hash}", tag = "files",
    params(("hash" = String, Path, description = "BLAKE3 of the file"), PutAsked),
    request_body(content = [u8], content_type = "application/octet-stream"),
    responses((status = 200, body = Held), (status = 400, body = Problem),
    (status = 401, body = Problem), (status = 403, body = Problem),
    (status = 404, body = Problem), (status = 408, body = Problem),
    (status = 409, body = Problem), (status = 413, body = Problem),
    (status = 422, body = Problem), (status = 507, body = Problem)))]
pub(crate) async fn put(
    State(server): State<Shared>,
    signed: Signed,
    Path(text): Path<String>,
    Asked(PutAsked { length, offset }): Asked<PutAsked>,
    body: Body,
) -> Result<axum::Json<Held>, Problem> {
    let upload = match begin(&server, &signed, hash(&text)?, length).await? {
        BlobPut::Held => return Ok(axum::Json(Held { held: length, whole: true })),
        BlobPut::From(upload) => upload,
    };
    let held = upload.held();
    if held != offset {
        let text = format!("{held} bytes are here: send the rest with offset={held}");
        return Err(Problem::new(StatusCode::CONFLICT, text));
    }
    write(upload, body, length).await.map(axum::Json)
}

/// Writes a body to an upload, on a thread for blocking work.
async fn write(upload: Box<Upload>, mut body: Body, length: u64) -> Result<Held, Problem> {
    let (send, pieces) = mpsc::channel::<Bytes>(WAITING_MAX);
    let written = tokio::task::spawn_blocking(move || writer(upload, pieces, length));
    let mut fault = None;
    loop {
        match tokio::time::timeout(BYTES_WITHIN, body.frame()).await {
            Ok(None) => break,
            Ok(Some(Ok(frame))) => {
                let Ok(bytes) = frame.into_data() else { continue };
                // The writer says why it has ended.
                if send.send(bytes).await.is_err() {
                    break;
                }
            }
            Ok(Some(Err(_))) => {
                fault = Some(Problem::form("the body was cut"));
                break;
            }
            Err(_) => {
                let text = "no bytes came for 30 s; what arrived stays";
                fault = Some(Problem::new(StatusCode::REQUEST_TIMEOUT, text));
                break;
            }
        }
    }
    drop(send);
    let held = written.await.map_err(|_| stopping())?;
    fault.map_or(held, Err)
}

fn writer(
    mut upload: Box<Upload>,
    mut pieces: mpsc::Receiver<Bytes>,
    length: u64,
) -> Result<Held, Problem> {
    let failed = |error: std::io::Error| {
        Problem::new(StatusCode::INSUFFICIENT_STORAGE, format!("the bytes cannot be kept: {error}"))
    };
    while let Some(bytes) = pieces.blocking_recv() {
        if upload.held().saturating_add(bytes.len() as u64) > length {
            let text = format!("the body has more bytes than the file's {length}");
            return Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, text));
        }
        upload.write(&bytes).map_err(failed)?;
    }
    let held = upload.held();
    if held < length {
        return Ok(Held { held, whole: false });
    }
    match upload.finish() {
        Ok(()) => Ok(Held { held, whole: true }),
        Err(SinkError::Corrupt { found }) => Err(Problem::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            format!("the bytes have the hash {}; nothing of them is kept", found),
        )),
        Err(error) => Err(Problem::new(StatusCode::INSUFFICIENT_STORAGE, error.to_string())),
    }
}
