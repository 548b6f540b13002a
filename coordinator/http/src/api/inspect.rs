//! Looking at a job before it is submitted.

use super::job_inputs;
use super::submit_form::{SubmitForm, spec};
use crate::auth::Signed;
use crate::forms::Json;
use crate::inspect::Seen;
use crate::problem::{Problem, stopping};
use crate::state::Shared;
use axum::extract::State;
use axum::http::StatusCode;
use serde::Serialize;
use serde_json::Value;
use std::time::Duration;
use utoipa::ToSchema;

/// Longest wait until others have looked at their scenes.
const TURN_WITHIN: Duration = Duration::from_secs(60);

/// What is known of a job before it is submitted.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Inspection {
    /// Everything that `tessera inspect --json` prints; null for a job that computes.
    #[schema(value_type = Option<Object>)]
    report: Value,
    /// What `tessera inspect` prints.
    lines: Vec<Line>,
    /// Memory that a device needs, in bytes, for the field of this name when the job is submitted;
    /// 0: unknown.
    device_bytes: u64,
}

/// A line about a scene.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Line {
    /// What it is about, such as `camera`. A name can be there several times.
    name: String,
    /// What there is.
    value: String,
}

impl From<Seen> for Inspection {
    fn from(seen: Seen) -> Self {
        let Seen { report, lines, device_bytes } = seen;
        let lines = lines.into_iter().map(|(name, value)| Line { name, value }).collect();
        Self { report, lines, device_bytes }
    }
}

/// Look at a job before it is submitted
///
/// The job is checked, and its scene is read, as if it were submitted with `PUT /jobs/{job}`.
/// Nothing is kept but its files, which must have been uploaded.
#[utoipa::path(post, path = "/inspect", tag = "jobs", request_body = SubmitForm,
    responses((status = 200, body = Inspection), (status = 400, body = Problem),
    (status = 401, body = Problem), (status = 403, body = Problem),
    (status = 422, body = Problem), (status = 429, body = Problem),
    (status = 503, body = Problem)))]
pub(crate) async fn inspect(
    State(server): State<Shared>,
    signed: Signed,
    Json(mut form): Json<SubmitForm>,
) -> Result<axum::Json<Inspection>, Problem> {
    job_inputs::complete(&server, &signed, &mut form).await?;
    let spec = spec(form)?;
    let asking = server.looks.enter(signed.caller().number());
    let _asking = asking.ok_or_else(|| {
        let text = "you look at another scene just now; wait until that ends";
        Problem::new(StatusCode::TOO_MANY_REQUESTS, text)
    })?;
    let turn = tokio::time::timeout(TURN_WITHIN, server.looks.turn.acquire()).await;
    let _turn = turn.map_err(|_| busy())?.map_err(|_| stopping())?;
    let staged = server.api.stage(signed.caller(), spec).await?;
    let Some(inspector) = server.looks.inspector.clone() else {
        let text = "this coordinator reads no scenes; `tessera inspect` reads one on your machine";
        return Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, text));
    };
    let seen = tokio::task::spawn_blocking(move || match staged.spec().kind.render() {
        Some(render) => inspector.inspect(staged.folder(), render),
        None => Ok(Seen { report: Value::Null, lines: Vec::new(), device_bytes: 0 }),
    });
    let seen = seen.await.map_err(|_| stopping())?;
    let seen = seen.map_err(|text| Problem::new(StatusCode::UNPROCESSABLE_ENTITY, text))?;
    Ok(axum::Json(seen.into()))
}

fn busy() -> Problem {
    let text = "others look at scenes now; try again in a minute";
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, text)
}
