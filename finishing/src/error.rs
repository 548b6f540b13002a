//! Errors of finishing.

use std::io;
use tessera_kernels::denoise::DenoiseError;

/// Why the files of a frame could not be made.
#[derive(Debug, thiserror::Error)]
pub enum FinishError {
    /// Films or pieces cannot be read. The source is the reader's own error.
    #[error("results of the frame are damaged")]
    Results(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// A tile's film has another shape than the tile.
    #[error("the film of tile {tile} has another shape than the tile")]
    Shape {
        /// Number of the tile.
        tile: u32,
    },
    /// A unit's result is not a chunk of the compute job.
    #[error("the result of unit {unit} is not a chunk of the job: {problem}")]
    Chunk {
        /// Number of the unit.
        unit: u32,
        /// Description of the fault.
        problem: String,
    },
    /// A piece is not what its unit makes.
    #[error("a piece of the frame is damaged: {0}")]
    Piece(String),
    /// A file could not be written.
    #[error("frame file cannot be written")]
    Write(#[source] io::Error),
    /// A file could not be stored. The source is the store's own error.
    #[error("frame file cannot be stored")]
    Store(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The denoiser refused or failed to filter the frame.
    #[error("frame cannot be denoised")]
    Denoise(#[from] DenoiseError),
    /// The encoder of the file format failed.
    #[error("frame file cannot be encoded: {0}")]
    Encode(String),
    /// What a finishing unit made is longer than a result may be. The coordinator can finish the
    /// frame.
    #[error("the piece of the frame is too long for a result")]
    TooLarge,
    /// The work was stopped before its end.
    #[error("stopped")]
    Stopped,
}
