//! What is asked of a template, and what whoever reads templates answers: what it takes, and the
//! jobs that it makes. Reads none itself.

use serde::{Deserialize, Serialize};
use tessera_protocol::job::RawJobSpec;
use tessera_protocol::{JobId, JobSpec};
use utoipa::ToSchema;

/// A template, and the values that it is given.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TemplateAsked {
    /// Its text.
    pub text: String,
    /// Whether it is one of Open Job Description.
    pub is_openjd: bool,
    /// Name in place of its own.
    pub name: Option<String>,
    /// Values of parameters, each `NAME=VALUE`.
    pub set: Vec<String>,
}

/// The submission that a template's jobs are to be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BatchAsked {
    /// Name that the jobs share.
    pub batch: String,
    /// What their ids are made of: the same makes the same ids.
    pub seed: [u8; 32],
}

/// What a template takes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TemplateOutline {
    /// Its name, with which names of its jobs begin.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// What can be set, by name.
    pub parameters: Vec<TemplateParameter>,
    /// Files that its jobs name, with the values that are set, as paths beside the template. What
    /// these files name themselves is not among them.
    pub files: Vec<String>,
    /// What is wrong with the values that are set, or missing; `files` is empty then.
    pub problem: Option<String>,
}

/// What can be set in a template.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TemplateParameter {
    /// Its name.
    pub name: String,
    /// `text`, `integer`, `number`, `switch`, `frames` or `file`.
    pub kind: String,
    /// Whether it is a list, written with commas.
    pub list: bool,
    /// Its value where nobody sets it, as it is written; null where it has to be set.
    pub default: Option<String>,
    /// Least number.
    pub min: Option<f64>,
    /// Largest number.
    pub max: Option<f64>,
    /// All values that it can have; empty if there are others.
    pub choices: Vec<String>,
    /// What it is for.
    pub help: String,
}

/// The jobs of a template.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TemplatePlan {
    /// Each after those that it waits for.
    pub jobs: Vec<PlannedJob>,
    /// What people should know, a line each.
    pub notes: Vec<String>,
}

/// A job of a template.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlannedJob {
    /// Its id.
    pub job: JobId,
    /// Name of its step.
    pub step: String,
    /// Values that the sweep gives it, by variable.
    pub values: Vec<(String, String)>,
    /// What it does, as it is submitted.
    pub spec: RawJobSpec,
}

impl PlannedJob {
    /// Checks the job.
    ///
    /// # Errors
    /// What is wrong with it, in words.
    pub(crate) fn checked(&self) -> Result<JobSpec, String> {
        self.spec.clone().check().map_err(|error| error.to_string())
    }
}
