//! Inputs of a compute job that are frames of other jobs: what they are as arrays is looked up, so
//! that a client names the job and no more.

use super::jobs;
use super::submit_form::{AfterForm, SubmitForm};
use crate::auth::Signed;
use crate::problem::Problem;
use crate::state::Shared;
use axum::http::StatusCode;
use serde::Deserialize;
use serde_json::Value;
use tessera_protocol::BlobHash;
use tessera_protocol::compute::{FromJob, InputArray};
use tessera_protocol::limits::INPUTS_MAX;

/// An input that names a job, and nothing else.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct InputForm {
    name: String,
    from: FromForm,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct FromForm {
    /// Id of the job.
    job: String,
    /// Which of several outputs.
    output: Option<String>,
}

/// Completes such inputs with type, shape and file, adds their bytes to what a device needs, and
/// their jobs to those that are waited for. Inputs that have all of it stay as they are.
pub(super) async fn complete(
    server: &Shared,
    signed: &Signed,
    form: &mut SubmitForm,
) -> Result<(), Problem> {
    let inputs = form.compute.as_mut().and_then(|compute| compute.get_mut("inputs"));
    let Some(inputs) = inputs.and_then(Value::as_array_mut) else { return Ok(()) };
    // Too many are refused with the rest of the form.
    for input in inputs.iter_mut().take(INPUTS_MAX).filter(|input| is_short(input)) {
        let wrong = |text: String| Problem::new(StatusCode::UNPROCESSABLE_ENTITY, text);
        let read = serde_json::from_value::<InputForm>(input.take());
        let short = read.map_err(|error| wrong(format!("compute: inputs: {error}")))?;
        let InputForm { name, from: FromForm { job, output } } = short;
        let detail = jobs::detail(server, signed, &job).await?;
        let array = detail.spec.kind.frame_array(output.as_deref());
        let array = array.map_err(|text| wrong(format!("input {name:?}: job {job} {text}")))?;
        let job = detail.summary.job;
        let complete = InputArray {
            name,
            hash: BlobHash::default(),
            length: 0,
            element: array.element,
            shape: array.shape,
            from: Some(FromJob { job, file: array.file }),
        };
        form.device_bytes = form.device_bytes.saturating_add(complete.bytes());
        if !form.after.iter().any(|after| after.is_for(job)) {
            form.after.push(AfterForm::success_of(job));
        }
        *input = serde_json::to_value(complete).map_err(|error| wrong(error.to_string()))?;
    }
    Ok(())
}

/// Names a job, and not the file of its frames.
fn is_short(input: &Value) -> bool {
    input.get("from").is_some_and(|from| from.is_object() && from.get("file").is_none())
}
