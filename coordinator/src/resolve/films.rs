//! The films of a frame, from its spool, and its files, as blobs.

use super::error::ResolveError;
use super::frame::Frame;
use crate::blobs::{BlobWriter, Blobs};
use crate::measure::sum_of;
use crate::spool::SpoolIndex;
use std::io::{self, Seek, SeekFrom, Write};
use tessera_core::{FrameRounds, Grid};
use tessera_finishing::{Films, FinishError, Output, Outputs};
use tessera_protocol::{BlobHash, TileSums};

/// The films of a frame, each of them the sum of a tile's units.
pub(super) struct SpoolFilms<'a> {
    grid: Grid,
    channels: u8,
    spp: u32,
    spool: &'a SpoolIndex,
    rounds: Option<&'a FrameRounds>,
}

impl<'a> SpoolFilms<'a> {
    pub(super) fn new(frame: &Frame<'a>) -> Self {
        Self {
            grid: Grid::of(frame.spec),
            channels: frame.spec.channels(),
            spp: frame.spec.spp,
            spool: frame.spool,
            rounds: frame.rounds,
        }
    }

    fn sum(&self, tile: u32) -> Result<TileSums, ResolveError> {
        let (film, samples) = match self.rounds {
            Some(rounds) => {
                let passes = 0..rounds.passes(tile);
                (sum_of(rounds, self.spool, (tile, passes))?, rounds.samples(tile))
            }
            None => (self.sum_of_passes(tile)?, self.spp),
        };
        let shape = self.grid.tile_rect(tile).map(|rect| (rect.width, rect.height));
        let fits = Some((u32::from(film.width), u32::from(film.height))) == shape
            && film.channels == self.channels
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
}

impl Films for SpoolFilms<'_> {
    fn sums(&self, tile: u32) -> Result<TileSums, FinishError> {
        self.sum(tile).map_err(|error| FinishError::Results(Box::new(error)))
    }
}

/// Files that become blobs.
pub(super) struct BlobOutputs<'a>(pub(super) &'a dyn Blobs);

impl Outputs for BlobOutputs<'_> {
    fn begin(&self) -> Result<Box<dyn Output>, FinishError> {
        let writer = self.0.writer().map_err(|error| FinishError::Store(Box::new(error)))?;
        Ok(Box::new(BlobOutput(writer)))
    }
}

struct BlobOutput(Box<dyn BlobWriter>);

impl Output for BlobOutput {
    fn finish(self: Box<Self>) -> Result<(BlobHash, u64), FinishError> {
        self.0.finish().map_err(|error| FinishError::Store(Box::new(error)))
    }
}

impl Write for BlobOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl Seek for BlobOutput {
    fn seek(&mut self, position: SeekFrom) -> io::Result<u64> {
        self.0.seek(position)
    }
}
