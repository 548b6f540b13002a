//! Submitting a job: its description in JSON, as `GET /jobs/{job}` shows it.

use super::job_inputs;
use super::jobs::id;
use super::submit_form::{SubmitForm, spec};
use crate::asking::{ask, stopping};
use crate::auth::Signed;
use crate::forms::Json;
use crate::problem::Problem;
use crate::state::Shared;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use serde::Serialize;
use tessera_protocol::client::{Request, Response};
use utoipa::ToSchema;

/// A job that was accepted.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Accepted {
    /// Id of the job.
    job: String,
}

/// Submit a job
///
/// Its id is a UUID that the client makes: the same request again is harmless. All its files must
/// have been uploaded. The answer comes once the job is durable.
#[utoipa::path(put, path = "/jobs/{job}", tag = "jobs", params(("job" = String, Path)),
    request_body = SubmitForm, responses((status = 201, body = Accepted),
    (status = 400, body = Problem), (status = 401, body = Problem),
    (status = 403, body = Problem), (status = 404, body = Problem),
    (status = 422, body = Problem), (status = 503, body = Problem)))]
pub(crate) async fn submit(
    State(server): State<Shared>,
    signed: Signed,
    Path(job): Path<String>,
    Json(mut form): Json<SubmitForm>,
) -> Result<(StatusCode, axum::Json<Accepted>), Problem> {
    let job = id(&job).map_err(|_| Problem::form(format!("{job:?} is not a UUID")))?;
    job_inputs::complete(&server, &signed, &mut form).await?;
    let spec = Box::new(spec(form)?);
    match ask(&server, signed.caller(), Request::Submit { job, spec }).await? {
        Response::Accepted(job) => {
            Ok((StatusCode::CREATED, axum::Json(Accepted { job: job.to_string() })))
        }
        _ => Err(stopping()),
    }
}
