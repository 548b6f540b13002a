//! Tests of decisions from spools.

use super::*;
use crate::resolve::tests::{Bench, spec};
use tessera_core::Split;
use tessera_protocol::job::JobKind;

/// Three by two tiles with at most 100 samples, in passes of 16, 16, 32 and 36.
fn frame() -> (RenderSpec, FrameRounds) {
    let spec = RenderSpec {
        width: 96,
        height: 64,
        tile: 32,
        spp: 100,
        unit_samples: 0,
        noise: Some(0.1),
        ..spec(1, 1, 8, 1, 0)
    };
    let rounds = FrameRounds::of(&Split::of(&JobKind::Render(spec.clone()))).unwrap();
    (spec, rounds)
}

/// Returns the film of a unit whose pixels all have this mean.
fn film(rounds: &FrameRounds, unit: u32, mean: f64) -> (u32, TileSums) {
    let (tile, samples) = rounds.grid().unit(tessera_protocol::UnitIndex(unit)).unwrap();
    let mut film = TileSums::empty(tile.width as u16, tile.height as u16, 3);
    film.samples = samples.count;
    film.values.fill((mean * f64::from(samples.count) * 16_777_216.0) as i64);
    (unit, film)
}

fn noisy(spec: &RenderSpec, rounds: &FrameRounds, films: &[(u32, TileSums)]) -> Vec<u32> {
    let bench = Bench::of_films(films.to_vec());
    let noisy = noisy_tiles(spec, rounds, &bench.spool()).unwrap();
    (0..rounds.tiles()).filter(|tile| noisy.contains(*tile)).collect()
}

#[test]
fn noisy_tiles_and_neighbours_of_very_noisy_ones_continue() {
    let (spec, mut rounds) = frame();
    // Grey of about 1/3, so that the root of the sum is 1. The noise is then 1.5 times the
    // difference of the halves.
    let apart = |noise: f64| (1.0 / 3.0 - noise / 3.0, 1.0 / 3.0 + noise / 3.0);
    let mut films = Vec::new();
    for (tile, noise) in (0..6).zip([0.05, 0.09, 0.11, 0.02, 0.02, 0.02]) {
        let (first, second) = apart(noise);
        films.extend([film(&rounds, 4 * tile, first), film(&rounds, 4 * tile + 1, second)]);
    }
    assert_eq!(noisy(&spec, &rounds, &films), [2]);
    // Its neighbours continue too if it has four times the wanted noise.
    let (first, second) = apart(0.41);
    (films[4], films[5]) = (film(&rounds, 8, first), film(&rounds, 9, second));
    assert_eq!(noisy(&spec, &rounds, &films), [1, 2, 4, 5]);

    // In the next round the two passes of the first round are one half.
    rounds.end_round(1, &[1, 2, 4, 5].into_iter().collect()).unwrap();
    for tile in [1, 2, 4, 5] {
        let mean = if tile == 2 { 0.5 } else { 1.0 / 3.0 };
        films.push(film(&rounds, 4 * tile + 2, mean));
    }
    assert_eq!(noisy(&spec, &rounds, &films), [2]);
    // A missing unit is an error.
    films.pop();
    let bench = Bench::of_films(films);
    assert!(matches!(noisy_tiles(&spec, &rounds, &bench.spool()), Err(ResolveError::Spool(_))));
}

#[test]
fn films_of_another_shape_are_an_error() {
    let (spec, rounds) = frame();
    let mut films: Vec<_> = (0..6)
        .flat_map(|tile| [4 * tile, 4 * tile + 1])
        .map(|unit| film(&rounds, unit, 1.0))
        .collect();
    films[3].1.samples = 15;
    let bench = Bench::of_films(films);
    assert!(matches!(noisy_tiles(&spec, &rounds, &bench.spool()), Err(ResolveError::Shape { .. })));
}

#[test]
fn a_tile_has_up_to_eight_neighbours() {
    let near = |tile| around(tile, 4, 12).collect::<Vec<_>>();
    assert_eq!(near(5), [0, 1, 2, 4, 6, 8, 9, 10]);
    assert_eq!(near(0), [1, 4, 5]);
    assert_eq!(near(11), [6, 7, 10]);
    assert_eq!(near(7), [2, 3, 6, 10, 11]);
    assert_eq!(around(0, 1, 1).count(), 0);
}
