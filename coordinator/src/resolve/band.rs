//! From sums to pixels: adds the films of one row of tiles, divides them, and puts them side by
//! side.

use super::error::ResolveError;
use super::frame::Frame;
use crate::measure::sum_of;
use crate::spool::SpoolIndex;
use rayon::prelude::*;
use std::ops::Range;
use tessera_core::{FrameRounds, Grid};
use tessera_kernels::denoise::second_half;
use tessera_protocol::TileSums;
use tessera_protocol::film::FRACTION_BITS;
use tessera_protocol::job::{RenderSpec, Window};

/// Rows of the rendered window, as many as a tile has, stored by channel. Channel c of pixel (x, y)
/// is at `(c * height + y) * width + x`.
#[derive(Debug)]
pub(super) struct Band {
    /// Width in pixels.
    pub(super) width: usize,
    /// Number of pixel rows.
    pub(super) height: usize,
    pub(super) values: Vec<f32>,
}

impl Band {
    /// Converts rows of 32-bit floats in a kernel's layout: little endian, channel by channel
    /// within a pixel. An incomplete row at the end is left out.
    pub(super) fn of_pixels(width: usize, channels: usize, bytes: &[u8]) -> Self {
        let height = bytes.len() / (width * channels * 4).max(1);
        let mut values = vec![0.0; width * height * channels];
        for (pixel, bytes) in bytes.chunks_exact(channels * 4).take(width * height).enumerate() {
            for (channel, value) in bytes.chunks_exact(4).enumerate() {
                values[channel * width * height + pixel] =
                    f32::from_le_bytes([value[0], value[1], value[2], value[3]]);
            }
        }
        Self { width, height, values }
    }

    /// Returns one row of one channel.
    pub(super) fn line(&self, channel: usize, y: usize) -> &[f32] {
        let start = (channel * self.height + y) * self.width;
        &self.values[start..start + self.width]
    }

    /// Returns some columns of some rows.
    pub(super) fn part(&self, columns: Range<usize>, rows: Range<usize>) -> Self {
        let channels = self.values.len() / (self.width * self.height).max(1);
        let (width, height) = (columns.len(), rows.len());
        let mut values = Vec::with_capacity(width * height * channels);
        for channel in 0..channels {
            for y in rows.clone() {
                values.extend_from_slice(&self.line(channel, y)[columns.clone()]);
            }
        }
        Self { width, height, values }
    }

    /// Returns some pixels of one row of one channel.
    pub(super) fn part_of_line(
        &mut self,
        channel: usize,
        y: usize,
        x: usize,
        width: usize,
    ) -> &mut [f32] {
        let start = (channel * self.height + y) * self.width + x;
        &mut self.values[start..start + width]
    }
}

/// Channels that a band has after those of the film.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Planes {
    /// First channel of the half, which is the film's last.
    pub(super) half: Option<usize>,
    /// Channel with the number of samples of each pixel.
    pub(super) samples: Option<usize>,
    /// Number of all channels.
    pub(super) count: usize,
}

impl Planes {
    pub(super) fn of(spec: &RenderSpec) -> Self {
        let film = usize::from(spec.channels());
        let half = spec.has_half().then_some(film - HALF);
        match spec.noise {
            Some(_) => Self { half, samples: Some(film), count: film + 1 },
            None => Self { half, samples: None, count: film },
        }
    }
}

/// Number of channels of the half.
const HALF: usize = tessera_protocol::job::HALF_CHANNELS as usize;

/// Tiles of a frame in its spool.
pub(super) struct Tiles<'a> {
    grid: Grid,
    /// Pixels to lay out.
    window: Window,
    channels: usize,
    planes: Planes,
    spp: u32,
    spool: &'a SpoolIndex,
    rounds: Option<&'a FrameRounds>,
}

impl<'a> Tiles<'a> {
    pub(super) fn new(frame: &Frame<'a>) -> Self {
        let spec = frame.spec;
        Self {
            grid: Grid::of(spec),
            window: spec.rendered_window(),
            channels: usize::from(spec.channels()),
            planes: Planes::of(spec),
            spp: spec.spp,
            spool: frame.spool,
            rounds: frame.rounds,
        }
    }

    /// Returns the number of rows of tiles.
    pub(super) fn rows(&self) -> u32 {
        self.grid.rows()
    }

    /// Returns the pixels of one row of tiles that are in the window.
    pub(super) fn band(&self, row: u32) -> Result<Band, ResolveError> {
        let first = row * self.grid.columns();
        let tile = self.grid.tile_window(first).ok_or(ResolveError::Shape { unit: 0 })?;
        let rows = Window { top: tile.top, bottom: tile.bottom, ..self.window }.cut(&self.window);
        let (width, height) = (rows.width() as usize, rows.height() as usize);
        let values = vec![0.0; width * height * self.planes.count];
        let mut band = Band { width, height, values };
        // Read as many tiles at once as there are threads, because their sums need much memory.
        let columns: Vec<u32> = (first..first + self.grid.columns()).collect();
        for columns in columns.chunks(rayon::current_num_threads().max(1)) {
            let films: Vec<TileSums> =
                columns.par_iter().map(|tile| self.sums(*tile)).collect::<Result<_, _>>()?;
            for (tile, sums) in columns.iter().zip(&films) {
                if let Some(tile) = self.grid.tile_window(*tile) {
                    self.lay(&mut band, &Place::of(&tile, &rows), sums);
                }
            }
        }
        Ok(band)
    }

