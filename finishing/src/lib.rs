//! Finishing: makes the files of a frame from its films. Owns the arithmetic from sums to pixels,
//! the form of the files, and the pieces in which nodes finish a frame. Knows no spool, store or
//! network.
//!
//! Memory of a whole frame, which is finished one row of tiles at a time: a row of tiles as 32-bit
//! floats needs width × tile edge × channels × 4 bytes. 3840 × 64 × 3 × 4 are 2.8 MiB; at the
//! limits, 32768 × 512 × 17 × 4 are 1.1 GiB. Each decoding thread needs three copies of one tile's
//! sums, at most 64 MiB each. The writers hold at most 32 rows per thread.
//!
//! Denoising has two passes. Each holds such a row of tiles and 61 rows of pixels, with at most 19
//! channels, and one more row of tiles is between them (3840 × 64: 88 MiB in all). With overscan
//! beyond the frame it is done twice, and rows wait for each other: three times as much at most.

mod alpha;
mod band;
mod denoise;
mod error;
mod exr_file;
mod exr_rows;
mod file_space;
mod fingerprint;
mod frame;
mod inputs;
mod jpeg;
mod meter;
mod out_file;
mod overscan;
mod part;
mod piece;
mod pipeline;
mod pixels;
mod png_file;
mod shown;
mod tone;
mod values;
mod whole;

pub use error::FinishError;
pub use fingerprint::fingerprint;
pub use frame::{Films, Frame, Output, Outputs};
pub use inputs::{Inputs, write_part_head};
pub use meter::metered_exposure;
pub use piece::{is_piece, piece_of, pixels_of};
pub use tessera_kernels::denoise::DenoiseError;
pub use values::{Chunks, Values, assemble};
pub use whole::finish;

use std::sync::atomic::AtomicBool;
use tessera_protocol::job::RenderSpec;
use tessera_protocol::node::Finish;
use tessera_protocol::status::FrameFile;

/// Makes a piece of a frame: the result of a finishing unit. Ends early with
/// [`FinishError::Stopped`] once `stop` is true.
pub fn make_piece(
    spec: &RenderSpec,
    finish: &Finish,
    inputs: &Inputs,
    stop: &AtomicBool,
) -> Result<Vec<u8>, FinishError> {
    let _ = (spec, finish, inputs, stop);
    unimplemented!()
}

/// Puts the files of a frame together from its pieces, in the order of their units. Computes on no
/// pixel.
pub fn join(
    frame: &Frame<'_>,
    pieces: &mut dyn Iterator<Item = Result<Vec<u8>, FinishError>>,
    outputs: &dyn Outputs,
) -> Result<Vec<FrameFile>, FinishError> {
    let _ = (frame, pieces, outputs);
    unimplemented!()
}

/// Returns the bytes of memory that making a piece takes at most, besides its inputs' file.
pub fn memory_of(spec: &RenderSpec, finish: &Finish) -> u64 {
    let _ = (spec, finish);
    unimplemented!()
}

/// Rows of the rendered window that a piece reads, counted from its top: those of the piece, and
/// with the denoiser's reach around them.
pub fn rows_read(spec: &RenderSpec, finish: &Finish) -> std::ops::Range<u32> {
    let _ = (spec, finish);
    unimplemented!()
}
