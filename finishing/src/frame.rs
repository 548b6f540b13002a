//! A frame that is to be finished: its options, where its films come from, and where files go.

use crate::FinishError;
use std::io::{Seek, Write};
use tessera_protocol::job::RenderSpec;
use tessera_protocol::{BlobHash, Fingerprint, FrameNumber, JobId, TileSums};

/// What files say of a frame.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    /// Job of the frame.
    pub job: JobId,
    /// Number of the frame.
    pub frame: FrameNumber,
    /// Options of the job.
    pub spec: &'a RenderSpec,
    /// Fingerprint of the results.
    pub fingerprint: Option<Fingerprint>,
    /// Samples per pixel. With a noise, it is the most that a pixel has.
    pub samples: u32,
    /// Mean of the samples per pixel, in frames that are sampled to a noise.
    pub samples_mean: Option<f64>,
}

/// The films of a frame.
pub trait Films: Sync {
    /// Returns the sums of all samples of a tile.
    fn sums(&self, tile: u32) -> Result<TileSums, FinishError>;
}

/// Where the files of a frame go.
pub trait Outputs {
    /// Begins a file.
    fn begin(&self) -> Result<Box<dyn Output>, FinishError>;
}

/// A file that is being written, whose hash is known at its end. If it is dropped before, nothing
/// is left.
pub trait Output: Write + Seek + Send {
    /// Makes the file durable. Returns its hash and length.
    fn finish(self: Box<Self>) -> Result<(BlobHash, u64), FinishError>;
}
