//! Jobs: listed, shown, changed.

use crate::asking::{ask, stopping};
use crate::auth::Signed;
use crate::forms::{Asked, Json};
use crate::problem::Problem;
use crate::state::Shared;
use crate::views::{Changed, Frame, Job, JobDetail, JobPage};
use axum::extract::{Path, State};
use serde::{Deserialize, Deserializer};
use tessera_protocol::JobId;
use tessera_protocol::client::{Request, Response};
use tessera_protocol::job::JobEdit;
use tessera_protocol::selection::{JobChange, JobOrder, JobQuery, JobSelection, JobsChange};
use tessera_protocol::status::JobState;
use utoipa::{IntoParams, ToSchema};

/// Which jobs are listed. Without a condition, all.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct JobsAsked {
    /// Ids, their beginnings (four characters or more) or whole names, by comma.
    pub(crate) job: Option<String>,
    /// Owner: the name, or `#` and the number of the identity.
    pub(crate) owner: Option<String>,
    /// States by comma: `queued`, `running`, `paused`, `done`, `failed`, `cancelled`.
    pub(crate) state: Option<String>,
    /// Least number of seconds since the job ended or, while it is open, since it was submitted.
    pub(crate) older_than_secs: Option<u64>,
    /// Pattern of the whole name: `*` is any text, `?` one character.
    pub(crate) name: Option<String>,
    /// Name that the jobs of one submission share.
    pub(crate) batch: Option<String>,
    /// Most jobs that are selected: the newest.
    pub(crate) limit: Option<u32>,
    /// `next` of the page before.
    pub(crate) cursor: Option<String>,
    /// Most jobs of a page, at most 1,024.
    pub(crate) rows: Option<u32>,
    /// Order: `newest` (the default), `name`, `owner`, `priority`, `state` or `progress`.
    pub(crate) order: Option<String>,
}

impl JobsAsked {
    /// The query of the coordinator.
    pub(crate) fn query(self) -> Result<JobQuery, Problem> {
        let before = match self.cursor.as_deref() {
            None | Some("") => None,
            Some(text) => {
                Some(text.parse().map_err(|_| Problem::form("the cursor is not of a page"))?)
            }
        };
        let states = texts(self.state.as_deref()).map(state).collect::<Result<_, _>>();
        let order = self.order.as_deref().map(order).transpose()?.unwrap_or_default();
        let selection = JobSelection {
            jobs: texts(self.job.as_deref()).map(str::to_owned).collect(),
            owner: self.owner.filter(|owner| !owner.is_empty()),
            states: states?,
            older_than_secs: self.older_than_secs,
            name: self.name.filter(|name| !name.is_empty()),
            batch: self.batch.filter(|batch| !batch.is_empty()),
            limit: self.limit,
        };
        Ok(JobQuery { selection, before, rows: self.rows, order })
    }
}

fn texts(list: Option<&str>) -> impl Iterator<Item = &str> {
    list.unwrap_or_default().split(',').map(str::trim).filter(|text| !text.is_empty())
}

fn order(word: &str) -> Result<JobOrder, Problem> {
    JobOrder::ALL.into_iter().find(|order| order.name() == word).ok_or_else(|| {
        let known = JobOrder::ALL.map(JobOrder::name).join(", ");
        Problem::form(format!("there is no order {word:?}; the orders are {known}"))
    })
}

fn state(word: &str) -> Result<JobState, Problem> {
    JobState::ALL.into_iter().find(|state| state.name() == word).ok_or_else(|| {
        let known = JobState::ALL.map(JobState::name).join(", ");
        Problem::form(format!("there is no state {word:?}; the states are {known}"))
    })
}

/// List jobs
///
/// Newest first, page by page.
#[utoipa::path(get, path = "/jobs", operation_id = "jobs", tag = "jobs", params(JobsAsked),
    responses(
    (status = 200, body = JobPage), (status = 400, body = Problem),
    (status = 401, body = Problem), (status = 404, body = Problem),
    (status = 422, body = Problem)))]
