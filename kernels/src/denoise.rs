//! The denoiser on the CPU (`source/film/denoise.h`). It works on tiles of a frame, of which only
//! some rows are in memory at a time.

use crate::float_mode::FloatMode;
pub use crate::isa::{Isa, available_isas, best_isa};

/// Width in pixels of a tile that is denoised at once.
pub const TILE_WIDTH: usize = 64;
/// Height in pixels of a tile that is denoised at once.
pub const TILE_HEIGHT: usize = 16;
/// Distance in rows and columns up to which pixels affect a pixel in one pass.
pub const REACH: usize = 23;
/// Input channels: colour 3, half 3, albedo 3, normal 3, depth 1.
pub const CHANNELS: usize = 13;
/// Number of first channels that a pass improves: colour and half.
pub const COLORS: usize = 6;

/// The pass of a denoiser. The second pass filters the result of the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Pass {
    /// Filters the rendered frame.
    First = 0,
    /// Filters the result of the first pass. The guides are unchanged.
    Second = 1,
}

/// The colours that a pass makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fitted {
    /// The picture, three channels.
    Picture,
    /// The picture and its second half, which the second pass needs: [`COLORS`] channels.
    WithHalf,
}

/// Returns the number of samples in the second half of the first `samples` of a pixel
/// (`in_second_half` of `source/sampling/sampler.h`).
pub fn second_half(samples: u32) -> u32 {
    let Some(highest) = samples.checked_ilog2() else { return 0 };
    match highest {
        0 => 0,
        _ => {
            let block = 1 << (highest - 1);
            block + samples.saturating_sub(3 * block)
        }
    }
}

/// Some rows of a frame.
#[derive(Clone, Copy, Debug)]
pub struct Rows<'a> {
    /// Pass over these rows.
    pub pass: Pass,
    /// Colours that the pass makes. They do not affect each other.
    pub fitted: Fitted,
    /// Width of the frame in pixels.
    pub width: usize,
    /// Height of the frame in pixels.
    pub height: usize,
    /// Number of the first of these rows in the frame.
    pub first_row: usize,
    /// Samples per pixel, at least 2.
    pub samples: u32,
    /// Channels, row by row: mean colour; the sum of the colours of the samples from `samples / 2`
    /// on, divided by `samples`; albedo; normal; depth.
    pub channels: [&'a [f32]; CHANNELS],
}

/// Why nothing was denoised.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DenoiseError {
    /// This processor cannot run that build.
    #[error("this processor cannot run kernels built for {0}")]
    Unsupported(Isa),
    /// Rows, samples or the tile are out of range.
    #[error("denoising out of range: {0}")]
    Range(&'static str),
}

/// Mirrors `DenoiseParams`.
#[repr(C)]
pub(crate) struct Params {
    channels: [*const f32; CHANNELS],
    width: u32,
    height: u32,
    first_row: u32,
    rows: u32,
    x: u32,
    y: u32,
    first_scale: f32,
    second_scale: f32,
    pass: u32,
    colors: u32,
}

const _: () = assert!(size_of::<Params>() == 144 || size_of::<usize>() != 8);

/// `sizeof(DenoiseScratch)` in floats.
const SCRATCH_FLOATS: usize = 1_767_656 / 4;

/// Memory that one thread needs for its tiles, about 1.7 MiB. Its content never affects a result.
#[derive(Debug)]
pub struct Scratch {
    memory: Vec<f32>,
    tile: Vec<Vec<f32>>,
}

impl Default for Scratch {
    fn default() -> Self {
        Self { memory: vec![0.0; SCRATCH_FLOATS], tile: Vec::new() }
    }
}

pub(crate) type Entry = unsafe extern "C" fn(*const Params, *mut f32, *mut f32);

#[cfg(target_arch = "x86_64")]
unsafe extern "C" {
    fn tessera_denoise_v2(params: *const Params, scratch: *mut f32, out: *mut f32);
    fn tessera_denoise_v3(params: *const Params, scratch: *mut f32, out: *mut f32);
}

#[cfg(not(target_arch = "x86_64"))]
unsafe extern "C" {
    fn tessera_denoise_base(params: *const Params, scratch: *mut f32, out: *mut f32);
}

