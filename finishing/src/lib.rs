//! Finishing: makes the files of a frame from its films. Owns the arithmetic from sums to pixels,
//! the form of the files, and the pieces in which nodes finish a frame. Knows no spool, store or
//! network.

mod error;
mod frame;
mod inputs;
mod piece;

pub use error::FinishError;
pub use frame::{Films, Frame, Output, Outputs};
pub use inputs::{Inputs, write_part_head};
pub use piece::{is_piece, piece_of, pixels_of};

use std::sync::atomic::AtomicBool;
use tessera_protocol::job::RenderSpec;
use tessera_protocol::node::Finish;
use tessera_protocol::status::FrameFile;

/// Makes all files of a frame in one process, one for each format of the spec and in its order.
pub fn finish(
    frame: &Frame<'_>,
    films: &dyn Films,
    outputs: &dyn Outputs,
) -> Result<Vec<FrameFile>, FinishError> {
    let _ = (frame, films, outputs);
    unimplemented!()
}

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
