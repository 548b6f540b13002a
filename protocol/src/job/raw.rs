//! The request for a job as it arrives: bytes in the self-describing form, until they are checked.

use super::described;
use super::error::SpecError;
use super::{JobKind, JobSpec};
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

impl RawJobSpec {
    /// Decodes the spec and checks every field.
    pub fn check(self) -> Result<JobSpec, SpecError> {
        let spec = described::decode_job(&self.0)?;
        super::check(&spec)?;
        Ok(spec)
    }
}
