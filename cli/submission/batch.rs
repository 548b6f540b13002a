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
use std::collections::{BTreeMap, BTreeSet};
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
    /// What was found of scenes, a line each.
    pub(crate) warnings: BTreeSet<String>,
}

/// Where files may be, and who reads scenes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// Anywhere; another process reads scenes.
    Anywhere,
    /// In the template's folder; this process reads scenes, since it is confined itself.
    Confined,
}

/// The name of a submission, and the ids of its jobs.
pub(crate) struct Names {
    batch: String,
    seed: Option<[u8; 32]>,
}

impl Names {
    /// Of a new submission.
    fn new(template: &str) -> Self {
        Self { batch: batch_name(template), seed: None }
    }

    /// Of one whose ids follow from a seed.
    pub(crate) fn of(batch: String, seed: [u8; 32]) -> Self {
        Self { batch, seed: Some(seed) }
    }

    fn id(&self, index: usize) -> JobId {
        let Some(seed) = &self.seed else { return JobId::new() };
        let hash = blake3::keyed_hash(seed, &(index as u64).to_le_bytes());
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&hash.as_bytes()[..16]);
        JobId(uuid::Builder::from_custom_bytes(bytes).into_uuid())
    }
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
    let text = small_file::read(path, FILE_BYTES_MAX)
        .map_err(|error| about(path)(CliError::of_file(error)))?;
    let plan = plan(&text, (path, openjd::is_document(path)), name, set)?;
    let names = Names::new(&plan.name);
    make(plan, path, names, Place::Anywhere)
}

/// The same for a template that is no file here, and whose files are in the working folder. `path`
/// names it to people.
pub(crate) fn check_text(
    text: &str,
    path: &Path,
    name: Option<&str>,
    set: &[String],
) -> Result<Batch, CliError> {
    let plan = plan(text, (path, false), name, set)?;
    let names = Names::new(&plan.name);
    make(plan, path, names, Place::Anywhere)
}

/// The jobs of a template. `path` says where its files are.
pub(crate) fn plan(
    text: &str,
    (path, is_openjd): (&Path, bool),
    name: Option<&str>,
    set: &[String],
) -> Result<Plan, CliError> {
    if text.len() as u64 > FILE_BYTES_MAX {
        let text = format!("it is longer than {FILE_BYTES_MAX} bytes");
        return Err(about(path)(TemplateError::new(text).into()));
    }
    let plan = match is_openjd {
        true => openjd::plan(text, path, name, set),
        false => template::plan(text, name, set),
    };
    plan.map_err(|error| about(path)(error.into()))
}

/// Says which template it is.
fn about(path: &Path) -> impl Fn(CliError) -> CliError {
    move |error| error.context(format!("`{}`", path.display()))
}

/// Checks all jobs of a template as far as this machine can. Blocks as [`check`].
pub(crate) fn make(plan: Plan, path: &Path, names: Names, place: Place) -> Result<Batch, CliError> {
    let folder = path.parent().unwrap_or(Path::new(""));
    let (mut reader, scenes) = match place {
        Place::Anywhere => (Reader::new(folder), Scenes::default()),
        Place::Confined => (Reader::within(folder), Scenes::here()),
    };
    let mut known = (scenes, Kernels::default());
    let mut files = Files::default();
    let mut jobs: Vec<Sending> = Vec::with_capacity(plan.jobs.len());
    for (index, planned) in plan.jobs.iter().enumerate() {
        let options = reader.read(planned).map_err(about(path))?;
        let steps = steps_of(planned, &plan.jobs, &jobs);
        let checked = spec_of(&options, &mut known, &steps);
        let (spec, of_job) =
            checked.map_err(|error| about(path)(error.context(planned.place())))?;
        let of = |(place, until): &template::Waits| After { job: jobs[*place].job, until: *until };
        let after = planned.after.iter().map(of).collect();
        files.add(of_job);
        let spec = JobSpec { after, batch: Some(names.batch.clone()), ..spec };
        jobs.push(Sending { job: names.id(index), spec });
    }
    let warnings = known.0.into_warnings();
    Ok(Batch { name: names.batch, plan, jobs, files, warnings })
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
