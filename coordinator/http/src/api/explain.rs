//! Explanations: why a job, a frame or a node stands as it does.

use super::jobs::id;
use crate::asking::{ask, stopping};
use crate::auth::Signed;
use crate::problem::Problem;
use crate::state::Shared;
use crate::views::Explanation;
use axum::extract::{Path, State};
use tessera_protocol::FrameNumber;
use tessera_protocol::client::{Request, Response};
use tessera_protocol::explain::{self, Subject};

/// Asks for an explanation.
pub(crate) async fn of(
    server: &Shared,
    signed: &Signed,
    subject: Subject,
) -> Result<explain::Explanation, Problem> {
    match ask(server, signed.caller(), Request::Explain(subject)).await? {
        Response::Explained(explanation) => Ok(*explanation),
        _ => Err(stopping()),
    }
}

async fn answer(
    server: &Shared,
    signed: &Signed,
    subject: Subject,
) -> Result<axum::Json<Explanation>, Problem> {
    Ok(axum::Json(Explanation::from(&of(server, signed, subject).await?)))
}

/// Explain a job
///
/// Why it waits, who is before it, what would help, and when it should begin and end.
#[utoipa::path(get, path = "/jobs/{job}/explain", operation_id = "explain_job", tag = "jobs",
    params(("job" = String, Path)),
    responses((status = 200, body = Explanation), (status = 401, body = Problem),
    (status = 404, body = Problem)))]
pub(crate) async fn job(
    State(server): State<Shared>,
    signed: Signed,
    Path(job): Path<String>,
) -> Result<axum::Json<Explanation>, Problem> {
    answer(&server, &signed, Subject::Job(id(&job)?)).await
}

/// Explain a frame of a job
#[utoipa::path(get, path = "/jobs/{job}/frames/{frame}/explain", operation_id = "explain_frame",
    tag = "jobs",
    params(("job" = String, Path), ("frame" = String, Path, description = "Number of the frame")),
    responses((status = 200, body = Explanation), (status = 401, body = Problem),
    (status = 404, body = Problem)))]
pub(crate) async fn frame(
    State(server): State<Shared>,
    signed: Signed,
    Path((job, frame)): Path<(String, String)>,
) -> Result<axum::Json<Explanation>, Problem> {
    let none = |_| Problem::not_found(format!("the job has no frame {frame:?}"));
    let number = FrameNumber(frame.parse().map_err(none)?);
    answer(&server, &signed, Subject::Frame { job: id(&job)?, frame: number }).await
}

/// Explain a node
///
/// Why it gets no work, or not all, and what would help.
#[utoipa::path(get, path = "/nodes/{node}/explain", operation_id = "explain_node", tag = "nodes",
    params(("node" = String, Path, description = "Id or name")),
    responses((status = 200, body = Explanation), (status = 401, body = Problem),
    (status = 404, body = Problem), (status = 409, body = Problem)))]
pub(crate) async fn node(
    State(server): State<Shared>,
    signed: Signed,
    Path(node): Path<String>,
) -> Result<axum::Json<Explanation>, Problem> {
    answer(&server, &signed, Subject::Node(node)).await
}
