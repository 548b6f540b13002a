//! Requests about one job: submitting it, editing it, and asking for missing files.

use super::context::{Context, blocking};
use super::targets;
use crate::blobs::{Blobs, GuardedBlobs};
use crate::driver::{Ask, Question};
use tessera_core::Caller as Owner;
use tessera_protocol::client::{RequestError, Response};
use tessera_protocol::job::{JobEdit, JobSpec, RawJobSpec};
use tessera_protocol::{BlobHash, JobId};

/// Most blobs in one question: the files of a scene, and room to spare.
const BLOBS_ASKED_MAX: usize = 1 << 16;

/// Returns the blobs that the coordinator does not have.
pub(super) async fn missing_blobs(
    context: &Context,
    asked: Vec<BlobHash>,
) -> Result<Response, RequestError> {
    if asked.len() > BLOBS_ASKED_MAX {
        return Err(RequestError::Invalid(format!(
            "{} blobs in one question are more than {BLOBS_ASKED_MAX}",
            asked.len()
        )));
    }
    let blobs = context.blobs.clone();
    let missing = move || {
        let found = blobs.claim_all(&asked);
        asked.into_iter().zip(found).filter(|(_, length)| length.is_none()).map(|(hash, _)| hash)
    };
    Ok(Response::Blobs(blocking(move || missing().collect()).await?))
}

/// Changes what a job says of itself, for its owner or for a role that can change every job.
pub(super) async fn edit(
    context: &Context,
    caller: Owner,
    job: JobId,
    edit: JobEdit,
) -> Result<Response, RequestError> {
    let edit = edit.check().map_err(|error| RequestError::Invalid(error.to_string()))?;
    context.durably(Ask::EditJob { job, edit: Box::new(edit), caller }).await
}

/// Accepts a job whose files are there.
pub(super) async fn submit(
    context: &Context,
    caller: Owner,
    job: JobId,
    spec: RawJobSpec,
) -> Result<Response, RequestError> {
    let spec = spec.check().map_err(|error| RequestError::Invalid(error.to_string()))?;
    targets::check(context, &spec.notify)?;
    context.room()?;
    let _submitting = context.submitting.read().await;
    let blobs = context.blobs.clone();
    let spec = blocking(move || check_files(&blobs, spec)).await??;
    context.ask(Ask::Submit { job, spec: Box::new(spec), caller }).await
}

/// Checks that the coordinator still has all files of a job. Hold `submitting` meanwhile.
pub(super) async fn check_files_of(context: &Context, job: JobId) -> Result<(), RequestError> {
    let detail = match context.question(Question::Job(job)).await? {
        Response::Job(detail) => *detail,
        Response::Error(error) => return Err(error),
        _ => {
            return Err(RequestError::Unavailable(
                "the coordinator does not know its own jobs".into(),
            ));
        }
    };
    let blobs = context.blobs.clone();
    let found = blocking(move || check_files(&blobs, detail.spec)).await?;
    found.map(drop).map_err(|error| match error {
        RequestError::Invalid(text) => RequestError::Invalid(format!(
            "{text}: files of jobs that have ended are deleted after the coordinator's \
             --blob-grace; submit the scene again"
        )),
        error => error,
    })
}

/// Returns the spec, if the coordinator has all its files with the right lengths.
pub(super) fn check_files(blobs: &GuardedBlobs, spec: JobSpec) -> Result<JobSpec, RequestError> {
    check_named(blobs, spec.kind.files())?;
    Ok(spec)
}

/// Fails unless the coordinator has these files with these lengths.
pub(super) fn check_named(
    blobs: &GuardedBlobs,
    files: Vec<(&str, BlobHash, u64)>,
) -> Result<(), RequestError> {
    let hashes: Vec<_> = files.iter().map(|(_, hash, _)| *hash).collect();
    for ((name, hash, expected), claimed) in files.into_iter().zip(blobs.claim_all(&hashes)) {
        let problem = match claimed {
            Some(length) if length == expected => continue,
            Some(length) => format!("has {length} bytes, not {expected}"),
            None => match blobs.length(hash) {
                Err(error) => return Err(RequestError::Unavailable(error.to_string())),
                Ok(_) => "has not been uploaded".to_owned(),
            },
        };
        return Err(RequestError::Invalid(format!("file {name:?} of the job ({hash}) {problem}")));
    }
    Ok(())
}

/// Returns the text of a job's kernel, to those who may read it.
pub(super) async fn kernel_text(
    context: &Context,
    caller: Owner,
    job: JobId,
) -> Result<Response, RequestError> {
    context.question(Question::KernelText { job, caller }).await
}
