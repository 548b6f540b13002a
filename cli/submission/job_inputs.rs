//! Inputs that are finished frames of other jobs: `--input NAME=job:JOB`, or with the name of an
//! output `NAME=job:JOB/OUTPUT`.

use super::compute_files::{split, usage};
use crate::args::compute::ComputeArgs;
use crate::args::farm::FarmArgs;
use crate::client::{Farm, unexpected};
use crate::error::{CliError, Status};
use crate::job_id;
use std::collections::BTreeMap;
use tessera_protocol::client::{Request, Response};
use tessera_protocol::compute::{FromJob, InputArray};
use tessera_protocol::job::{After, Until};
use tessera_protocol::{BlobHash, JobId, JobKind};

/// What an input begins with that is no file.
const PREFIX: &str = "job:";

/// The jobs that inputs name, by what they are called: a job of the farm, or the jobs of a step.
#[derive(Debug, Default)]
pub(crate) struct KnownJobs(BTreeMap<String, Vec<(JobId, JobKind)>>);

impl KnownJobs {
    /// Adds a job that is called so.
    pub(crate) fn add(&mut self, name: &str, job: JobId, kind: &JobKind) {
        self.0.entry(name.to_owned()).or_default().push((job, kind.clone()));
    }

    /// Finds the jobs that the inputs of a command name, on its farm.
    pub(crate) async fn find(farm: &FarmArgs, args: &ComputeArgs) -> Result<Self, CliError> {
        let mut known = Self::default();
        let jobs = args.input.iter().filter_map(|text| Some(parts(text.split_once('=')?.1)?.0));
        let jobs: Vec<&str> = jobs.collect();
        if jobs.is_empty() {
            return Ok(known);
        }
        if args.local {
            let text = "an input from a job needs the farm that has the job";
            return Err(CliError::new(Status::Usage, text)
                .hint("leave --local away, or fetch the frame and name its file"));
        }
        let farm = Farm::of(farm)?;
        for text in jobs {
            let about = |error: CliError| error.context(format!("--input: {PREFIX}{text}"));
            let job = job_id::find(&farm, text).await.map_err(about)?;
            match farm.ask(&Request::Job(job)).await.map_err(about)? {
                Response::Job(detail) => known.add(text, job, &detail.spec.kind),
                _ => return Err(unexpected()),
            }
        }
        Ok(known)
    }

    fn one(&self, name: &str) -> Result<&(JobId, JobKind), CliError> {
        match self.0.get(name).map(Vec::as_slice) {
            Some([one]) => Ok(one),
            Some(several) => {
                let text = format!("{} jobs are called `{name}`, and one is read", several.len());
                Err(usage(text).hint("sweep this step over the same variable"))
            }
            None => Err(usage(format!("this job does not wait for `{name}`")).hint(
                "name a step that stands in `after`, without `:frames`: its frames are read once \
                 all of them are finished",
            )),
        }
    }
}

/// The job and the output of an input that is no file.
fn parts(text: &str) -> Option<(&str, Option<&str>)> {
    let rest = text.strip_prefix(PREFIX)?;
    Some(match rest.rsplit_once('/') {
        Some((job, output)) => (job, Some(output)),
        None => (rest, None),
    })
}

/// The input, if the text is of that form, and what its job then waits for.
pub(super) fn input(
    text: &str,
    known: &KnownJobs,
) -> Option<Result<(InputArray, After), CliError>> {
    let (name, place) = split("input", text).ok()?;
    let (job, output) = parts(place)?;
    let read = || {
        let (id, kind) = known.one(job)?;
        let array =
            kind.frame_array(output).map_err(|problem| usage(format!("job `{job}` {problem}")))?;
        let from = Some(FromJob { job: *id, file: array.file });
        let (element, shape) = (array.element, array.shape);
        let hash = BlobHash::default();
        let input = InputArray { name: name.to_owned(), hash, length: 0, element, shape, from };
        Ok((input, After { job: *id, until: Until::Success }))
    };
    Some(read().map_err(|error: CliError| error.context(format!("--input {name}"))))
}

/// Adds what a job waits for beside the jobs of its inputs.
pub(crate) fn add_waits(own: &mut Vec<After>, others: Vec<After>) -> Result<(), CliError> {
    for other in others {
        match own.iter().find(|after| after.job == other.job) {
            None => own.push(other),
            Some(after) if after.until == other.until => {}
            Some(_) => {
                let text =
                    format!("an input is from job {}, so all of it is waited for", other.job);
                return Err(usage(text).hint("leave it out of --after and --after-any"));
            }
        }
    }
    Ok(())
}