    /// Returns the sums of all samples of a tile.
    fn sums(&self, tile: u32) -> Result<TileSums, ResolveError> {
        let (film, samples) = match self.rounds {
            Some(rounds) => {
                let passes = 0..rounds.passes(tile);
                (sum_of(rounds, self.spool, (tile, passes))?, rounds.samples(tile))
            }
            None => (self.sum_of_passes(tile)?, self.spp),
        };
        let shape = self.grid.tile_rect(tile).map(|rect| (rect.width, rect.height));
        let fits = Some((u32::from(film.width), u32::from(film.height))) == shape
            && usize::from(film.channels) == self.channels
            && film.samples == samples;
        let unit = self.grid.unit_of(tile, 0).map_or(0, |unit| unit.0);
        fits.then_some(film).ok_or(ResolveError::Shape { unit })
    }

    fn sum_of_passes(&self, tile: u32) -> Result<TileSums, ResolveError> {
        let mut total: Option<TileSums> = None;
        for pass in 0..self.grid.passes() {
            let Some(unit) = self.grid.unit_of(tile, pass) else { break };
            let film = self.spool.film(unit)?;
            match &mut total {
                None => total = Some(film),
                Some(total) => {
                    total.add(&film).map_err(|_| ResolveError::Shape { unit: unit.0 })?
                }
            }
        }
        total.ok_or(ResolveError::Shape { unit: 0 })
    }

    fn lay(&self, band: &mut Band, place: &Place, sums: &TileSums) {
        let Place { x, width, height, .. } = *place;
        for channel in 0..self.channels {
            let of_half = self.planes.half.and_then(|half| channel.checked_sub(half));
            for y in 0..height {
                let values = band.part_of_line(channel, y, x, width).iter_mut();
                let line = place.line(sums, channel, y);
                let Some(color) = of_half else {
                    values.zip(line).for_each(|(value, sum)| *value = pixel(*sum, sums.samples));
                    continue;
                };
                let all = place.line(sums, color, y);
                for (value, (all, second)) in values.zip(all.iter().zip(line)) {
                    *value = half_of(sums.samples, *all, *second);
                }
            }
        }
        if let Some(samples) = self.planes.samples {
            (0..height)
                .for_each(|y| band.part_of_line(samples, y, x, width).fill(sums.samples as f32));
        }
    }
}

/// Where the pixels of a tile are in a band.
struct Place {
    /// First column of the band.
    x: usize,
    /// Pixels of the tile that are left out before those of the band.
    skipped: (usize, usize),
    /// Columns in the band.
    width: usize,
    /// Rows in the band, from its first one on.
    height: usize,
}

impl Place {
    fn of(tile: &Window, rows: &Window) -> Self {
        let kept = tile.cut(rows);
        let skipped = (kept.left.abs_diff(tile.left), kept.top.abs_diff(tile.top));
        Self {
            x: kept.left.abs_diff(rows.left) as usize,
            skipped: (skipped.0 as usize, skipped.1 as usize),
            width: kept.width() as usize,
            height: kept.height() as usize,
        }
    }

    /// Returns the sums of one row of one channel that are in the band.
    fn line<'s>(&self, sums: &'s TileSums, channel: usize, y: usize) -> &'s [i64] {
        let (width, height) = (usize::from(sums.width), usize::from(sums.height));
        let start = (channel * height + y + self.skipped.1) * width + self.skipped.0;
        &sums.values[start..start + self.width]
    }
}

/// Returns the second half of a pixel as the denoiser reads it, from the sums of all samples and of
/// the second half. The halves may have different numbers of samples. The value is scaled so that
/// it gives the variance of the mean. If both halves have equal numbers, it is half of the second
/// half's mean.
pub(super) fn half_of(samples: u32, whole: i64, second: i64) -> f32 {
    const SCALE: f64 = 1.0 / (1u64 << FRACTION_BITS) as f64;
    let (all, later) = (f64::from(samples), f64::from(second_half(samples)));
    let first = all - later;
    let mean = whole as f64 * SCALE / all;
    let apart = whole.wrapping_sub(second) as f64 * SCALE / first - second as f64 * SCALE / later;
    (0.5 * (mean - apart * ((first * later).sqrt() / all))) as f32
}

/// Returns the mean of a sum. The sum is exact in its scale; the quotient is rounded once, and once
/// more to 32 bits.
pub(super) fn pixel(sum: i64, samples: u32) -> f32 {
    const SCALE: f64 = 1.0 / (1u64 << FRACTION_BITS) as f64;
    (sum as f64 * SCALE / f64::from(samples)) as f32
}
