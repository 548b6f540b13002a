//! The denoiser: the same bits however it is built and a frame is cut, less noise, and nothing
//! lost.

use crate::builds::same_bits::OtherBuild;
use tessera_kernels::denoise::*;
use tessera_kernels::test_hooks;

const WIDTH: usize = 150;
const HEIGHT: usize = 75;

/// A frame's channels, and the pass that they are for.
struct Picture {
    channels: Vec<Vec<f32>>,
    pass: Pass,
}

/// 0 to 1, another for every argument.
fn random(seed: usize) -> f32 {
    let mut bits = (seed as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    bits ^= bits >> 29;
    bits = bits.wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (bits >> 40) as f32 / (1u64 << 24) as f32
}

/// What the made-up picture would be without noise: two walls of two colours, a texture on the left
/// one, light that falls off downwards.
fn truth(x: usize, y: usize, channel: usize) -> f32 {
    albedo(x, y, channel) * (1.0 - 0.5 * y as f32 / HEIGHT as f32)
}

fn albedo(x: usize, y: usize, channel: usize) -> f32 {
    let left = x < WIDTH / 2;
    let stripe = if left && (x / 3 + y / 4).is_multiple_of(2) { 0.5 } else { 1.0 };
    stripe * [[0.8, 0.3, 0.2], [0.2, 0.5, 0.7]][usize::from(left)][channel]
}

impl Picture {
    /// Each half of the samples is off by up to `noise` of what is there, with mean 0.
    fn new(noise: f32) -> Self {
        let mut channels = vec![Vec::new(); CHANNELS];
        for at in 0..WIDTH * HEIGHT {
            let (x, y) = (at % WIDTH, at / WIDTH);
            for channel in 0..3 {
                let half = |which| {
                    let off = noise * (2.0 * random(at * 6 + channel * 2 + which) - 1.0);
                    truth(x, y, channel) * (1.0 + off)
                };
                channels[channel].push(0.5 * (half(0) + half(1)));
                channels[3 + channel].push(0.5 * half(1));
                channels[6 + channel].push(albedo(x, y, channel));
                channels[9 + channel].push(if (channel == 2) == (x < WIDTH / 2) {
                    1.0
                } else {
                    0.0
                });
            }
            channels[12].push(2.0 + x as f32 * 0.01);
        }
        Self { channels, pass: Pass::First }
    }

    /// What the first pass leaves for the second.
    fn after_first(&self) -> Self {
        let guides = self.channels[COLORS..].iter().cloned();
        Self { channels: best(self).into_iter().chain(guides).collect(), pass: Pass::Second }
    }

    fn rows(&self, first: usize, end: usize) -> Rows<'_> {
        let part = |channel: usize| &self.channels[channel][first * WIDTH..end * WIDTH];
        let channels = std::array::from_fn(part);
        Rows {
            pass: self.pass,
            fitted: Fitted::WithHalf,
            width: WIDTH,
            height: HEIGHT,
            first_row: first,
            samples: 64,
            channels,
        }
    }

    fn all(&self) -> Rows<'_> {
        self.rows(0, HEIGHT)
    }
}

