//! A job to submit, as JSON describes it.

use crate::problem::Problem;
use axum::http::StatusCode;
use serde::Deserialize;
use serde_json::Value;
use tessera_protocol::job::{After, JobForm, RawJobSpec, Until};
use tessera_protocol::{BlobHash, JobId};
use utoipa::ToSchema;

/// A job to render or to compute.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SubmitForm {
    /// Name of the job and of its files.
    name: String,
    /// Priority, 0 to 100; 50 if it is left out.
    #[schema(maximum = 100)]
    priority: Option<u8>,
    /// Pool whose nodes can work on the job.
    pool: Option<String>,
    /// Most nodes that work on the job at a time.
    max_nodes: Option<u32>,
    /// Memory that a device needs for the job, in bytes.
    #[serde(default)]
    pub(super) device_bytes: u64,
    /// Jobs that the job waits for, at most 64.
    #[serde(default)]
    pub(super) after: Vec<AfterForm>,
    /// Seconds since the Unix epoch before which no unit of the job begins.
    not_before: Option<u64>,
    /// Name that the jobs of one submission share, by which all of them are listed and changed
    /// together.
    batch: Option<String>,
    /// Targets of events that get those of the job, at most 16: such as the coordinator's file of
    /// events has with `on-request`.
    #[serde(default)]
    notify: Vec<String>,
    /// What to render: `scene`, `files` with `path`, `hash` and `length`, `width`, `height`, `spp`,
    /// `frames` and the other options of `tessera submit`. Each option that is left out has its
    /// default.
    #[schema(value_type = Option<Object>)]
    render: Option<Value>,
    /// What to compute. Either this or `render` is there. An input of `inputs` has the `hash` and
    /// the `length` of a file, `element` and `shape`; or it is `{"name", "from": {"job",
    /// "output"}}`: the frames of another job, which is waited for, with the name of an output
    /// where that job has several. The bytes of these inputs are added to `device_bytes`.
    #[schema(value_type = Option<Object>)]
    pub(super) compute: Option<Value>,
}

/// A job that another one waits for.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AfterForm {
    /// Id of the job.
    job: String,
    /// `success` (the default): until all its frames are finished. `end`: until it has ended,
    /// whichever way. `frames`: each frame waits until the frame of its number is finished.
    until: Option<String>,
}

impl AfterForm {
    /// Waits until all frames of a job are finished.
    pub(super) fn success_of(job: JobId) -> Self {
        Self { job: job.to_string(), until: None }
    }

    /// Returns whether it is this job that is waited for.
    pub(super) fn is_for(&self, job: JobId) -> bool {
        self.job.parse() == Ok(job)
    }

    fn after(self) -> Result<After, Problem> {
        let Self { job, until } = self;
        let wrong = |text| Problem::new(StatusCode::UNPROCESSABLE_ENTITY, format!("after: {text}"));
        let known = |word: &str| Until::ALL.into_iter().find(|until| until.name() == word);
        let until = until.map_or(Ok(Until::Success), |word| {
            let words = Until::ALL.map(Until::name).join(", ");
            known(&word).ok_or_else(|| wrong(format!("until is {word:?}; it can be {words}")))
        })?;
        let job = job.parse().map_err(|_| wrong(format!("{job:?} is not the id of a job")))?;
        Ok(After { job, until })
    }
}

/// The job that a form describes.
pub(super) fn spec(form: SubmitForm) -> Result<RawJobSpec, Problem> {
    let SubmitForm { name, priority, pool, max_nodes, device_bytes, .. } = form;
    let SubmitForm { after, not_before, batch, notify, render, compute, .. } = form;
    let wrong = |what: &str, error: serde_json::Error| {
        Problem::new(StatusCode::UNPROCESSABLE_ENTITY, format!("{what}: {error}"))
    };
    let form = JobForm {
        name,
        priority,
        pool,
        max_nodes,
        device_bytes,
        after: after.into_iter().map(AfterForm::after).collect::<Result<_, _>>()?,
        not_before,
        batch,
        notify,
        render: render
            .map(|value| serde_json::from_value(with_bytes(value)))
            .transpose()
            .map_err(|error| wrong("render", error))?,
        compute: compute
            .map(|value| serde_json::from_value(with_bytes(value)))
            .transpose()
            .map_err(|error| wrong("compute", error))?,
    };
    form.spec().map_err(|error| Problem::new(StatusCode::UNPROCESSABLE_ENTITY, error.to_string()))
}

/// Turns hexadecimal digits under the name `hash` into lists of bytes.
fn with_bytes(value: Value) -> Value {
    match value {
        Value::Array(items) => Value::Array(items.into_iter().map(with_bytes).collect()),
        Value::Object(fields) => Value::Object(
            fields
                .into_iter()
                .map(|(name, value)| {
                    let text = value.as_str().filter(|_| name == "hash");
                    let hash = text.and_then(|text| text.parse::<BlobHash>().ok());
                    let value =
                        hash.map_or_else(|| with_bytes(value), |hash| hash.0.to_vec().into());
                    (name, value)
                })
                .collect(),
        ),
        other => other,
    }
}
