//! The built-in kernel `denoise` on the CPU. It computes a chunk's rows in whole tiles, and drops
//! the pixels outside the chunk. A device has tiles of its own (`source/compute/denoise.h`), and
//! the same bits.

use super::host::{HostArray, HostError};
use super::layout::ChunkParams;
use crate::denoise::{
    CHANNELS, COLORS, DenoiseError, Fitted, Pass, REACH, Rows, Scratch, TILE_HEIGHT, TILE_WIDTH,
    tile,
};
use crate::host::Isa;
use std::ops::Range;
use tessera_layout::FILM_VALUE_MAX;

/// Bits of a NaN, as all built-in kernels write it.
const NAN_BITS: u32 = 0x7fc0_0000;

/// Arrays of a frame, by pixel.
struct Frame<'a> {
    width: usize,
    height: usize,
    picture: &'a [f32],
    albedo: &'a [f32],
    normal: &'a [f32],
    depth: &'a [f32],
    samples: u32,
    pass: Pass,
}

/// Runs the kernel, like [`super::host::run`].
pub(super) fn denoise_chunk(
    isa: Isa,
    chunk: &ChunkParams,
    arrays: &[HostArray<'_>],
    numbers: &[u32],
    out: &mut [f32],
) -> Result<(), HostError> {
    let call = HostError::Call("denoise");
    let frame = Frame::of(chunk, arrays, numbers).ok_or(call.clone())?;
    let (first, count) = (chunk.first as usize, chunk.count as usize);
    let plane = frame.width * frame.height;
    let end = first
        .checked_add(count)
        .filter(|end| *end <= plane * chunk.depth as usize)
        .ok_or(call.clone())?;
    if out.len() != 3 * count || chunk.depth > 2 {
        return Err(call);
    }
    for half in 0..chunk.depth as usize {
        let wanted = first.max(half * plane)..end.min((half + 1) * plane);
        if wanted.is_empty() {
            continue;
        }
        let pixels = wanted.start - half * plane..wanted.end - half * plane;
        let values = &mut out[3 * (wanted.start - first)..3 * (wanted.end - first)];
        frame.denoise(isa, half, pixels, values).map_err(|error| match error {
            DenoiseError::Unsupported(isa) => HostError::Unsupported(isa),
            DenoiseError::Range(_) => HostError::Call("denoise"),
        })?;
    }
    Ok(())
}

impl<'a> Frame<'a> {
    /// Creates the frame; None if lengths or numbers are not those of the kernel.
    fn of(chunk: &ChunkParams, arrays: &[HostArray<'a>], numbers: &[u32]) -> Option<Self> {
        let [picture, albedo, normal, depth] = arrays else { return None };
        let [samples, pass] = *numbers else { return None };
        let (width, height) = (chunk.width as usize, chunk.height as usize);
        let plane = width.checked_mul(height).filter(|pixels| *pixels > 0 && *pixels <= 1 << 32)?;
        let lengths = [(picture, 6), (albedo, 3), (normal, 3), (depth, 1)];
        let whole = lengths.iter().all(|(array, channels)| array.values.len() == channels * plane);
        let pass = [Pass::First, Pass::Second].get(pass as usize).copied()?;
        let [picture, albedo, normal, depth] =
            [picture, albedo, normal, depth].map(|array| array.values);
        whole.then_some(Self { width, height, picture, albedo, normal, depth, samples, pass })
    }

    /// Writes some pixels of the picture (half 0) or of its second half (1), three values each.
    fn denoise(
        &self,
        isa: Isa,
        half: usize,
        pixels: Range<usize>,
        values: &mut [f32],
    ) -> Result<(), DenoiseError> {
        let rows = pixels.start / self.width..(pixels.end - 1) / self.width + 1;
        let mut scratch = Scratch::default();
        for y in rows.clone().step_by(TILE_HEIGHT) {
            let there = y.saturating_sub(REACH)..(y + TILE_HEIGHT + REACH).min(self.height);
            let channels = self.channels(there.clone());
            let part = Rows {
                pass: self.pass,
                fitted: [Fitted::Picture, Fitted::WithHalf][half],
                width: self.width,
                height: self.height,
                first_row: there.start,
                samples: self.samples,
                channels: std::array::from_fn(|channel| channels[channel].as_slice()),
            };
            for x in (0..self.width).step_by(TILE_WIDTH) {
                let made = tile(isa, &part, (x, y), &mut scratch)?;
                let width = TILE_WIDTH.min(self.width - x);
                let made = &made[half * COLORS / 2..][..COLORS / 2];
                for at in 0..made[0].len() {
                    let pixel = (y + at / width) * self.width + x + at % width;
                    if !pixels.contains(&pixel) {
                        continue;
                    }
                    let to = &mut values[3 * (pixel - pixels.start)..][..3];
                    for (value, made) in to.iter_mut().zip(made) {
                        *value =
                            if made[at].is_nan() { f32::from_bits(NAN_BITS) } else { made[at] };
                    }
                }
            }
        }
        Ok(())
    }

    /// Returns the tile kernel's channels of some rows. Values are limited to those that a film can
    /// have, and NaN becomes 0.
    fn channels(&self, rows: Range<usize>) -> [Vec<f32>; CHANNELS] {
        let plane = self.width * self.height;
        let pixels = rows.start * self.width..rows.end * self.width;
        let of = |array: &[f32], first: usize, channel: usize| -> Vec<f32> {
            pixels.clone().map(|pixel| in_film(array[3 * (first + pixel) + channel])).collect()
        };
        std::array::from_fn(|channel| match channel {
            0..3 => of(self.picture, 0, channel),
            3..6 => of(self.picture, plane, channel - 3),
            6..9 => of(self.albedo, 0, channel - 6),
            9..12 => of(self.normal, 0, channel - 9),
            _ => self.depth[pixels.clone()].iter().map(|value| in_film(*value)).collect(),
        })
    }
}

fn in_film(value: f32) -> f32 {
    if value.is_nan() { 0.0 } else { value.clamp(-FILM_VALUE_MAX, FILM_VALUE_MAX) }
}
