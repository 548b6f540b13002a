//! Errors of resolving, and how the core handles them.

use crate::blobs::BlobError;
use crate::spool::SpoolError;
use std::io;
use tessera_core::ResolveFailure;
use tessera_finishing::DenoiseError;
use tessera_finishing::FinishError;

/// Errors of Linux that say that the process (EMFILE) or the machine (ENFILE) has too many files
/// open.
const OUT_OF_FILES: [i32; 2] = [24, 23];

/// Why the files of a frame could not be made.
#[derive(Debug, thiserror::Error)]
pub enum ResolveError {
    /// The spool is damaged.
    #[error("results of the frame are damaged")]
    Spool(#[from] SpoolError),
    /// A unit's film has another shape than the unit.
    #[error("the film of unit {unit} has another shape than the unit")]
    Shape {
        /// Number of the unit.
        unit: u32,
    },
    /// A unit's result is not a chunk of the job.
    #[error("the result of unit {unit} is not a chunk of the job: {problem}")]
    Chunk {
        /// Number of the unit.
        unit: u32,
        /// Description of the fault.
        problem: String,
    },
    /// A file could not be written.
    #[error("frame file cannot be written")]
    Write(#[source] io::Error),
    /// The denoiser refused or failed to filter the frame.
    #[error("frame cannot be denoised")]
    Denoise(#[from] DenoiseError),
    /// The encoder of the file format failed.
    #[error("frame file cannot be encoded: {0}")]
    Encode(String),
    /// The blob store failed.
    #[error("frame file cannot be stored")]
    Blob(#[from] BlobError),
    /// Something else went wrong while the frame was finished.
    #[error(transparent)]
    Finish(FinishError),
}

impl From<FinishError> for ResolveError {
    /// Finds the errors of spools and blobs that finishing passed on.
    fn from(error: FinishError) -> Self {
        let own = |source: Box<dyn std::error::Error + Send + Sync>| {
            let source = source.downcast::<Self>().map(|own| *own);
            let source = source.or_else(|other| other.downcast().map(|spool| Self::Spool(*spool)));
            source.or_else(|other| other.downcast().map(|blob| Self::Blob(*blob)))
        };
        match error {
            FinishError::Results(source) => {
                own(source).unwrap_or_else(|source| Self::Finish(FinishError::Results(source)))
            }
            FinishError::Store(source) => {
                own(source).unwrap_or_else(|source| Self::Finish(FinishError::Store(source)))
            }
            FinishError::Chunk { unit, problem } => Self::Chunk { unit, problem },
            FinishError::Write(source) => Self::Write(source),
            FinishError::Denoise(source) => Self::Denoise(source),
            FinishError::Encode(problem) => Self::Encode(problem),
            other => Self::Finish(other),
        }
    }
}

impl ResolveError {
    /// Converts the error for the core. Failures of the disk are tried again. A result whose bytes
    /// are damaged or missing is made again. Other damage is final.
    pub fn failure(&self) -> ResolveFailure {
        let mut text = self.to_string();
        let mut source = std::error::Error::source(self);
        while let Some(error) = source {
            text = format!("{text}: {error}");
            let file = error.downcast_ref::<io::Error>().and_then(io::Error::raw_os_error);
            if file.is_some_and(|number| OUT_OF_FILES.contains(&number)) {
                text += "; raise the limit of open files (`ulimit -n 4096`, or LimitNOFILE= in \
                    the unit)";
            }
            source = error.source();
        }
        if let Self::Spool(error) = self
            && let Some(unit) = error.lost_unit()
        {
            return ResolveFailure::Lost(vec![unit], text);
        }
        match self {
            Self::Write(_) | Self::Blob(_) | Self::Spool(SpoolError::Io { .. }) => {
                ResolveFailure::Retry(text)
            }
            Self::Spool(_)
            | Self::Shape { .. }
            | Self::Chunk { .. }
            | Self::Denoise(_)
            | Self::Encode(_)
            | Self::Finish(_) => ResolveFailure::Fatal(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_that_lacks_open_files_says_which_limit_to_raise() {
        let lacks =
            |number| match ResolveError::Write(io::Error::from_raw_os_error(number)).failure() {
                ResolveFailure::Retry(text) => text,
                other => panic!("{other:?}"),
            };
        assert!(lacks(24).contains("ulimit -n"), "{}", lacks(24));
        assert!(!lacks(28).contains("ulimit"), "a full disk is another matter");
    }
}
