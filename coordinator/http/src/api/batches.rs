//! Submitting all jobs of a template together: all of them, or none.

use super::templates::{TemplateForm, planned};
use crate::asking::{ask, stopping};
use crate::auth::Signed;
use crate::forms::Json;
use crate::problem::Problem;
use crate::state::Shared;
use crate::templates::{BatchAsked, PlannedJob};
use axum::extract::{Path, State};
use axum::http::StatusCode;
use futures_util::stream::{self, StreamExt};
use serde::Serialize;
use std::collections::BTreeMap;
use tessera_protocol::JobSpec;
use tessera_protocol::client::{Request, Response};
use tessera_protocol::job::independent_runs;
use tessera_protocol::names;
use tessera_protocol::selection::{JobChange, JobQuery, JobSelection, JobsChange};
use utoipa::ToSchema;

/// Jobs that are on their way at a time.
const AT_A_TIME: usize = 64;
/// Reason of the cancel of jobs whose others were refused.
const HALF: &str = "another job of its template was refused";

/// Jobs that were accepted together.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AcceptedBatch {
    /// Name that they share, by which all are listed and changed together.
    batch: String,
    /// The jobs, each after those that it waits for.
    jobs: Vec<AcceptedJob>,
    /// What people should know, a line each.
    notes: Vec<String>,
}

/// A job that was accepted with others.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AcceptedJob {
    /// Its id.
    job: String,
    /// Its name.
    name: String,
    /// Name of its step.
    step: String,
    /// Values that the sweep gives it, by variable.
    values: BTreeMap<String, String>,
}

/// Submit the jobs of a template
///
/// The name of the batch is the client's, such as that of the template with some random letters:
/// the same request again is harmless. All files must have been uploaded. The answer comes once all
/// jobs are durable. If one is refused, those that were accepted with it are cancelled.
#[utoipa::path(put, path = "/batches/{batch}", operation_id = "submit_template",
    tag = "jobs", params(("batch" = String, Path)),
    request_body = TemplateForm, responses((status = 201, body = AcceptedBatch),
    (status = 400, body = Problem), (status = 401, body = Problem),
    (status = 403, body = Problem), (status = 422, body = Problem),
    (status = 429, body = Problem), (status = 503, body = Problem)))]
pub(crate) async fn submit(
    State(server): State<Shared>,
    signed: Signed,
    Path(batch): Path<String>,
    Json(form): Json<TemplateForm>,
) -> Result<(StatusCode, axum::Json<AcceptedBatch>), Problem> {
    names::check(&batch).map_err(|problem| {
        Problem::new(StatusCode::UNPROCESSABLE_ENTITY, format!("batch: {problem}"))
    })?;
    let asked = BatchAsked { batch: batch.clone(), seed: seed(signed.caller().number(), &batch) };
    let (jobs, notes) = planned(&server, &signed, form, asked).await?;
    let is_new = is_absent(&server, &signed, &batch).await?;
    if let Err(problem) = submit_all(&server, &signed, &jobs).await {
        return Err(match is_new {
            true => taken_back(&server, &signed, &batch, problem).await,
            // Jobs of an earlier request stay: only this one is refused.
            false => problem,
        });
    }
    let accepted = |(job, spec): (PlannedJob, JobSpec)| AcceptedJob {
        job: job.job.to_string(),
        name: spec.name,
        step: job.step,
        values: job.values.into_iter().collect(),
    };
    let jobs = jobs.into_iter().map(accepted).collect();
    Ok((StatusCode::CREATED, axum::Json(AcceptedBatch { batch, jobs, notes })))
}

/// What the ids of a batch are made of: nobody else makes the same.
fn seed(identity: u64, batch: &str) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new_derive_key("tessera batch 1");
    hasher.update(&identity.to_le_bytes()).update(batch.as_bytes());
    *hasher.finalize().as_bytes()
}

/// Whether the caller has no job of this batch yet.
async fn is_absent(server: &Shared, signed: &Signed, batch: &str) -> Result<bool, Problem> {
    let owner = Some(format!("#{}", signed.caller().number()));
    let selection = JobSelection { owner, ..selection(batch) };
    let query = JobQuery { selection, rows: Some(1), ..JobQuery::default() };
    match ask(server, signed.caller(), Request::Jobs(query)).await? {
        Response::Jobs(page) => Ok(page.jobs.is_empty()),
        _ => Err(stopping()),
    }
}

fn selection(batch: &str) -> JobSelection {
    JobSelection { batch: Some(batch.to_owned()), ..JobSelection::default() }
}

/// Submits jobs, many at a time, each after those that it waits for.
async fn submit_all(
    server: &Shared,
    signed: &Signed,
    jobs: &[(PlannedJob, JobSpec)],
) -> Result<(), Problem> {
    for together in independent_runs(jobs, |(planned, spec)| (planned.job, spec.after.as_slice())) {
        let specs = together.iter().map(|(planned, _)| (planned.job, planned.spec.clone()));
        let requests = specs.collect::<Vec<_>>().into_iter().map(|(job, spec)| {
            ask(server, signed.caller(), Request::Submit { job, spec: Box::new(spec) })
        });
        let mut answers = stream::iter(requests).buffer_unordered(AT_A_TIME);
        while let Some(answer) = answers.next().await {
            let Response::Accepted(_) = answer? else { return Err(stopping()) };
        }
    }
    Ok(())
}

/// Nothing of a batch stays where a job of it was refused.
async fn taken_back(server: &Shared, signed: &Signed, batch: &str, problem: Problem) -> Problem {
    let change = JobChange::Cancel { reason: HALF.to_owned() };
    let change = JobsChange { change, selection: selection(batch), all: false, dry_run: false };
    let said = match ask(server, signed.caller(), Request::ChangeJobs(Box::new(change))).await {
        Ok(Response::Changed(changed)) if changed.jobs.is_empty() => return problem,
        Ok(Response::Changed(changed)) => {
            format!("{} jobs of the template were accepted, and are cancelled", changed.jobs.len())
        }
        _ => format!("jobs of batch {batch} may have been accepted; cancel them by that name"),
    };
    problem.with_end(&said)
}
