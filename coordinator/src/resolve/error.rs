//! Why a frame could not be made, and what the core should make of it.

use crate::blobs::BlobError;
use crate::spool::SpoolError;
use std::io;
use tessera_core::ResolveFailure;
use tessera_kernels::denoise::DenoiseError;

/// Why a frame could not be made.
#[derive(Debug, thiserror::Error)]
pub enum ResolveError {
    /// The spool is not whole.
    #[error("results of the frame are damaged")]
    Spool(#[from] SpoolError),
    /// A unit's film has another shape than the unit.
    #[error("the film of unit {unit} has another shape than the unit")]
    Shape {
        /// The unit's index.
        unit: u32,
    },
    /// A unit's result is no chunk of the job.
    #[error("the result of unit {unit} is no chunk of the job: {problem}")]
    Chunk {
        /// The unit's index.
        unit: u32,
        /// What is wrong with it.
        problem: String,
    },
    /// A file could not be written.
    #[error("frame file cannot be written")]
    Write(#[source] io::Error),
    /// The denoiser refused.
    #[error("frame cannot be denoised")]
    Denoise(#[from] DenoiseError),
    /// The encoder refused.
    #[error("frame file cannot be encoded: {0}")]
    Encode(String),
    /// The blob store refused.
    #[error("frame file cannot be stored")]
    Blob(#[from] BlobError),
}

impl ResolveError {
    /// What the core should make of it: trouble with the disk may pass, damage will not.
    pub fn failure(&self) -> ResolveFailure {
        let mut text = self.to_string();
        let mut source = std::error::Error::source(self);
        while let Some(error) = source {
            text = format!("{text}: {error}");
            source = error.source();
        }
        match self {
            Self::Write(_) | Self::Blob(_) | Self::Spool(SpoolError::Io { .. }) => {
                ResolveFailure::Retry(text)
            }
            Self::Spool(_)
            | Self::Shape { .. }
            | Self::Chunk { .. }
            | Self::Denoise(_)
            | Self::Encode(_) => ResolveFailure::Fatal(text),
        }
    }
}
