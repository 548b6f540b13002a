//! The farm as a whole: shares of its owners, its authority, its records, its backup.

use crate::asking::{ask, stopping};
use crate::auth::Signed;
use crate::forms::Json;
use crate::problem::Problem;
use crate::state::Shared;
use crate::stream::Pieces;
use crate::views::{AuditReport, Authority, OwnerUsage, Swept};
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::header;
use axum::response::IntoResponse;
use bytes::Bytes;
use serde::Deserialize;
use tessera_protocol::client::{Request, Response};
use utoipa::ToSchema;

/// Show what each owner has of the farm
///
/// Operators see all, others themselves.
#[utoipa::path(get, path = "/usage", tag = "farm", responses(
    (status = 200, body = Vec<OwnerUsage>), (status = 401, body = Problem)))]
pub(crate) async fn usage(
    State(server): State<Shared>,
    signed: Signed,
) -> Result<axum::Json<Vec<OwnerUsage>>, Problem> {
    match ask(&server, signed.caller(), Request::Usage).await? {
        Response::Usage(usage) => Ok(axum::Json(usage.iter().map(OwnerUsage::from).collect())),
        _ => Err(stopping()),
    }
}

/// Whether something is only counted.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SweepForm {
    /// Only counts what would be deleted.
    dry_run: bool,
}

/// Cancel and delete all jobs of an owner, with their frames and files
#[utoipa::path(post, path = "/owners/{owner}/sweep", tag = "farm",
    params(("owner" = String, Path, description = "Name, or # and number")),
    request_body = SweepForm, responses((status = 200, body = Swept),
    (status = 400, body = Problem), (status = 401, body = Problem),
    (status = 403, body = Problem), (status = 404, body = Problem)))]
pub(crate) async fn sweep(
    State(server): State<Shared>,
    signed: Signed,
    Path(owner): Path<String>,
    Json(SweepForm { dry_run }): Json<SweepForm>,
) -> Result<axum::Json<Swept>, Problem> {
    match ask(&server, signed.caller(), Request::Sweep { owner, dry_run }).await? {
        Response::Swept(swept) => Ok(axum::Json(Swept::from(swept))),
        _ => Err(stopping()),
    }
}

fn authority_of(response: Response) -> Result<axum::Json<Authority>, Problem> {
    match response {
        Response::Authority(status) => Ok(axum::Json(Authority::from(status))),
        _ => Err(stopping()),
    }
}

/// Show the farm's authority
#[utoipa::path(get, path = "/authority", tag = "farm", responses(
    (status = 200, body = Authority), (status = 401, body = Problem),
    (status = 403, body = Problem)))]
pub(crate) async fn authority(
    State(server): State<Shared>,
    signed: Signed,
) -> Result<axum::Json<Authority>, Problem> {
    authority_of(ask(&server, signed.caller(), Request::Authority).await?)
}

/// How long the old authority stays trusted.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RotateForm {
    /// Seconds, at most 62 days; until every certificate has ended or is renewed, if it is left
    /// out.
    overlap_secs: Option<u64>,
}

/// Make a new authority
#[utoipa::path(post, path = "/authority/rotate", tag = "farm", request_body = RotateForm,
    responses((status = 200, body = Authority), (status = 400, body = Problem),
    (status = 401, body = Problem), (status = 403, body = Problem),
    (status = 422, body = Problem)))]
pub(crate) async fn rotate(
    State(server): State<Shared>,
    signed: Signed,
    Json(RotateForm { overlap_secs }): Json<RotateForm>,
) -> Result<axum::Json<Authority>, Problem> {
    let request = Request::RotateAuthority { overlap_secs };
    authority_of(ask(&server, signed.caller(), request).await?)
}

/// Check the store against its own records
#[utoipa::path(post, path = "/check-records", tag = "farm", responses(
    (status = 200, body = AuditReport), (status = 401, body = Problem),
    (status = 403, body = Problem)))]
pub(crate) async fn check_records(
    State(server): State<Shared>,
    signed: Signed,
) -> Result<axum::Json<AuditReport>, Problem> {
    match ask(&server, signed.caller(), Request::Audit).await? {
        Response::Audit(report) => Ok(axum::Json(AuditReport::from(report))),
        _ => Err(stopping()),
    }
}

/// Back the farm up
///
/// The bytes of `tessera backup`, without the farm's keys.
#[utoipa::path(post, path = "/backup", tag = "farm", responses(
    (status = 200, content_type = "application/octet-stream", body = [u8]),
    (status = 401, body = Problem), (status = 403, body = Problem),
    (status = 503, body = Problem)))]
pub(crate) async fn backup(
    State(server): State<Shared>,
    signed: Signed,
) -> Result<impl IntoResponse, Problem> {
    let mut answer = server.api.answer(signed.caller(), Request::Backup).await;
    let first = match answer.next().await {
        Some(Response::Backup(bytes)) => bytes,
        Some(Response::Error(error)) => return Err(error.into()),
        _ => return Err(stopping()),
    };
    let (pieces, send) = Pieces::channel(None);
    tokio::spawn(async move {
        let mut next = Some(Response::Backup(first));
        while let Some(response) = next {
            let piece = match response {
                Response::Backup(bytes) => Ok(Bytes::from(bytes)),
                // The answer is cut, so that nobody takes it for whole.
                Response::Error(error) => Err(std::io::Error::other(error.to_string())),
                _ => return,
            };
            if send.send(piece).await.is_err() {
                return;
            }
            next = answer.next().await;
        }
    });
    let kind = [(header::CONTENT_TYPE, "application/octet-stream")];
    Ok((kind, Body::new(pieces)))
}
