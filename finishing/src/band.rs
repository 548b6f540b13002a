//! From sums to pixels: adds the films of one row of tiles, divides them, and puts them side by
//! side.

use crate::Films;
use crate::FinishError;
use crate::part::Part;
use rayon::prelude::*;
use std::ops::{Range, RangeInclusive};
use tessera_kernels::denoise::second_half;
use tessera_protocol::TileSums;
use tessera_protocol::film::FRACTION_BITS;
use tessera_protocol::job::{RenderSpec, TileGrid, Window};

/// Rows of the rendered window, as many as a tile has, stored by channel. Channel c of pixel (x, y)
/// is at `(c * height + y) * width + x`.
#[derive(Debug, Default)]
pub(crate) struct Band {
    /// Width in pixels.
    pub(crate) width: usize,
    /// Number of pixel rows.
    pub(crate) height: usize,
    pub(crate) values: Vec<f32>,
}

impl Band {
    /// Converts rows of 32-bit floats in a kernel's layout: little endian, channel by channel
    /// within a pixel. An incomplete row at the end is left out.
    pub(crate) fn of_pixels(width: usize, channels: usize, bytes: &[u8]) -> Self {
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
    pub(crate) fn line(&self, channel: usize, y: usize) -> &[f32] {
        let start = (channel * self.height + y) * self.width;
        &self.values[start..start + self.width]
    }

    /// Returns some columns of some rows.
    pub(crate) fn part(&self, columns: Range<usize>, rows: Range<usize>) -> Self {
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
    pub(crate) fn part_of_line(
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
pub(crate) struct Planes {
    /// First channel of the half, which is the film's last.
    pub(crate) half: Option<usize>,
    /// Channel with the number of samples of each pixel.
    pub(crate) samples: Option<usize>,
    /// Number of all channels.
    pub(crate) count: usize,
}

impl Planes {
    pub(crate) fn of(spec: &RenderSpec) -> Self {
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

/// The tiles of a frame, or those of some of its rows.
pub(crate) struct Tiles<'a> {
    grid: TileGrid,
    /// Pixels to lay out.
    window: Window,
    channels: usize,
    planes: Planes,
    /// Samples that a tile may have.
    samples: RangeInclusive<u32>,
    films: &'a dyn Films,
}

impl<'a> Tiles<'a> {
    pub(crate) fn new(spec: &RenderSpec, part: &Part, films: &'a dyn Films) -> Self {
        Self {
            grid: spec.tiles(),
            window: part.rendered,
            channels: usize::from(spec.channels()),
            planes: Planes::of(spec),
            samples: if spec.has_rounds() { 1..=spec.spp } else { spec.spp..=spec.spp },
            films,
        }
    }

    /// Returns the rows of tiles that have pixels of the window.
    pub(crate) fn rows(&self) -> impl Iterator<Item = u32> + use<> {
        let (grid, window) = (self.grid, self.window);
        (0..grid.rows()).filter(move |row| {
            grid.window(row * grid.columns())
                .is_some_and(|tile| tile.top.max(window.top) < tile.bottom.min(window.bottom))
        })
    }

    /// Returns the pixels of one row of tiles that are in the window.
    pub(crate) fn band(&self, row: u32) -> Result<Band, FinishError> {
        let first = row * self.grid.columns();
        let tile = self.grid.window(first).ok_or(FinishError::Shape { tile: first })?;
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
                if let Some(tile) = self.grid.window(*tile) {
                    self.lay(&mut band, &Place::of(&tile, &rows), sums);
                }
            }
        }
        Ok(band)
    }

    /// Returns the sums of all samples of a tile.
    fn sums(&self, tile: u32) -> Result<TileSums, FinishError> {
        let film = self.films.sums(tile)?;
        let shape = self.grid.rect(tile).map(|rect| (rect.width, rect.height));
        let fits = Some((u32::from(film.width), u32::from(film.height))) == shape
            && usize::from(film.channels) == self.channels
            && self.samples.contains(&film.samples);
        fits.then_some(film).ok_or(FinishError::Shape { tile })
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
pub(crate) fn half_of(samples: u32, whole: i64, second: i64) -> f32 {
    const SCALE: f64 = 1.0 / (1u64 << FRACTION_BITS) as f64;
    let (all, later) = (f64::from(samples), f64::from(second_half(samples)));
    let first = all - later;
    let mean = whole as f64 * SCALE / all;
    let apart = whole.wrapping_sub(second) as f64 * SCALE / first - second as f64 * SCALE / later;
    (0.5 * (mean - apart * ((first * later).sqrt() / all))) as f32
}

/// Returns the mean of a sum. The sum is exact in its scale; the quotient is rounded once, and once
/// more to 32 bits.
pub(crate) fn pixel(sum: i64, samples: u32) -> f32 {
    const SCALE: f64 = 1.0 / (1u64 << FRACTION_BITS) as f64;
    (sum as f64 * SCALE / f64::from(samples)) as f32
}

#[cfg(test)]
mod tests {
    use super::half_of;

    #[test]
    fn the_half_of_equal_halves_equals_the_film() {
        let one = 1 << 24;
        assert_eq!(half_of(64, one * 64, one * 40), 40.0 / 64.0);
        // Of 100 samples 64 and 36 are in the halves, whose means are 1 and 2. The expected value
        // is the difference of two equal halves with the same variance of the mean.
        let half = f64::from(half_of(100, one * (64 + 72), one * 72));
        let (mean, apart) = (1.36, 0.48);
        assert!((mean - 2.0 * half + apart).abs() < 1e-6, "{half}");
    }
}
