//! What a finishing unit reads, from the spool of its frame: the films of the tiles that its rows
//! touch, or the pixels of the bands. Owns the choice and the check of the bytes; does not know who
//! asks.

use crate::spool::{EntryHeader, SpoolError, SpoolExtent, SpoolIndex, SpoolKey, SpoolReader};
use std::io;
use std::path::PathBuf;
use tessera_core::{FrameRounds, Grid, Split};
use tessera_finishing::{FinishError, PIECE_HEAD_MAX, pixels_of, rows_read, write_part_head};
use tessera_protocol::UnitIndex;
use tessera_protocol::job::RenderSpec;
use tessera_protocol::node::{Finish, Piece};
use tessera_transport::BlobRead;

/// Bytes before a part's own.
const HEAD: u64 = 8;
/// Results of at most so many bytes are in memory while they are sent. Longer ones are checked
/// first, and read again as they are sent: a node that reads nothing must not hold more.
const HELD_BYTES: u32 = 1 << 20;

/// A finishing unit, and where its frame's results are.
#[derive(Clone, Debug)]
pub(crate) struct InputsOrder {
    pub(crate) key: SpoolKey,
    /// The durable part of the frame's spool.
    pub(crate) extent: SpoolExtent,
    pub(crate) spec: RenderSpec,
    pub(crate) finish: Finish,
    /// Rounds of the frame, if it is sampled in rounds.
    pub(crate) rounds: Option<FrameRounds>,
}

/// Why inputs cannot be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum InputsError {
    /// The spool cannot be read, or is damaged.
    #[error("results of the frame are damaged")]
    Spool(#[from] SpoolError),
    /// A band has no pixels to read.
    #[error("what was finished of the frame is damaged")]
    Piece {
        /// The unit of the band.
        unit: UnitIndex,
        #[source]
        source: FinishError,
    },
}

impl InputsError {
    /// Returns the unit whose result must be made again, if it is one.
    pub(crate) fn lost_unit(&self) -> Option<UnitIndex> {
        match self {
            Self::Spool(error) => error.lost_unit(),
            Self::Piece { unit, .. } => Some(*unit),
        }
    }
}

/// A result, and where its bytes are in the spool.
pub(crate) type Entry = (EntryHeader, u64);

/// Returns the results that an order reads, each with its tile or band.
fn chosen(order: &InputsOrder, index: &SpoolIndex) -> Result<Vec<(u32, Entry)>, InputsError> {
    match order.finish.piece {
        Piece::Assembly => bands(&order.spec, index),
        Piece::Band { .. } | Piece::Frame { .. } => films(order, index),
    }
}

fn films(order: &InputsOrder, index: &SpoolIndex) -> Result<Vec<(u32, Entry)>, InputsError> {
    let (grid, rounds) = (Grid::of(&order.spec), order.rounds.as_ref());
    match rounds {
        Some(rounds) => index.check_rounds(rounds)?,
        None => {
            let split = Split::Tiles(grid);
            index.check_complete(split.units(), split.all_units())?;
        }
    }
    let (window, rows) = (order.spec.rendered_window(), rows_read(&order.spec, &order.finish));
    let below = |row: u32| window.top.saturating_add_unsigned(row);
    let touches = |tile: &u32| {
        let tile = grid.tile_window(*tile);
        tile.is_some_and(|tile| tile.top < below(rows.end) && tile.bottom > below(rows.start))
    };
    let mut found = Vec::new();
    for tile in (0..grid.tiles()).filter(touches) {
        let passes = rounds.map_or(grid.passes(), |rounds| rounds.passes(tile));
        for unit in (0..passes).filter_map(|pass| grid.unit_of(tile, pass)) {
            found.extend(index.of_unit(unit)?.iter().map(|entry| (tile, *entry)));
        }
    }
    Ok(found)
}

fn bands(spec: &RenderSpec, index: &SpoolIndex) -> Result<Vec<(u32, Entry)>, InputsError> {
    let (grid, split) = (Grid::of(spec), Split::Tiles(Grid::of(spec)));
    let of_band = |band| Ok((band, *index.only(UnitIndex(split.units() + band))?));
    (0..grid.bands().count()).map(of_band).collect()
}

/// A part: bytes of one result in the spool.
struct Part {
    /// Tile or band.
    place: u32,
    /// Position of its head among all bytes that are sent.
    at: u64,
    entry: Entry,
    /// Bytes of the result that are left out before those of the part.
    skipped: u64,
    length: u64,
}

/// The parts of a unit's inputs, one after the other, as a reader.
pub(crate) struct InputParts {
    index: SpoolIndex,
    parts: Vec<Part>,
    length: u64,
    /// The part that was read last, and all bytes of its result, unless it is long.
    last: Option<(usize, Option<Vec<u8>>)>,
}

