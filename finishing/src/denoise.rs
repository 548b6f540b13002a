//! Denoises the rows of a frame band by band. Owns which rows must be present; the kernels own the
//! arithmetic.

use crate::FinishError;
use crate::band::{Band, Planes};
use rayon::prelude::*;
use std::ops::Range;
use tessera_kernels::denoise::{
    CHANNELS, DenoiseError, Fitted, Pass, REACH, Rows, Scratch, TILE_HEIGHT, TILE_WIDTH, best_isa,
    tile,
};
use tessera_protocol::job::{AovSpec, RenderSpec, Window};
use tessera_protocol::limits::DENOISE_REACH;

/// Returns the first channel of the noisy picture in a denoised band. It comes after all other
/// channels.
pub(crate) fn noisy_channel(spec: &RenderSpec) -> usize {
    Planes::of(spec).count
}

/// Number of samples that the kernel gets. Halves come scaled as if each pixel had two samples,
/// because tiles can have different numbers of them.
const SAMPLES: u32 = 2;

const _: () = assert!(DENOISE_REACH as usize == 2 * REACH, "jobs render what two passes read");

/// What computes passes of the denoiser in place of the caller's threads, such as a GPU.
pub trait Passes: Sync {
    /// Returns the fitted colours of some rows of the frame, one vector per channel, row by row;
    /// None if the caller has to compute them. `rows` has all rows that are at most [`REACH`] away
    /// from `wanted`.
    fn pass(&self, rows: &Rows<'_>, wanted: Range<usize>) -> Option<Vec<Vec<f32>>>;
}

/// Pixels that are to be denoised, counted from the top left of those that are there.
pub(crate) struct Needed {
    /// Width and height of what is there. Beyond it is nothing.
    pub(crate) size: (usize, usize),
    /// Pixels whose denoised values are of use.
    pub(crate) kept: Window,
    /// Pixels among them whose values are not.
    pub(crate) without: Option<Window>,
}

impl Needed {
    /// Returns whether a tile has pixels that are of use, or on which the second pass builds.
    fn has(&self, tile: &Window, pass: Pass) -> bool {
        let reach = if pass == Pass::First { REACH as u32 } else { 0 };
        let without = self.without.is_some_and(|part| {
            // A tile is far enough from the other pixels if it is that much larger within.
            part.contains(&tile.grown(reach))
        });
        !without && self.kept.grown(reach).cut(tile).pixels() > 0
    }
}

/// A picture that is being denoised. The rows of the first pass go to the second pass.
pub(crate) struct Denoiser<'a> {
    first: Filter<'a>,
    second: Filter<'a>,
}

impl<'a> Denoiser<'a> {
    pub(crate) fn new(
        spec: &RenderSpec,
        needed: &Needed,
        elsewhere: Option<&'a dyn Passes>,
    ) -> Self {
        let filter = |pass| Filter::new(spec, pass, needed, elsewhere);
        Self { first: filter(Pass::First), second: filter(Pass::Second) }
    }

    /// Takes the next rows, with the film's channels. Returns the rows that can be denoised now,
    /// which may be none. The noisy picture follows their other channels. The frame's last rows
    /// return all rows that are left.
    pub(crate) fn push(&mut self, mut band: Band) -> Result<Band, FinishError> {
        let plane = band.width * band.height;
        band.values.extend_from_within(..3 * plane);
        self.second.push(self.first.push(band)?)
    }
}

/// One pass over a frame. It holds the rows that are not filtered yet, and their neighbours.
struct Filter<'a> {
    pass: Pass,
    needed: Needed,
    elsewhere: Option<&'a dyn Passes>,
    width: usize,
    height: usize,
    /// Channels of the film that the kernel reads, in the kernel's order.
    sources: [usize; CHANNELS],
    /// Rows from `first_row` on, one vector per channel.
    channels: Vec<Vec<f32>>,
    first_row: usize,
    /// The next row to filter.
    next_row: usize,
}

impl<'a> Filter<'a> {
    fn new(
        spec: &RenderSpec,
        pass: Pass,
        needed: &Needed,
        elsewhere: Option<&'a dyn Passes>,
    ) -> Self {
        let planes = Planes::of(spec);
        let half = planes.half.unwrap_or(0);
        let of = |layer: AovSpec| spec.channel_of(layer).map_or(0, usize::from);
        let three = |first: usize| [first, first + 1, first + 2];
        let parts = [three(0), three(half), three(of(AovSpec::Albedo)), three(of(AovSpec::Normal))]
            .concat();
        let mut sources = [of(AovSpec::Depth); CHANNELS];
        sources[..parts.len()].copy_from_slice(&parts);
        Self {
            pass,
            needed: Needed { ..*needed },
            elsewhere,
            width: needed.size.0,
            height: needed.size.1,
            sources,
            channels: vec![Vec::new(); noisy_channel(spec) + 3],
            first_row: 0,
            next_row: 0,
        }
    }