/// The whole frame in tiles that begin at every (x, y) of the given steps.
fn denoised(
    picture: &Picture,
    steps: (usize, usize),
    mut tile: impl FnMut(&Rows<'_>, (usize, usize), &mut Scratch) -> Vec<Vec<f32>>,
) -> [Vec<f32>; COLORS] {
    let mut whole: [Vec<f32>; COLORS] = std::array::from_fn(|_| vec![f32::NAN; WIDTH * HEIGHT]);
    let mut scratch = Scratch::default();
    for y in (0..HEIGHT).step_by(steps.1) {
        for x in (0..WIDTH).step_by(steps.0) {
            let width = TILE_WIDTH.min(WIDTH - x);
            let tile = tile(&picture.all(), (x, y), &mut scratch);
            for (whole, tile) in whole.iter_mut().zip(&tile) {
                for (row, values) in tile.chunks_exact(width).enumerate() {
                    whole[(y + row) * WIDTH + x..][..width].copy_from_slice(values);
                }
            }
        }
    }
    whole
}

/// One pass over it.
fn best(picture: &Picture) -> [Vec<f32>; COLORS] {
    denoised(picture, (TILE_WIDTH, TILE_HEIGHT), |rows, corner, scratch| {
        tile(best_isa(), rows, corner, scratch).unwrap().to_vec()
    })
}

/// Both passes over it.
fn denoised_twice(picture: &Picture) -> [Vec<f32>; COLORS] {
    best(&picture.after_first())
}

/// Root of the mean squared distance from the picture without noise, in some columns.
fn error(channels: &[Vec<f32>], columns: std::ops::Range<usize>) -> f64 {
    let places = columns.flat_map(|x| (0..HEIGHT).map(move |y| (x, y)));
    let squares = places.flat_map(|(x, y)| {
        (0..3).map(move |channel| {
            f64::from(channels[channel][y * WIDTH + x] - truth(x, y, channel)).powi(2)
        })
    });
    let squares: Vec<f64> = squares.collect();
    (squares.iter().sum::<f64>() / squares.len() as f64).sqrt()
}

fn mean(channels: &[Vec<f32>]) -> f64 {
    let values = channels[..3].iter().flatten();
    values.map(|value| f64::from(*value)).sum::<f64>() / (3 * WIDTH * HEIGHT) as f64
}

#[test]
fn every_build_gives_the_same_bits() {
    let picture = Picture::new(0.6);
    for picture in [&picture, &picture.after_first()] {
        every_build_gives_the_same_bits_of(picture);
    }
}

fn every_build_gives_the_same_bits_of(picture: &Picture) {
    let want = best(picture);
    let steps = (TILE_WIDTH, TILE_HEIGHT);
    for isa in available_isas() {
        let found = denoised(picture, steps, |rows, corner, scratch| {
            tile(isa, rows, corner, scratch).unwrap().to_vec()
        });
        assert!(found == want, "{isa}");
    }
    for compiler in ["g++", "clang++"] {
        let Some(build) = OtherBuild::new(compiler, "entry/denoise.cpp", c"tessera_denoise_other")
        else {
            println!("skipped: {compiler} is not installed");
            continue;
        };
        let found = denoised(picture, steps, |rows, corner, scratch| {
            // SAFETY: the library was just built from entry/denoise.cpp for this machine.
            unsafe { test_hooks::denoise_with(build.entry, rows, corner, scratch) }
                .unwrap()
                .to_vec()
        });
        assert!(found == want, "{compiler}");
    }
}

#[test]
fn denoising_does_not_depend_on_tiles_and_spare_rows() {
    let picture = Picture::new(0.6);
    let want = best(&picture);
    for steps in [(1 + TILE_WIDTH / 2, 7), (TILE_WIDTH, 5), (17, TILE_HEIGHT)] {
        // No more rows than the tile needs.
        let found = denoised(&picture, steps, |_, (x, y), scratch| {
            let end = (y + TILE_HEIGHT + REACH).min(HEIGHT);
            let rows = picture.rows(y.saturating_sub(REACH), end);
            tile(best_isa(), &rows, (x, y), scratch).unwrap().to_vec()
        });
        assert!(found == want, "tiles every {steps:?}");
    }
}

#[test]
fn a_pixel_depends_on_nothing_beyond_its_reach() {
    let mut picture = Picture::new(0.6);
    let want = best(&picture);
    let (x, y) = (70, 40);
    picture.channels[0][y * WIDTH + x] = 1e6;
    let found = best(&picture);
    let differs = |at: usize| {
        (0..3).any(|channel| found[channel][at].to_bits() != want[channel][at].to_bits())
    };
    let far = |at: usize| (at % WIDTH).abs_diff(x) > REACH || (at / WIDTH).abs_diff(y) > REACH;
    assert!(!(0..WIDTH * HEIGHT).any(|at| far(at) && differs(at)));
    assert!(differs(y * WIDTH + x), "a firefly is spread");
}

#[test]
fn halves_are_as_many_samples_as_their_indices_say() {
    let in_second = |index: u32| match index {
        0 => false,
        1 => true,
        _ => index & 1 << (index.ilog2() - 1) != 0,
    };
    for samples in 0..5000 {
        let count = (0..samples).filter(|index| in_second(*index)).count();
        assert_eq!(second_half(samples) as usize, count, "{samples}");
    }
    assert_eq!([2, 3, 4, 6, 64, 100].map(second_half), [1, 1, 2, 2, 32, 36]);
    assert_eq!(second_half(1 << 20), 1 << 19);
}

#[test]
fn the_picture_does_not_depend_on_whether_its_half_is_fitted() {
    let picture = Picture::new(0.6);
    let mut scratch = Scratch::default();
    for corner in [(0, 0), (64, 32)] {
        let both = tile(best_isa(), &picture.all(), corner, &mut scratch).unwrap().to_vec();
        let rows = Rows { fitted: Fitted::Picture, ..picture.all() };
        let alone = tile(best_isa(), &rows, corner, &mut scratch).unwrap();
        assert!(both.len() == COLORS && alone == &both[..COLORS / 2], "{corner:?}");
    }
}

#[test]
fn a_picture_of_one_colour_stays_itself() {
    let mut picture = Picture::new(0.0);
    for channel in 0..3 {
        picture.channels[channel].fill(0.3 + channel as f32);
        // Both halves may differ, if their mean does not.
        picture.channels[3 + channel]
            .iter_mut()
            .enumerate()
            .for_each(|(at, half)| *half = 0.3 * random(at));
    }
    for picture in [&picture, &picture.after_first()] {
        assert!(best(picture)[..3] == picture.channels[..3], "a constant is not kept");
    }
}

#[test]
fn noise_falls_and_edges_and_texture_stay() {
    let picture = Picture::new(0.6);
    let (first, found) = (best(&picture), denoised_twice(&picture));
    assert!(error(&found, 0..WIDTH) < error(&first, 0..WIDTH), "the second pass brings nothing");
    // Everywhere; at the edge; in the texture.
    for (columns, factor) in
        [(0..WIDTH, 3.5), (WIDTH / 2 - 2..WIDTH / 2 + 2, 1.5), (8..WIDTH / 2 - 8, 3.0)]
    {
        let (before, after) =
            (error(&picture.channels, columns.clone()), error(&found, columns.clone()));
        assert!(before > 0.05, "{before}");
        assert!(after < before / factor, "{columns:?}: from {before} to {after}");
    }
    let ratio = mean(&found) / mean(&picture.channels);
    assert!((ratio - 1.0).abs() < 0.005, "energy {ratio}");
}

#[test]
fn pictures_without_noise_are_not_changed() {
    let picture = Picture::new(0.0);
    let error = error(&denoised_twice(&picture), 0..WIDTH);
    assert!(error < 2e-5, "{error}");
}

/// Guides that jump far and together make regressions that are all but singular: nothing comes of
/// it.
#[test]
fn an_object_before_nothing_keeps_its_edge() {
    let mut picture = Picture::new(0.6);
    let nothing: Vec<usize> =
        (0..WIDTH * HEIGHT).filter(|at| (at % WIDTH + at / WIDTH / 2) % 40 < 20).collect();
    for channel in picture.channels.iter_mut() {
        nothing.iter().for_each(|at| channel[*at] = 0.0);
    }
    let found = denoised_twice(&picture);
    let there: Vec<usize> = (0..WIDTH * HEIGHT).filter(|at| !nothing.contains(at)).collect();
    let off = |planes: &[Vec<f32>], at: usize, channel: usize| {
        let right = truth(at % WIDTH, at / WIDTH, channel);
        ((planes[channel][at] - right) / right).abs()
    };
    for channel in 0..3 {
        let most = nothing.iter().map(|at| found[channel][*at]).fold(0.0, f32::max);
        assert!(most < 0.05, "{most} where nothing is, more than a tenth of what is beside it");
        let mean =
            |planes: &[Vec<f32>]| there.iter().map(|at| off(planes, *at, channel)).sum::<f32>();
        assert!(
            mean(&found) < mean(&picture.channels) / 2.0,
            "from {} to {}",
            mean(&picture.channels),
            mean(&found)
        );
        let worst = there.iter().map(|at| off(&found, *at, channel)).fold(0.0, f32::max);
        assert!(worst < 0.6, "a pixel is off by {worst}, more than noise was");
    }
}

#[test]
fn rows_that_are_missing_are_refused() {
    let picture = Picture::new(0.1);
    let mut scratch = Scratch::default();
    let mut ask =
        |rows: Rows<'_>, corner| tile(best_isa(), &rows, corner, &mut scratch).map(|_| ());
    let (first, end) = (24 - REACH, 24 + TILE_HEIGHT + REACH);
    assert_eq!(ask(picture.rows(first, end), (0, 24)), Ok(()));
    for (rows, corner) in [
        (picture.rows(first + 1, end), (0, 24)),
        (picture.rows(first, end - 1), (0, 24)),
        (picture.all(), (WIDTH, 0)),
        (picture.all(), (0, HEIGHT)),
        (Rows { samples: 1, ..picture.all() }, (0, 0)),
        (Rows { width: 0, ..picture.all() }, (0, 0)),
    ] {
        assert!(matches!(ask(rows, corner), Err(DenoiseError::Range(_))), "{corner:?}");
    }
}
