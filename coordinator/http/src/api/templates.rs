//! Templates: what one takes, and the jobs that it would make. They are read in a process of their
//! own, which sees their files and nothing else.

use crate::asking::ask;
use crate::auth::Signed;
use crate::forms::Json;
use crate::inspect::Inspector;
use crate::problem::{Problem, stopping};
use crate::state::Shared;
use crate::templates::{BatchAsked, PlannedJob, TemplateAsked, TemplateOutline, TemplatePlan};
use axum::extract::State;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tessera_coordinator::api::StagedFiles;
use tessera_protocol::client::{Request, Response};
use tessera_protocol::job::{AssetFile, Until};
use tessera_protocol::preset::Preset;
use tessera_protocol::{BlobHash, JobSpec};
use utoipa::ToSchema;

/// Longest wait until others have looked at what is theirs.
const TURN_WITHIN: Duration = Duration::from_secs(60);

/// A template, the values that are set, and its files.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TemplateForm {
    /// Text of the template, as TOML. Either this or `preset` is there.
    template: Option<String>,
    /// Name of a preset of the farm.
    preset: Option<String>,
    /// Whether it is one of Open Job Description, as YAML or JSON.
    #[serde(default)]
    openjd: bool,
    /// Name in place of the template's own.
    name: Option<String>,
    /// Values of parameters by name: texts, numbers, true, false, or lists of them.
    #[serde(default)]
    #[schema(value_type = Object)]
    set: BTreeMap<String, Value>,
    /// Files beside the template, which must have been uploaded.
    #[serde(default)]
    files: Vec<FileForm>,
}

/// A file beside a template.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct FileForm {
    /// Path in the folder of the template, with `/`.
    path: String,
    /// BLAKE3 of its bytes, in hexadecimal digits.
    hash: String,
    /// Length in bytes.
    length: u64,
}

/// The jobs that a template makes.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Plan {
    /// Each after those that it waits for.
    jobs: Vec<PlanJob>,
    /// Number of files that all jobs need together.
    files: usize,
    /// Their bytes.
    bytes: u64,
    /// What people should know, a line each.
    notes: Vec<String>,
}

/// A job that a template makes.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PlanJob {
    /// Its name.
    pub(super) name: String,
    /// Name of its step.
    pub(super) step: String,
    /// Values that the sweep gives it, by variable.
    pub(super) values: BTreeMap<String, String>,
    /// `render` or `compute`.
    kind: &'static str,
    /// Its frames.
    frames: String,
    /// Names of the jobs that it waits for, with `:frames` where it waits frame by frame.
    after: Vec<String>,
}

/// See what a template takes
///
/// Its parameters, and the files that have to be uploaded with the values that are set. Files of
/// the request are not looked at.
#[utoipa::path(post, path = "/templates/outline", operation_id = "outline_template",
    tag = "jobs", request_body = TemplateForm,
    responses((status = 200, body = TemplateOutline), (status = 400, body = Problem),
    (status = 401, body = Problem), (status = 403, body = Problem),
    (status = 422, body = Problem), (status = 429, body = Problem),
    (status = 503, body = Problem)))]
pub(crate) async fn outline(
    State(server): State<Shared>,
    signed: Signed,
    Json(form): Json<TemplateForm>,
) -> Result<axum::Json<TemplateOutline>, Problem> {
    let asked = asked(&server, &signed, &form).await?;
    let look = move |reader: &dyn Inspector, _: &Path| reader.outline(&asked);
    Ok(axum::Json(with_files(&server, &signed, Vec::new(), look).await?))
}

/// See the jobs that a template makes
///
/// All of them are checked as if they were submitted with `PUT /batches/{batch}`. Nothing is kept
/// but the files, which must have been uploaded.
#[utoipa::path(post, path = "/templates/plan", operation_id = "plan_template",
    tag = "jobs", request_body = TemplateForm,
    responses((status = 200, body = Plan), (status = 400, body = Problem),
    (status = 401, body = Problem), (status = 403, body = Problem),
    (status = 422, body = Problem), (status = 429, body = Problem),
    (status = 503, body = Problem)))]
pub(crate) async fn plan(
    State(server): State<Shared>,
    signed: Signed,
    Json(form): Json<TemplateForm>,
) -> Result<axum::Json<Plan>, Problem> {
    let batch = BatchAsked { batch: "plan".to_owned(), seed: [0; 32] };
    let (jobs, notes) = planned(&server, &signed, form, batch).await?;
    let mut files = BTreeMap::new();
    for (_, spec) in &jobs {
        let of_spec = spec.kind.files();
        files.extend(of_spec.into_iter().map(|(_, hash, length)| (hash, length)));
    }
    let shown = jobs.iter().map(|(planned, spec)| shown(planned, spec, &jobs)).collect();
    let bytes = files.values().sum();
    Ok(axum::Json(Plan { jobs: shown, files: files.len(), bytes, notes }))
}

/// Jobs of a template with their checked specs, and what people should know.
pub(super) type Planned = (Vec<(PlannedJob, JobSpec)>, Vec<String>);