impl InputParts {
    /// Looks up the parts of an order. Reads only headers, and the pixels' places of bands.
    pub(crate) fn of(order: &InputsOrder, spools: &dyn SpoolReader) -> Result<Self, InputsError> {
        let index = SpoolIndex::read(spools, order.key, &order.extent)?;
        let chosen = chosen(order, &index)?;
        let mut this = Self { index, parts: Vec::new(), length: 0, last: None };
        for (place, entry) in chosen {
            match order.finish.piece {
                Piece::Assembly => this.add_pixels((place, entry))?,
                Piece::Band { .. } | Piece::Frame { .. } => {
                    this.add(place, entry, 0..u64::from(entry.0.length));
                }
            }
        }
        Ok(this)
    }

    /// Returns the number of parts.
    pub(crate) fn count(&self) -> u32 {
        self.parts.len() as u32
    }

    /// Returns the place to name in errors.
    pub(crate) fn place(&self) -> PathBuf {
        self.index.place()
    }

    /// Adds the pixels of a band. All of the band is checked when they are sent.
    fn add_pixels(&mut self, (band, entry): (u32, Entry)) -> Result<(), InputsError> {
        let (unit, length) = (entry.0.unit, entry.0.length as usize);
        let mut head = vec![0; length.min(PIECE_HEAD_MAX)];
        self.index.read_at(entry.1, &mut head)?;
        let pixels = pixels_of(&head, length);
        let pixels = pixels.map_err(|source| InputsError::Piece { unit, source })?;
        self.add(band, entry, pixels.start as u64..pixels.end as u64);
        Ok(())
    }

    fn add(&mut self, place: u32, entry: Entry, bytes: std::ops::Range<u64>) {
        let length = bytes.end - bytes.start;
        self.parts.push(Part { place, at: self.length, entry, skipped: bytes.start, length });
        self.length += HEAD + length;
    }

    /// Reads bytes of a part, its head included, from a position of it on. Returns their number.
    fn read_part(
        &mut self,
        number: usize,
        at: u64,
        buffer: &mut [u8],
    ) -> Result<usize, SpoolError> {
        let part = &self.parts[number];
        if at < HEAD {
            let head = write_part_head(part.place, part.length as u32);
            let rest = &head[at as usize..];
            let count = rest.len().min(buffer.len());
            buffer[..count].copy_from_slice(&rest[..count]);
            return Ok(count);
        }
        let start = part.skipped + at - HEAD;
        if let Some(bytes) = self.index.recent(&part.entry.0) {
            // It is asked for at every step: a node that reads nothing must not hold it.
            let count = (part.length - (at - HEAD)).min(buffer.len() as u64) as usize;
            buffer[..count].copy_from_slice(&bytes[start as usize..][..count]);
            return Ok(count);
        }
        let length = u64::from(part.entry.0.length);
        if at == HEAD && part.length == length && length <= buffer.len() as u64 {
            // All of a result goes where it is sent from.
            self.index.read_entry_into(&part.entry, &mut buffer[..length as usize])?;
            return Ok(length as usize);
        }
        if self.last.as_ref().is_none_or(|(last, _)| *last != number) {
            let held = match part.entry.0.length <= HELD_BYTES {
                true => Some(self.index.read_entry(&part.entry)?),
                false => self.index.check_entry(&part.entry).map(|()| None)?,
            };
            self.last = Some((number, held));
        }
        let count = (part.length - (at - HEAD)).min(buffer.len() as u64) as usize;
        match &self.last {
            Some((_, Some(bytes))) => {
                buffer[..count].copy_from_slice(&bytes[start as usize..][..count]);
            }
            _ => self.index.read_at(part.entry.1 + start, &mut buffer[..count])?,
        }
        Ok(count)
    }
}

impl BlobRead for InputParts {
    fn length(&self) -> u64 {
        self.length
    }

    fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let mut filled = 0;
        let mut number = self.parts.partition_point(|part| part.at <= offset).saturating_sub(1);
        while filled < buffer.len() && number < self.parts.len() {
            let (at, length) = (self.parts[number].at, HEAD + self.parts[number].length);
            let within = offset + filled as u64 - at;
            if within >= length {
                number += 1;
                continue;
            }
            let rest = &mut buffer[filled..];
            filled += self.read_part(number, within, rest).map_err(io::Error::other)?;
        }
        Ok(filled)
    }
}

pub(crate) mod elsewhere;

#[cfg(test)]
#[path = "finish_inputs_tests.rs"]
mod tests;
