//! Finds the tiles of a frame that are too noisy after a round, by comparing the halves of their
//! films from the spool. Owns which films are read, and what the noise of a tile means for its
//! neighbours; `noise` owns the arithmetic.

mod noise;

use crate::resolve::error::ResolveError;
use crate::spool::SpoolIndex;
use noise::{Half, noise_of};
use rayon::prelude::*;
use tessera_core::{FrameRounds, TileSet};
use tessera_protocol::TileSums;
use tessera_protocol::job::RenderSpec;

/// A tile that is not too noisy still continues if a neighbour has this many times the wanted
/// noise. The source of the neighbour's noise may reach into this tile without having been hit yet.
const NEIGHBOUR: f64 = 4.0;

/// Returns the tiles of the newest round that need another round.
pub fn noisy_tiles(
    spec: &RenderSpec,
    rounds: &FrameRounds,
    spool: &SpoolIndex,
) -> Result<TileSet, ResolveError> {
    let Some(wanted) = spec.noise else { return Ok(TileSet::default()) };
    let tiles: Vec<u32> = (0..rounds.tiles()).filter(|tile| rounds.goes_on(*tile)).collect();
    let measured: Vec<f64> = tiles
        .par_iter()
        .map(|tile| Ok(noise_of(&halves(spec, rounds, spool, *tile)?)))
        .collect::<Result<_, ResolveError>>()?;
    let mut noise = vec![0.0; rounds.tiles() as usize];
    for (tile, measured) in tiles.iter().zip(measured) {
        noise[*tile as usize] = measured;
    }
    let columns = rounds.grid().columns();
    let is_noisy = |tile: &u32| {
        let own = noise[*tile as usize] > wanted;
        own || around(*tile, columns, rounds.tiles())
            .any(|other| noise[other as usize] > NEIGHBOUR * wanted)
    };
    Ok(tiles.into_iter().filter(is_noisy).collect())
}

/// Returns the tiles that touch a tile.
fn around(tile: u32, columns: u32, tiles: u32) -> impl Iterator<Item = u32> {
    let (column, row) = (tile % columns, tile / columns);
    let rows = row.saturating_sub(1)..=(row + 1).min((tiles - 1) / columns);
    let of_row = move |row| {
        (column.saturating_sub(1)..=(column + 1).min(columns - 1)).map(move |x| row * columns + x)
    };
    rows.flat_map(of_row).filter(move |other| *other != tile)
}

/// Returns the samples of a tile's newest round, and those before it.
fn halves(
    spec: &RenderSpec,
    rounds: &FrameRounds,
    spool: &SpoolIndex,
    tile: u32,
) -> Result<[Half; 2], ResolveError> {
    let second = rounds.last_half(tile);
    let first = sum_of(rounds, spool, (tile, 0..second))?;
    let second = sum_of(rounds, spool, (tile, second..rounds.passes(tile)))?;
    let fits = first.samples + second.samples == rounds.samples(tile)
        && first.channels == spec.channels()
        && (first.width, first.height, first.channels)
            == (second.width, second.height, second.channels);
    match fits {
        true => Ok([Half::of(first), Half::of(second)]),
        false => Err(ResolveError::Shape {
            unit: rounds.grid().unit_of(tile, 0).map_or(0, |unit| unit.0),
        }),
    }
}

/// Returns the sum of some passes of a tile.
pub(crate) fn sum_of(
    rounds: &FrameRounds,
    spool: &SpoolIndex,
    (tile, mut passes): (u32, std::ops::Range<u32>),
) -> Result<TileSums, ResolveError> {
    let film = |pass| match rounds.grid().unit_of(tile, pass) {
        Some(unit) => Ok((unit, spool.film(unit)?)),
        None => Err(ResolveError::Shape { unit: 0 }),
    };
    let (_, mut sum) = film(passes.next().unwrap_or(0))?;
    for pass in passes {
        let (unit, next) = film(pass)?;
        sum.add(&next).map_err(|_| ResolveError::Shape { unit: unit.0 })?;
    }
    Ok(sum)
}

#[cfg(test)]
mod tests;
