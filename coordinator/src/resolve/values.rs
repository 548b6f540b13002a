//! Makes the files of a compute job's frame from the chunks in its spool. Owns the check that a
//! chunk is what its unit makes.

use super::error::ResolveError;
use super::films::BlobOutputs;
use crate::blobs::Blobs;
use crate::spool::SpoolIndex;
use tessera_core::Chunks;
use tessera_finishing::FinishError;
use tessera_protocol::compute::Layout;
use tessera_protocol::status::FrameFile;
use tessera_protocol::{ChunkValues, ComputeSpec, Fingerprint, FrameNumber, JobId, UnitIndex};

/// A frame of a compute job that has all its chunks in its spool.
#[derive(Debug)]
pub struct Values<'a> {
    /// Job of the frame.
    pub job: JobId,
    /// Number of the frame.
    pub frame: FrameNumber,
    /// Options of the job.
    pub spec: &'a ComputeSpec,
    /// Fingerprint of the results.
    pub fingerprint: Option<Fingerprint>,
    /// Results of the frame.
    pub spool: &'a SpoolIndex,
}

/// Makes the files of a frame as blobs: for each output one for each format of the spec, in the
/// order of [`ComputeSpec::extensions`]. After an error no part of them is left.
pub fn assemble(values: &Values<'_>, blobs: &dyn Blobs) -> Result<Vec<FrameFile>, ResolveError> {
    let units = Chunks::of(values.spec).units();
    values.spool.check_complete(units, units)?;
    let Values { job, frame, spec, fingerprint, .. } = *values;
    let all = tessera_finishing::Values { job, frame, spec, fingerprint, units, chunks: values };
    Ok(tessera_finishing::assemble(&all, &BlobOutputs(blobs))?)
}

impl Values<'_> {
    /// Returns the values or partial results of a unit, and where those of each output are.
    fn checked(&self, unit: u32) -> Result<(Vec<u8>, Layout), ResolveError> {
        let bytes = self.spool.bytes(UnitIndex(unit))?;
        let wrong = |problem: String| ResolveError::Chunk { unit, problem };
        let chunk = ChunkValues::from_bytes(&bytes).map_err(|error| wrong(error.to_string()))?;
        let (_, count) = Chunks::of(self.spec)
            .range(UnitIndex(unit))
            .ok_or_else(|| wrong("there is no such unit".into()))?;
        match (chunk.shape(), self.spec.chunk_shape(count)) {
            (found, expected) if found == expected => {
                Ok((chunk.bytes, self.spec.result_layout(count)))
            }
            (found, expected) => {
                Err(wrong(format!("it has the shape {found:?}, not {expected:?}")))
            }
        }
    }
}

impl tessera_finishing::Chunks for Values<'_> {
    fn chunk(&self, unit: u32) -> Result<(Vec<u8>, Layout), FinishError> {
        self.checked(unit).map_err(|error| FinishError::Results(Box::new(error)))
    }
}

#[cfg(test)]
#[path = "tests/values.rs"]
mod tests;
