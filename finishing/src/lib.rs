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
mod join;
mod jpeg;
mod make;
mod memory;
mod memory_file;
mod meter;
mod out_file;
mod overscan;
mod part;
mod piece;
mod pipeline;
mod pixels;
mod png_file;
mod running;
mod shown;
mod tone;
mod values;
mod whole;

pub use denoise::Passes;
pub use error::FinishError;
pub use fingerprint::fingerprint;
pub use frame::{Films, Frame, Output, Outputs};
pub use inputs::{Inputs, write_part_head};
pub use join::join;
pub use make::make_piece;
pub use memory::{memory_of, rows_read};
pub use meter::metered_exposure;
pub use piece::{PIECE_HEAD_MAX, is_piece, piece_of, pixels_of};
pub use running::Running;
pub use tessera_kernels::denoise::DenoiseError;
pub use tone::screen_map;
pub use values::{ChunkResults, Values, assemble};
pub use whole::finish;

#[cfg(test)]
#[path = "tests/hostile.rs"]
mod hostile_tests;
#[cfg(test)]
#[path = "tests/made.rs"]
mod made;
#[cfg(test)]
#[path = "tests/pieces.rs"]
mod pieces_tests;