    /// Takes the next rows, with all channels. Returns the rows that can be filtered now.
    fn push(&mut self, band: Band) -> Result<Band, FinishError> {
        let plane = band.width * band.height;
        for (rows, new) in self.channels.iter_mut().zip(band.values.chunks_exact(plane.max(1))) {
            rows.extend_from_slice(new);
        }
        drop(band);
        let there = self.first_row + self.channels[0].len() / self.width;
        // Only whole tiles are filtered, so that no tile needs rows that have not come yet.
        let whole = there.saturating_sub(REACH) / TILE_HEIGHT * TILE_HEIGHT;
        let end = if there == self.height { there } else { whole.max(self.next_row) };
        let filtered = self.filtered(end)?;
        self.next_row = end;
        let keep = end.saturating_sub(REACH);
        let gone = (keep - self.first_row) * self.width;
        self.channels.iter_mut().for_each(|rows| drop(rows.drain(..gone)));
        self.first_row = keep;
        Ok(filtered)
    }

    /// Returns the rows from the next one to `end`, filtered.
    fn filtered(&self, end: usize) -> Result<Band, FinishError> {
        let height = end - self.next_row;
        let plane = self.width * height;
        let mut band = Band {
            width: self.width,
            height,
            values: Vec::with_capacity(plane * self.channels.len()),
        };
        let skipped = (self.next_row - self.first_row) * self.width;
        for rows in &self.channels {
            band.values.extend_from_slice(&rows[skipped..][..plane]);
        }
        self.overwrite(&mut band)?;
        Ok(band)
    }

    /// Replaces the channels of a band that the kernel improves. The band begins at the next row.
    fn overwrite(&self, band: &mut Band) -> Result<(), DenoiseError> {
        let rows = Rows {
            pass: self.pass,
            fitted: match self.pass {
                Pass::First => Fitted::WithHalf,
                Pass::Second => Fitted::Picture,
            },
            width: self.width,
            height: self.height,
            first_row: self.first_row,
            samples: SAMPLES,
            channels: self.sources.map(|source| self.channels[source].as_slice()),
        };
        let isa = best_isa();
        let corners: Vec<(usize, usize)> = (0..band.height)
            .step_by(TILE_HEIGHT)
            .flat_map(|y| (0..self.width).step_by(TILE_WIDTH).map(move |x| (x, y)))
            .filter(|(x, y)| self.needed.has(&window_of(*x, self.next_row + y), self.pass))
            .collect();
        if self.overwrite_elsewhere(&rows, &corners, band) {
            return Ok(());
        }
        let tiles: Vec<Vec<Vec<f32>>> = corners
            .par_iter()
            .map_init(Scratch::default, |scratch, (x, y)| {
                tile(isa, &rows, (*x, self.next_row + y), scratch).map(<[_]>::to_vec)
            })
            .collect::<Result<_, _>>()?;
        for ((x, y), tile) in corners.into_iter().zip(tiles) {
            let width = TILE_WIDTH.min(self.width - x);
            for (values, channel) in tile.iter().zip(self.sources) {
                for (row, values) in values.chunks_exact(width).enumerate() {
                    band.part_of_line(channel, y + row, x, width).copy_from_slice(values);
                }
            }
        }
        Ok(())
    }

    /// Has the rows of all tiles with these corners computed elsewhere, where something does that.
    fn overwrite_elsewhere(
        &self,
        rows: &Rows<'_>,
        corners: &[(usize, usize)],
        band: &mut Band,
    ) -> bool {
        let (Some(elsewhere), Some(first), Some(last)) =
            (self.elsewhere, corners.first(), corners.last())
        else {
            return false;
        };
        let lines = first.1..(last.1 + TILE_HEIGHT).min(band.height);
        let wanted = self.next_row + lines.start..self.next_row + lines.end;
        let Some(planes) = elsewhere.pass(rows, wanted) else { return false };
        for (values, channel) in planes.iter().zip(self.sources) {
            for (y, values) in lines.clone().zip(values.chunks_exact(self.width)) {
                band.part_of_line(channel, y, 0, self.width).copy_from_slice(values);
            }
        }
        true
    }
}

/// Returns the pixels of a tile of the kernel.
fn window_of(x: usize, y: usize) -> Window {
    let (left, top) = (x as i32, y as i32);
    Window { left, top, right: left + TILE_WIDTH as i32, bottom: top + TILE_HEIGHT as i32 }
}

#[cfg(test)]
#[path = "tests/denoise.rs"]
mod tests;