#[cfg(target_arch = "x86_64")]
fn entry(isa: Isa) -> Option<Entry> {
    match isa {
        Isa::Base => None,
        Isa::V2 => Some(tessera_denoise_v2),
        Isa::V3 => Some(tessera_denoise_v3),
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn entry(isa: Isa) -> Option<Entry> {
    (isa == Isa::Base).then_some(tessera_denoise_base)
}

/// One pass over the tile whose first pixel is (`x`, `y`), cut at the frame's edges, on this
/// thread: the channels that are fitted, each row by row.
///
/// The result depends only on the frame: not on `isa`, on the rows that are there beyond those
/// needed, or on where tiles begin.
///
/// # Errors
/// Where the processor lacks `isa`, or the rows are not all that are at most [`REACH`] away from
/// the tile.
pub fn tile<'s>(
    isa: Isa,
    rows: &Rows<'_>,
    (x, y): (usize, usize),
    scratch: &'s mut Scratch,
) -> Result<&'s [Vec<f32>], DenoiseError> {
    let available = available_isas().contains(&isa);
    let denoise = entry(isa).filter(|_| available).ok_or(DenoiseError::Unsupported(isa))?;
    // SAFETY: `denoise` is this crate's own kernel, and the processor has its instruction set.
    unsafe { tile_with(denoise, rows, (x, y), scratch) }
}

/// [`tile`] through any entry.
///
/// # Safety
/// `denoise` must be `tessera_denoise` of `entry/denoise.cpp`, built for a processor like this one.
pub(crate) unsafe fn tile_with<'s>(
    denoise: Entry,
    rows: &Rows<'_>,
    (x, y): (usize, usize),
    scratch: &'s mut Scratch,
) -> Result<&'s [Vec<f32>], DenoiseError> {
    let params = params(rows, x, y)?;
    let mut out = [0f32; COLORS * TILE_WIDTH * TILE_HEIGHT];
    let _mode = FloatMode::strict();
    // SAFETY: by `params`, the channels hold all rows that the kernel reads; the scratch and the
    // result are as long as the kernel writes.
    unsafe { denoise(&params, scratch.memory.as_mut_ptr(), out.as_mut_ptr()) };
    let width = TILE_WIDTH.min(rows.width - x);
    let height = TILE_HEIGHT.min(rows.height - y);
    scratch.tile.resize_with(params.colors as usize, Vec::new);
    for (plane, values) in scratch.tile.iter_mut().zip(out.chunks_exact(TILE_WIDTH * TILE_HEIGHT)) {
        plane.clear();
        values
            .chunks_exact(TILE_WIDTH)
            .take(height)
            .for_each(|row| plane.extend_from_slice(&row[..width]));
    }
    Ok(&scratch.tile)
}

/// Returns the kernel's parameters, if all needed rows are there.
fn params(rows: &Rows<'_>, x: usize, y: usize) -> Result<Params, DenoiseError> {
    let Rows { pass, fitted, width, height, first_row, samples, channels } = *rows;
    let edge = 1..=crate::host::FRAME_EDGE_MAX as usize;
    if !edge.contains(&width) || !edge.contains(&height) || x >= width || y >= height {
        return Err(DenoiseError::Range("tile outside the frame"));
    }
    if !(2..=crate::host::SAMPLES_MAX).contains(&samples) {
        return Err(DenoiseError::Range("samples"));
    }
    let count = channels[0].len() / width;
    let needed = y.saturating_sub(REACH)..(y + TILE_HEIGHT + REACH).min(height);
    let there = first_row..first_row.saturating_add(count).min(height);
    if channels.iter().any(|channel| channel.len() != count * width)
        || needed.start < there.start
        || needed.end > there.end
    {
        return Err(DenoiseError::Range("rows are missing"));
    }
    let first = samples / 2;
    Ok(Params {
        channels: channels.map(<[f32]>::as_ptr),
        width: width as u32,
        height: height as u32,
        first_row: first_row as u32,
        rows: count as u32,
        x: x as u32,
        y: y as u32,
        first_scale: samples as f32 / first as f32,
        second_scale: samples as f32 / (samples - first) as f32,
        pass: pass as u32,
        colors: match fitted {
            Fitted::Picture => COLORS as u32 / 2,
            Fitted::WithHalf => COLORS as u32,
        },
    })
}
