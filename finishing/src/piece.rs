//! Pieces of a finished frame as bytes: what finishing units make, and files are put together from.

use crate::FinishError;
use std::ops::Range;
use tessera_protocol::node::Piece;

/// Whether bytes are a piece of a finished frame, and not a film or a chunk.
pub fn is_piece(bytes: &[u8]) -> bool {
    let _ = bytes;
    unimplemented!()
}

/// Returns what bytes are a piece of, after a check of their whole structure: of all lengths, and
/// that nothing follows.
pub fn piece_of(bytes: &[u8]) -> Result<Piece, FinishError> {
    let _ = bytes;
    unimplemented!()
}

/// Returns where the pixels are that the assembly reads of a band.
pub fn pixels_of(bytes: &[u8]) -> Result<Range<usize>, FinishError> {
    let _ = bytes;
    unimplemented!()
}
