//! The request for a job as it arrives: bytes in the self-describing form, until they are checked.

use super::described;
use super::error::SpecError;
use super::{After, JobKind, JobSpec, RenderSpec};
use crate::compute::ComputeSpec;
use serde::{Deserialize, Serialize};

/// A job spec as it crosses the wire, in its self-describing form. Nothing in it has been checked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RawJobSpec(Vec<u8>);

impl From<JobSpec> for RawJobSpec {
    fn from(spec: JobSpec) -> Self {
        Self(described::encode_job(&spec))
    }
}

impl From<&JobKind> for RawJobSpec {
    /// Encodes a job of this kind with every other field at its default.
    fn from(kind: &JobKind) -> Self {
        Self::from(JobSpec::new("job", kind.clone()))
    }
}

/// A job as forms in JSON describe it: the job's own fields, and either `render` or `compute` with
/// its options, each at its default where it is left out.
#[derive(Clone, Debug)]
pub struct JobForm {
    /// Name of the job and of its files.
    pub name: String,
    /// Priority; None is the default.
    pub priority: Option<u8>,
    /// Pool whose nodes can work on the job.
    pub pool: Option<String>,
    /// Most nodes that work on the job at a time.
    pub max_nodes: Option<u32>,
    /// Memory that a device needs for the job, in bytes.
    pub device_bytes: u64,
    /// Jobs that the job waits for.
    pub after: Vec<After>,
    /// Seconds since the Unix epoch before which no unit of the job begins.
    pub not_before: Option<u64>,
    /// Name that the jobs of one submission share.
    pub batch: Option<String>,
    /// Targets of events that get those of the job.
    pub notify: Vec<String>,
    /// What to render.
    pub render: Option<RenderSpec>,
    /// What to compute.
    pub compute: Option<ComputeSpec>,
}

impl JobForm {
    /// Returns the spec, of which nothing has been checked but that it is of one kind.
    pub fn spec(self) -> Result<RawJobSpec, SpecError> {
        let Self { name, priority, pool, max_nodes, device_bytes, .. } = self;
        let Self { after, not_before, batch, notify, render, compute, .. } = self;
        let kind = match (render, compute) {
            (Some(render), None) => JobKind::Render(render),
            (None, Some(compute)) => JobKind::Compute(compute),
            _ => {
                return Err(SpecError {
                    field: "job".into(),
                    problem: "it must have either `render` or `compute`".to_owned(),
                    unknown: false,
                });
            }
        };
        let plain = JobSpec::new(&name, kind);
        let priority = priority.unwrap_or(plain.priority);
        let plain = JobSpec { after, not_before, batch, notify, ..plain };
        Ok(JobSpec { priority, pool, max_nodes, device_bytes, ..plain }.into())
    }
}

impl RawJobSpec {
    /// Decodes the spec and checks every field.
    pub fn check(self) -> Result<JobSpec, SpecError> {
        let spec = described::decode_job(&self.0)?;
        super::check(&spec)?;
        Ok(spec)
    }
}