pub(crate) async fn list(
    State(server): State<Shared>,
    signed: Signed,
    Asked(asked): Asked<JobsAsked>,
) -> Result<axum::Json<JobPage>, Problem> {
    page(&server, &signed, asked).await.map(axum::Json)
}

/// One page of jobs.
pub(crate) async fn page(
    server: &Shared,
    signed: &Signed,
    asked: JobsAsked,
) -> Result<JobPage, Problem> {
    let request = Request::Jobs(asked.query()?);
    let Response::Jobs(page) = ask(server, signed.caller(), request).await? else {
        return Err(stopping());
    };
    let jobs = page.jobs.iter().map(Job::from).collect();
    Ok(JobPage { jobs, next: page.next.map(|next| next.to_string()) })
}

/// What to do with which jobs.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ChangeForm {
    /// What to do.
    change: Change,
    /// Reason of a cancel, for the jobs' notes.
    #[serde(default)]
    reason: String,
    /// Ids, their beginnings or whole names.
    #[serde(default)]
    jobs: Vec<String>,
    /// Owner of the jobs: the name, or `#` and the number of the identity.
    owner: Option<String>,
    /// States of the jobs.
    #[serde(default)]
    states: Vec<String>,
    /// Least number of seconds since the job ended or was submitted.
    older_than_secs: Option<u64>,
    /// Pattern of the whole name.
    name: Option<String>,
    /// Name that the jobs of one submission share.
    batch: Option<String>,
    /// Most jobs that are selected: the newest.
    limit: Option<u32>,
    /// Says that a selection without a condition is meant.
    #[serde(default)]
    all: bool,
    /// Only tells what would be done.
    #[serde(default)]
    dry_run: bool,
}

/// What to do with jobs.
#[derive(Clone, Copy, Debug, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum Change {
    /// Ends them. Finished frames are kept.
    Cancel,
    /// Gives them no more work until they are resumed.
    Pause,
    /// Gives paused jobs work again.
    Resume,
    /// Renders their failed frames again.
    Retry,
    /// Deletes jobs that have ended, and their frames.
    Forget,
}

impl ChangeForm {
    fn change(self) -> Result<JobsChange, Problem> {
        let change = match self.change {
            Change::Cancel => JobChange::Cancel { reason: self.reason },
            Change::Pause => JobChange::Pause,
            Change::Resume => JobChange::Resume,
            Change::Retry => JobChange::Retry,
            Change::Forget => JobChange::Forget,
        };
        let states = self.states.iter().map(|word| state(word)).collect::<Result<_, _>>()?;
        let selection = JobSelection {
            jobs: self.jobs,
            owner: self.owner,
            states,
            older_than_secs: self.older_than_secs,
            name: self.name,
            batch: self.batch,
            limit: self.limit,
        };
        Ok(JobsChange { change, selection, all: self.all, dry_run: self.dry_run })
    }
}

/// Cancel, pause, resume, retry or forget jobs
///
/// One job or many, in one step. What was refused is in the answer.
#[utoipa::path(post, path = "/jobs/change", tag = "jobs", request_body = ChangeForm, responses(
    (status = 200, body = Changed), (status = 400, body = Problem),
    (status = 401, body = Problem), (status = 403, body = Problem),
    (status = 404, body = Problem), (status = 422, body = Problem)))]
pub(crate) async fn change(
    State(server): State<Shared>,
    signed: Signed,
    Json(form): Json<ChangeForm>,
) -> Result<axum::Json<Changed>, Problem> {
    let request = Request::ChangeJobs(Box::new(form.change()?));
    match ask(&server, signed.caller(), request).await? {
        Response::Changed(changed) => Ok(axum::Json(Changed::from(&changed))),
        _ => Err(stopping()),
    }
}

/// The id in an address.
pub(crate) fn id(text: &str) -> Result<JobId, Problem> {
    text.parse().map_err(|_| Problem::not_found(format!("there is no job {text:?}")))
}

/// Show a job
#[utoipa::path(get, path = "/jobs/{job}", operation_id = "job", tag = "jobs",
    params(("job" = String, Path)), responses(
    (status = 200, body = JobDetail), (status = 401, body = Problem),
    (status = 404, body = Problem)))]