/// Makes and checks the jobs of a template.
pub(super) async fn planned(
    server: &Shared,
    signed: &Signed,
    form: TemplateForm,
    batch: BatchAsked,
) -> Result<Planned, Problem> {
    let asked = asked(server, signed, &form).await?;
    let files = form.files.into_iter().map(FileForm::asset).collect::<Result<_, _>>()?;
    let named = batch.batch.clone();
    let read = move |reader: &dyn Inspector, folder: &Path| reader.plan(folder, &asked, &batch);
    let TemplatePlan { jobs, notes } = with_files(server, signed, files, read).await?;
    let check = |job: PlannedJob| match job.checked() {
        Ok(spec) if spec.batch.as_deref() == Some(&named) => Ok((job, spec)),
        Ok(_) => Err(stopping()),
        Err(text) => Err(unprocessable(format!("step `{}`: {text}", job.step))),
    };
    Ok((jobs.into_iter().map(check).collect::<Result<_, _>>()?, notes))
}

/// Lays files out and reads what belongs to them, one after the other for all who ask.
async fn with_files<T: Send + 'static>(
    server: &Shared,
    signed: &Signed,
    files: Vec<AssetFile>,
    read: impl FnOnce(&dyn Inspector, &Path) -> Result<T, String> + Send + 'static,
) -> Result<T, Problem> {
    let looks = &server.looks;
    let asking = looks.enter(signed.caller().number());
    let _asking = asking.ok_or_else(|| {
        let text = "you look at another scene or template just now; wait until that ends";
        Problem::new(StatusCode::TOO_MANY_REQUESTS, text)
    })?;
    let turn = tokio::time::timeout(TURN_WITHIN, looks.turn.acquire()).await;
    let _turn = turn.map_err(|_| busy())?.map_err(|_| stopping())?;
    let staged: StagedFiles = server.api.stage_files(signed.caller(), files).await?;
    let Some(reader): Option<Arc<dyn Inspector>> = looks.inspector.clone() else {
        let text =
            "this coordinator reads no templates; `tessera submit` reads one on your machine";
        return Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, text));
    };
    let found = tokio::task::spawn_blocking(move || read(&*reader, staged.folder()));
    found.await.map_err(|_| stopping())?.map_err(unprocessable)
}

fn busy() -> Problem {
    let text = "others look at scenes and templates now; try again in a minute";
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, text)
}

fn unprocessable(text: String) -> Problem {
    Problem::new(StatusCode::UNPROCESSABLE_ENTITY, text)
}

/// Checks a template that is to be published.
pub(super) async fn check(server: &Shared, signed: &Signed, text: String) -> Result<(), Problem> {
    let asked = TemplateAsked { text, is_openjd: false, name: None, set: Vec::new() };
    let look = move |reader: &dyn Inspector, _: &Path| reader.outline(&asked);
    with_files(server, signed, Vec::new(), look).await.map(drop)
}

/// The preset of a name.
pub(super) async fn preset_of(
    server: &Shared,
    signed: &Signed,
    name: String,
) -> Result<Preset, Problem> {
    match ask(server, signed.caller(), Request::Preset { name }).await? {
        Response::Preset(preset) => Ok(*preset),
        _ => Err(stopping()),
    }
}

async fn asked(
    server: &Shared,
    signed: &Signed,
    form: &TemplateForm,
) -> Result<TemplateAsked, Problem> {
    let text = match (&form.template, &form.preset) {
        (Some(text), None) => text.clone(),
        (None, Some(_)) if form.openjd => {
            return Err(unprocessable("a preset is no template of Open Job Description".into()));
        }
        (None, Some(name)) => preset_of(server, signed, name.clone()).await?.text,
        _ => return Err(unprocessable("either `template` or `preset` has to be there".into())),
    };
    let mut set = Vec::new();
    for (name, value) in &form.set {
        if name.contains('=') {
            return Err(unprocessable(format!("set: {name:?} is no name of a parameter")));
        }
        let text = text_of(value).ok_or_else(|| {
            unprocessable(format!("set: {name} has to be a text, a number, true, false or a list"))
        })?;
        set.push(format!("{name}={text}"));
    }
    Ok(TemplateAsked { text, is_openjd: form.openjd, name: form.name.clone(), set })
}

/// A value as it is written after `--set NAME=`.
fn text_of(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(value) => Some(value.to_string()),
        Value::Array(values) => {
            let texts = values.iter().map(|value| match value {
                Value::Array(_) => None,
                value => text_of(value),
            });
            Some(texts.collect::<Option<Vec<_>>>()?.join(","))
        }
        Value::Null | Value::Object(_) => None,
    }
}

impl FileForm {
    fn asset(self) -> Result<AssetFile, Problem> {
        let Self { path, hash, length } = self;
        let hash: BlobHash = hash
            .parse()
            .map_err(|_| unprocessable(format!("files: the hash of {path:?} is none")))?;
        Ok(AssetFile { path, hash, length })
    }
}

/// A job as it is told before it is submitted.
pub(super) fn shown(job: &PlannedJob, spec: &JobSpec, all: &[(PlannedJob, JobSpec)]) -> PlanJob {
    let name_of = |after: &tessera_protocol::job::After| {
        let other = all.iter().find(|(other, _)| other.job == after.job)?;
        Some(match after.until {
            Until::Frames => format!("{}:frames", other.1.name),
            Until::Success | Until::End => other.1.name.clone(),
        })
    };
    PlanJob {
        name: spec.name.clone(),
        step: job.step.clone(),
        values: job.values.iter().cloned().collect(),
        kind: if spec.kind.render().is_some() { "render" } else { "compute" },
        frames: spec.kind.frames().to_string(),
        after: spec.after.iter().filter_map(name_of).collect(),
    }
}
