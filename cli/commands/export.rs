//! `--export` of `submit` and `compute`: prints jobs in a form that other farms read.

use crate::args::after::AfterArgs;
use crate::args::chosen::Chosen;
use crate::error::{CliError, Status};
use crate::json;
use crate::openjd::{self, Exported};
use crate::submission::batch::Batch;
use crate::template::{Planned, Work};
use std::path::Path;
use tessera_protocol::JobSpec;

/// A job here cannot be waited for elsewhere.
pub(super) fn refuse_waits(after: &AfterArgs) -> Result<(), CliError> {
    match after.after.is_empty() && after.after_any.is_empty() {
        true => Ok(()),
        false => Err(CliError::new(
            Status::Usage,
            "--after names a job of this farm, for which other farms cannot wait",
        )
        .hint("a template with both jobs as its steps can be exported (docs/templates.md)")),
    }
}

/// Prints one job.
pub(super) fn one(work: Work, options: &Chosen, spec: &JobSpec) -> Result<Status, CliError> {
    let step = match &work {
        Work::Render(_) => "render",
        Work::Compute(_) => "compute",
    };
    let job = Planned {
        step: step.to_owned(),
        values: Vec::new(),
        name: spec.name.clone(),
        work,
        options: options.clone(),
        after: Vec::new(),
    };
    let here = std::env::current_dir()?;
    printed((&spec.name, ""), &[Exported { job: &job, spec }], (&here, &here))
}

/// Prints the jobs of a template in this folder.
pub(super) fn all(batch: &Batch, folder: &Path) -> Result<Status, CliError> {
    let jobs: Vec<Exported<'_>> = batch
        .plan
        .jobs
        .iter()
        .zip(&batch.jobs)
        .map(|(job, sending)| Exported { job, spec: &sending.spec })
        .collect();
    let here = std::env::current_dir()?;
    printed((&batch.plan.name, &batch.plan.description), &jobs, (folder, &here))
}

fn printed(
    about: (&str, &str),
    jobs: &[Exported<'_>],
    (folder, here): (&Path, &Path),
) -> Result<Status, CliError> {
    let template = openjd::export(about, jobs, (folder, here))?;
    for note in &template.notes {
        eprintln!("note: {}", crate::table::printable(note));
    }
    let text = serde_json::to_string_pretty(&template.value)
        .map_err(|error| CliError::new(Status::Failure, error))?;
    json::line(&text)?;
    Ok(Status::Done)
}