pub(crate) async fn one(
    State(server): State<Shared>,
    signed: Signed,
    Path(job): Path<String>,
) -> Result<axum::Json<JobDetail>, Problem> {
    detail(&server, &signed, &job).await.map(|detail| axum::Json(JobDetail::from(&detail)))
}

/// Everything about one job.
pub(crate) async fn detail(
    server: &Shared,
    signed: &Signed,
    job: &str,
) -> Result<tessera_protocol::status::JobDetail, Problem> {
    match ask(server, signed.caller(), Request::Job(id(job)?)).await? {
        Response::Job(detail) => Ok(*detail),
        _ => Err(stopping()),
    }
}

/// What is to be different. What is left out stays as it is.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct EditForm {
    /// New name of the job and of its files.
    name: Option<String>,
    /// New priority, 0 to 100.
    #[schema(maximum = 100)]
    priority: Option<u8>,
    /// New pool; null allows any node.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<String>)]
    pool: Option<Option<String>>,
    /// Most nodes that work on the job at a time; null is no bound.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<u32>)]
    max_nodes: Option<Option<u32>>,
    /// Seconds since the Unix epoch before which no further unit begins; null lets the job begin at
    /// once.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<u64>)]
    not_before: Option<Option<u64>>,
}

/// Tells null from a field that is left out.
fn given<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    from: D,
) -> Result<Option<Option<T>>, D::Error> {
    Option::deserialize(from).map(Some)
}

/// Change a job that has not ended
#[utoipa::path(patch, path = "/jobs/{job}", tag = "jobs", params(("job" = String, Path)),
    request_body = EditForm, responses((status = 200, body = JobDetail),
    (status = 400, body = Problem), (status = 401, body = Problem),
    (status = 403, body = Problem), (status = 404, body = Problem),
    (status = 422, body = Problem)))]
pub(crate) async fn edit(
    State(server): State<Shared>,
    signed: Signed,
    Path(job): Path<String>,
    Json(form): Json<EditForm>,
) -> Result<axum::Json<JobDetail>, Problem> {
    let EditForm { name, priority, pool, max_nodes, not_before } = form;
    let edit = Box::new(JobEdit { name, priority, pool, max_nodes, not_before });
    ask(&server, signed.caller(), Request::EditJob { job: id(&job)?, edit }).await?;
    detail(&server, &signed, &job).await.map(|detail| axum::Json(JobDetail::from(&detail)))
}

/// Which frames of a job.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct FramesAsked {
    /// Position of the first frame among the job's frames.
    #[serde(default)]
    from: u32,
    /// Most frames.
    #[serde(default = "all")]
    most: u32,
}

fn all() -> u32 {
    u32::MAX
}

/// List the frames of a job
///
/// In order, at most 16,384 at a time: ask again from the number of those that came.
#[utoipa::path(get, path = "/jobs/{job}/frames", tag = "jobs", params(("job" = String, Path),
    FramesAsked), responses((status = 200, body = Vec<Frame>), (status = 400, body = Problem),
    (status = 401, body = Problem), (status = 404, body = Problem)))]
pub(crate) async fn frames(
    State(server): State<Shared>,
    signed: Signed,
    Path(job): Path<String>,
    Asked(FramesAsked { from, most }): Asked<FramesAsked>,
) -> Result<axum::Json<Vec<Frame>>, Problem> {
    let frames = server.api.some_frames(signed.caller(), id(&job)?, (from, most)).await?;
    Ok(axum::Json(frames.iter().map(Frame::from).collect()))
}

/// Show what a compute job's kernel printed, and what compilers said of it
#[utoipa::path(get, path = "/jobs/{job}/kernel-text", tag = "jobs",
    params(("job" = String, Path)), responses((status = 200, body = String),
    (status = 401, body = Problem), (status = 403, body = Problem),
    (status = 404, body = Problem)))]
pub(crate) async fn kernel_text(
    State(server): State<Shared>,
    signed: Signed,
    Path(job): Path<String>,
) -> Result<String, Problem> {
    match ask(&server, signed.caller(), Request::KernelText(id(&job)?)).await? {
        Response::KernelText(text) => Ok(text),
        _ => Err(stopping()),
    }
}
