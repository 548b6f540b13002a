//! Makes the files of a compute job's frame from the chunks in its spool.

use super::error::ResolveError;
use super::films::BlobOutputs;
use crate::blobs::Blobs;
use crate::spool::SpoolIndex;
use tessera_finishing::FinishError;
use tessera_protocol::compute::Chunks;
use tessera_protocol::status::FrameFile;
use tessera_protocol::{ComputeSpec, Fingerprint, FrameNumber, JobId, UnitIndex};

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
    let all = tessera_finishing::Values { job, frame, spec, fingerprint, results: values };
    Ok(tessera_finishing::assemble(&all, &BlobOutputs(blobs))?)
}

impl tessera_finishing::ChunkResults for Values<'_> {
    fn bytes(&self, unit: u32) -> Result<Vec<u8>, FinishError> {
        let bytes = self.spool.bytes(UnitIndex(unit)).map(Vec::from);
        bytes.map_err(|error| FinishError::Results(Box::new(error)))
    }
}

#[cfg(test)]
#[path = "tests/values.rs"]
mod tests;
