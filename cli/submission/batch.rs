//! The jobs of a template as a farm gets them: specs that are checked, and all their files.

use super::compute::{self, Kernels};
use super::job_inputs::KnownJobs;
use super::scenes::Scenes;
use super::send::{Sending, Sources};
use super::step::{Read, Reader};
use crate::error::{CliError, Status};
use crate::openjd;
use crate::small_file;
use crate::template::{self, FILE_BYTES_MAX, Plan, Planned, TemplateError};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use tessera_protocol::job::{After, Until};
use tessera_protocol::{BlobHash, JobId, JobSpec};

/// Jobs that are submitted together.
pub(crate) struct Batch {
    /// Name that they share, and by which they are selected.
    pub(crate) name: String,
    pub(crate) plan: Plan,
    /// A job for each of the plan's, in its order.
    pub(crate) jobs: Vec<Sending>,
    pub(crate) files: Files,
}

/// The files of several jobs.
#[derive(Default)]
pub(crate) struct Files {
    of_jobs: Vec<Arc<dyn Sources + Send>>,
    /// Which of them has a file.
    places: BTreeMap<BlobHash, usize>,
}

impl Files {
    fn add(&mut self, files: Arc<dyn Sources + Send>) {
        let place = self.of_jobs.len();
        let before = self.places.len();
        for hash in files.hashes() {
            self.places.entry(hash).or_insert(place);
        }
        // Most jobs have no file that those before it do not have.
        if self.places.len() > before {
            self.of_jobs.push(files);
        }
    }

    /// Number of files and their bytes.
    pub(crate) fn sum(&self) -> (usize, u64) {
        let lengths = self.places.keys().filter_map(|hash| self.source(*hash));
        (self.places.len(), lengths.map(|(length, _)| length).sum())
    }
}

impl Sources for Files {
    fn hashes(&self) -> Vec<BlobHash> {
        self.places.keys().copied().collect()
    }

    fn source(&self, hash: BlobHash) -> Option<(u64, &Path)> {
        self.of_jobs[*self.places.get(&hash)?].source(hash)
    }
}

/// Reads a template and checks all its jobs as far as this machine can. Blocks: reads scenes,
/// compiles kernels, hashes files.
pub(crate) fn check(path: &Path, name: Option<&str>, set: &[String]) -> Result<Batch, CliError> {
    let about = |error: CliError| error.context(format!("`{}`", path.display()));
    let text =
        small_file::read(path, FILE_BYTES_MAX).map_err(|error| about(CliError::of_file(error)))?;
    let plan = match openjd::is_document(path) {
        true => openjd::plan(&text, path, name, set),
        false => template::plan(&text, name, set),
    };
    let plan = plan.map_err(|error| about(error.into()))?;
    let folder = path.parent().unwrap_or(Path::new(""));
    let mut reader = Reader::new(folder);
    let mut known = (Scenes::default(), Kernels::default());
    let name = batch_name(&plan.name);
    let mut files = Files::default();
    let mut jobs: Vec<Sending> = Vec::with_capacity(plan.jobs.len());
    for planned in &plan.jobs {
        let options = reader.read(planned).map_err(about)?;
        let steps = steps_of(planned, &plan.jobs, &jobs);
        let checked = spec_of(&options, &mut known, &steps);
        let (spec, of_job) = checked.map_err(|error| about(error.context(planned.place())))?;
        let of = |(place, until): &template::Waits| After { job: jobs[*place].job, until: *until };
        let after = planned.after.iter().map(of).collect();
        files.add(of_job);
        let spec = JobSpec { after, batch: Some(name.clone()), ..spec };
        jobs.push(Sending { job: JobId::new(), spec });
    }
    Ok(Batch { name, plan, jobs, files })
}

type Checked = (JobSpec, Arc<dyn Sources + Send>);

/// The steps whose frames a job can read, since it waits for all of them.
fn steps_of(job: &Planned, all: &[Planned], sent: &[Sending]) -> KnownJobs {
    let mut known = KnownJobs::default();
    for (place, until) in &job.after {
        if *until == Until::Success {
            known.add(&all[*place].step, sent[*place].job, &sent[*place].spec.kind);
        }
    }
    known
}

fn spec_of(
    options: &Read,
    (scenes, kernels): &mut (Scenes, Kernels),
    steps: &KnownJobs,
) -> Result<Checked, CliError> {
    match options {
        Read::Render(args) => {
            let (spec, files) = scenes.check(args)?;
            Ok((spec, files))
        }
        Read::Compute(args) => {
            let prepared = compute::prepare(args, kernels, steps)?;
            Ok((prepared.spec, Arc::new(prepared.files)))
        }
    }
}

/// A name that no other submission of the template has.
fn batch_name(template: &str) -> String {
    let random = uuid::Uuid::new_v4().simple().to_string();
    format!("{template}-{}", &random[..8])
}

impl From<TemplateError> for CliError {
    fn from(error: TemplateError) -> Self {
        let hint = error.what_to_do().map(str::to_owned);
        CliError::new(Status::Usage, error).hint_if(hint.as_deref())
    }
}
