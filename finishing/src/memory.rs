//! What making a piece needs: rows of films, and memory.

use crate::band::Planes;
use crate::denoise::noisy_channel;
use crate::make::ROWS_AT_ONCE;
use crate::part::{BAND_ROWS, Part};
use crate::pixels;
use std::ops::Range;
use tessera_kernels::denoise::{CHANNELS, COLORS};
use tessera_protocol::job::{FormatSpec, RenderSpec};
use tessera_protocol::limits::RESULT_BYTES_MAX;
use tessera_protocol::node::{Finish, Piece};

/// Copies of a tile's sums while one is decoded and added: two films, the bytes that they are made
/// of, and the shuffled bytes.
const SUM_COPIES: u64 = 4;
/// Rows that a pass of the denoiser holds besides the newest row of tiles, or that both give
/// besides these at the end of a frame.
const HELD_ROWS: u64 = 80;
/// What is small, and what allocators and threads keep.
const SMALL_BYTES: u64 = 16 << 20;

/// Rows of the rendered window that a piece reads, counted from its top: those of the piece, and
/// with the denoiser's reach around them. An assembly reads none.
pub fn rows_read(spec: &RenderSpec, finish: &Finish) -> Range<u32> {
    let Some(rows) = rows_of(&finish.piece) else { return 0..0 };
    let read = Part::of_rows(spec, rows).rendered.from(&spec.rendered_window());
    read.top.max(0).unsigned_abs()..read.bottom.max(0).unsigned_abs()
}

/// Returns the rows of the files that a piece makes.
fn rows_of(piece: &Piece) -> Option<Range<u32>> {
    match *piece {
        Piece::Band { first, rows } => Some(first..first.saturating_add(rows)),
        Piece::Frame { rows } => Some(0..rows),
        Piece::Assembly => None,
    }
}

/// Returns the bytes of memory that making a piece takes at most, besides its inputs' file, with as
/// many threads as this process uses for it. The head of this crate says what they are for.
pub fn memory_of(spec: &RenderSpec, finish: &Finish) -> u64 {
    let width = u64::from(spec.data_window().width());
    let shown = spec.formats.iter().filter(|format| **format != FormatSpec::Exr).count() as u64;
    let rows = match rows_of(&finish.piece) {
        Some(rows) => rows.len() as u64,
        None => u64::from(spec.data_window().height()),
    };
    // The rows of a PNG take 8 bytes a pixel, a JPEG holds 8 rows of 24 bytes and their blocks.
    let encoders = |rows: u64| shown * width * (8 * rows + 8 * (24 + 12));
    let made = match finish.piece {
        Piece::Band { .. } => rows * width * (4 * exr_values(spec) + pixel_bytes(spec)),
        Piece::Frame { .. } => rows * width * (4 * exr_values(spec) + 8 * shown),
        Piece::Assembly => rows * width * 8 * shown,
    };
    // The sections, the piece that is put together of them, and room to grow.
    let made = 3 * made.min(RESULT_BYTES_MAX as u64);
    let working = match rows_of(&finish.piece) {
        Some(rows) => films(spec, rows, &encoders),
        None => {
            let rows = ROWS_AT_ONCE as u64;
            2 * rows * width * pixel_bytes(spec) + encoders(rows)
        }
    };
    SMALL_BYTES + made + working
}

/// Bytes that are in use from films to rows.
fn films(spec: &RenderSpec, rows: Range<u32>, encoders: &impl Fn(u64) -> u64) -> u64 {
    let read = Part::of_rows(spec, rows).rendered;
    let threads = rayon::current_num_threads().max(1) as u64;
    let tiles = spec.tiles();
    let sums = threads.min(tiles.columns().into())
        * SUM_COPIES
        * 8
        * tiles.tile_pixels_max()
        * u64::from(spec.channels());
    let (width, height) = (u64::from(read.width()), u64::from(read.height()));
    let band = height.min(spec.tile.into());
    let row = |channels: usize| 4 * width * channels as u64;
    let layers = match spec.denoise {
        false => 2 * band * row(Planes::of(spec).count),
        true => {
            // Each pass holds rows, with room to grow, and gives as many as it takes.
            let beyond = if spec.frame_window().contains(&read) { 1 } else { 3 };
            let held = 2 * 2 * (band + HELD_ROWS).min(height) + 3 * (band + HELD_ROWS);
            // A device is sent the rows that a pass reads, and gives what it fits, which is put
            // into planes.
            let sent = (band + HELD_ROWS) * row(CHANNELS + 2 * COLORS);
            beyond * held * row(noisy_channel(spec) + 3) + sent
        }
    };
    // Rows of as many blocks as there are threads, their copies, and what they are compressed to.
    let blocks = 3 * (threads * u64::from(BAND_ROWS)).min(height + 1);
    sums + layers + blocks * width * 4 * exr_values(spec) + encoders(band + HELD_ROWS)
}

/// Values of a pixel in an EXR file, at most.
fn exr_values(spec: &RenderSpec) -> u64 {
    match spec.formats.contains(&FormatSpec::Exr) {
        true => noisy_channel(spec) as u64 + 4,
        false => 0,
    }
}

/// Bytes of a pixel that a band hands on.
fn pixel_bytes(spec: &RenderSpec) -> u64 {
    let alpha = usize::from(pixels::alpha_channel(spec).is_some());
    4 * (pixels::COLORS + alpha) as u64
}
