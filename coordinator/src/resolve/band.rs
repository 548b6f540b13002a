//! From sums to pixels: the films of one row of tiles, added, divided and laid side by side.

use super::ResolveError;
use crate::spool::SpoolIndex;
use rayon::prelude::*;
use tessera_core::Grid;
use tessera_protocol::TileSums;
use tessera_protocol::film::FRACTION_BITS;
use tessera_protocol::job::RenderSpec;

/// Rows of a frame as tall as a tile, planar: channel c of pixel (x, y) is at `(c * height + y) * width + x`.
#[derive(Debug)]
pub(super) struct Band {
    /// Pixels across: the frame's width.
    pub(super) width: usize,
    /// Rows.
    pub(super) height: usize,
    pub(super) values: Vec<f32>,
}

impl Band {
    /// Rows of 32-bit floats as a kernel writes them: little endian, channel by channel within a pixel. Bytes that fill no row are left out.
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

    /// One row of one channel.
    pub(super) fn line(&self, channel: usize, y: usize) -> &[f32] {
        let start = (channel * self.height + y) * self.width;
        &self.values[start..start + self.width]
    }
}

/// The tiles of a frame in its spool.
pub(super) struct Tiles<'a> {
    grid: Grid,
    width: usize,
    channels: usize,
    spp: u32,
    spool: &'a SpoolIndex,
}

impl<'a> Tiles<'a> {
    pub(super) fn new(spec: &RenderSpec, spool: &'a SpoolIndex) -> Self {
        Self {
            grid: Grid::of(spec),
            width: spec.width as usize,
            channels: usize::from(spec.channels()),
            spp: spec.spp,
            spool,
        }
    }

    /// Rows of tiles.
    pub(super) fn rows(&self) -> u32 {
        self.grid.tiles() / self.grid.columns()
    }

    /// The pixels of one row of tiles.
    pub(super) fn band(&self, row: u32) -> Result<Band, ResolveError> {
        let first = row * self.grid.columns();
        let height = self.grid.tile_rect(first).map_or(0, |rect| rect.height as usize);
        let mut band =
            Band { width: self.width, height, values: vec![0.0; self.width * height * self.channels] };
        // As many tiles at once as there are threads: their sums are what takes memory.
        let columns: Vec<u32> = (first..first + self.grid.columns()).collect();
        for columns in columns.chunks(rayon::current_num_threads().max(1)) {
            let films: Vec<TileSums> =
                columns.par_iter().map(|tile| self.sums(*tile)).collect::<Result<_, _>>()?;
            for (tile, film) in columns.iter().zip(&films) {
                let x = self.grid.tile_rect(*tile).map_or(0, |rect| rect.x as usize);
                lay(&mut band, x, film);
            }
        }
        Ok(band)
    }

    /// The sums of all samples of a tile.
    fn sums(&self, tile: u32) -> Result<TileSums, ResolveError> {
        let mut total: Option<TileSums> = None;
        let mut last = 0;
        for pass in 0..self.grid.passes() {
            let Some(unit) = self.grid.unit_of(tile, pass) else { break };
            last = unit.0;
            let film = self.spool.film(unit)?;
            match &mut total {
                None => total = Some(film),
                Some(total) => total.add(&film).map_err(|_| ResolveError::Shape { unit: unit.0 })?,
            }
        }
        let shape = self.grid.tile_rect(tile).map(|rect| (rect.width, rect.height));
        let fits = |film: &TileSums| {
            Some((u32::from(film.width), u32::from(film.height))) == shape
                && usize::from(film.channels) == self.channels
                && film.samples == self.spp
        };
        total.filter(fits).ok_or(ResolveError::Shape { unit: last })
    }
}

/// Mean of a sum: exact in the sum's scale, then one rounding of the quotient and one to 32 bits.
pub(super) fn pixel(sum: i64, samples: u32) -> f32 {
    const SCALE: f64 = 1.0 / (1u64 << FRACTION_BITS) as f64;
    (sum as f64 * SCALE / f64::from(samples)) as f32
}

fn lay(band: &mut Band, x: usize, film: &TileSums) {
    let (width, height) = (usize::from(film.width), usize::from(film.height));
    for (index, sums) in film.values.chunks_exact(width.max(1)).enumerate() {
        let (channel, y) = (index / height, index % height);
        let start = (channel * band.height + y) * band.width + x;
        for (value, sum) in band.values[start..start + width].iter_mut().zip(sums) {
            *value = pixel(*sum, film.samples);
        }
    }
}
