//! The height of the bands does not change the denoised rows.

use super::*;
use std::sync::atomic::{AtomicUsize, Ordering};

const WIDTH: u32 = 97;
const HEIGHT: u32 = 83;

fn spec() -> RenderSpec {
    // The layer lies between the guides and the half, so that a wrong channel would show.
    let aovs = vec![AovSpec::Position];
    RenderSpec {
        width: WIDTH,
        height: HEIGHT,
        tile: 64,
        spp: 9,
        aovs,
        denoise: true,
        ..RenderSpec::default()
    }
}

/// Returns a made-up value of the film: noisy colours, halves near 5 ninths of them, slowly
/// changing guides, and a position that is not used.
fn value(channel: usize, x: usize, y: usize) -> f32 {
    let random = |seed: usize| {
        let bits = (seed as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        ((bits ^ bits >> 31).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 40) as f32 / (1u64 << 24) as f32
    };
    let color = |channel: usize| 0.5 + 0.4 * random(((y * 200 + x) * 3 + channel) * 2);
    match channel {
        0..3 => color(channel),
        3..9 => 0.2 + (x / 30) as f32 * 0.1 + channel as f32 * 0.01,
        9 => 3.0 + y as f32 * 0.01,
        10..13 => f32::NAN,
        _ => (5.0 / 9.0) * color(channel - 13) * (0.5 + random(y * 999 + x * 7 + channel)),
    }
}

fn band(channels: usize, first: usize, height: usize) -> Band {
    let rows = (0..channels).flat_map(|channel| {
        (first..first + height)
            .flat_map(move |y| (0..WIDTH as usize).map(move |x| value(channel, x, y)))
    });
    Band { width: WIDTH as usize, height, values: rows.collect() }
}

/// Returns all rows of some channels, from bands of these heights. The last band is shorter.
fn rows(spec: &RenderSpec, heights: &[usize], channels: Range<usize>) -> Vec<Vec<u32>> {
    rows_with(None, spec, heights, channels)
}

/// The same, with passes computed elsewhere.
fn rows_with(
    elsewhere: Option<&dyn Passes>,
    spec: &RenderSpec,
    heights: &[usize],
    channels: Range<usize>,
) -> Vec<Vec<u32>> {
    let size = (WIDTH as usize, HEIGHT as usize);
    let needed = Needed { size, kept: spec.frame_window(), without: None };
    let mut denoiser = Denoiser::new(spec, &needed, elsewhere);
    let (mut first, mut found) = (0, vec![Vec::new(); channels.len()]);
    for height in heights.iter().cycle() {
        let height = (*height).min(HEIGHT as usize - first);
        let out = denoiser.push(band(spec.channels().into(), first, height)).unwrap();
        first += height;
        for (found, channel) in found.iter_mut().zip(channels.clone()) {
            (0..out.height)
                .for_each(|y| found.extend(out.line(channel, y).iter().map(|v| v.to_bits())));
        }
        if first == HEIGHT as usize {
            return found;
        }
    }
    unreachable!("heights come again and again")
}

#[test]
fn bands_of_any_height_give_the_same_rows() {
    let spec = spec();
    let want = rows(&spec, &[HEIGHT as usize], 0..3);
    assert!(want.iter().all(|channel| channel.len() == (WIDTH * HEIGHT) as usize));
    for heights in [&[1][..], &[7], &[64], &[16, 3, 40], &[82, 1]] {
        assert!(rows(&spec, heights, 0..3) == want, "{heights:?}");
    }
    for threads in [1, 3] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        assert!(pool.install(|| rows(&spec, &[33], 0..3)) == want, "{threads} threads");
    }
    let spread = |channel: &[u32]| {
        let values = channel.iter().map(|bits| f32::from_bits(*bits));
        values.clone().fold(0.0, f32::max) - values.fold(f32::MAX, f32::min)
    };
    assert!(want.iter().all(|channel| spread(channel) < 0.35), "noise of 0.4 is as it was");
}

/// Computes every second pass, and only the rows that are wanted.
struct EverySecond(AtomicUsize);

impl Passes for EverySecond {
    fn pass(&self, rows: &Rows<'_>, wanted: Range<usize>) -> Option<Vec<Vec<f32>>> {
        if !self.0.fetch_add(1, Ordering::Relaxed).is_multiple_of(2) {
            return None;
        }
        let channels = if rows.fitted == Fitted::WithHalf { 6 } else { 3 };
        let mut planes = vec![vec![f32::NAN; wanted.len() * rows.width]; channels];
        let mut scratch = Scratch::default();
        for y in wanted.clone().step_by(TILE_HEIGHT) {
            for x in (0..rows.width).step_by(TILE_WIDTH) {
                let made = tile(best_isa(), rows, (x, y), &mut scratch).unwrap();
                let width = TILE_WIDTH.min(rows.width - x);
                for (plane, made) in planes.iter_mut().zip(made) {
                    let lines = (y - wanted.start..wanted.len()).zip(made.chunks_exact(width));
                    lines.for_each(|(y, line)| {
                        plane[y * rows.width + x..][..width].copy_from_slice(line)
                    });
                }
            }
        }
        Some(planes)
    }
}

#[test]
fn passes_computed_elsewhere_are_taken() {
    let spec = spec();
    let want = rows(&spec, &[64], 0..3);
    for heights in [&[64][..], &[7, 40]] {
        let elsewhere = EverySecond(AtomicUsize::new(0));
        assert!(rows_with(Some(&elsewhere), &spec, heights, 0..3) == want, "{heights:?}");
        assert!(elsewhere.0.into_inner() >= 3);
    }
}

/// Returns the colours of some rows of a picture that ends where they end.
fn denoised(there: Range<usize>) -> Vec<Vec<u32>> {
    let spec = RenderSpec { height: there.len() as u32, ..spec() };
    let size = (WIDTH as usize, there.len());
    let needed = Needed { size, kept: spec.frame_window(), without: None };
    let rows = band(spec.channels().into(), there.start, there.len());
    let out = Denoiser::new(&spec, &needed, None).push(rows).unwrap();
    assert_eq!(out.height, there.len());
    let bits = |channel: usize| {
        (0..out.height).flat_map(|y| out.line(channel, y)).map(|value| value.to_bits()).collect()
    };
    (0..3).map(bits).collect()
}

#[test]
fn a_band_with_its_reach_has_the_rows_of_the_whole() {
    const ALL: usize = 130;
    let (reach, width) = (DENOISE_REACH as usize, WIDTH as usize);
    let whole = denoised(0..ALL);
    for (first, end) in [(0_usize, 20), (50, 64), (63, 64), (100, ALL)] {
        let there = first.saturating_sub(reach)..(end + reach).min(ALL);
        let found = denoised(there.clone());
        let kept = (first - there.start) * width..(end - there.start) * width;
        for (found, whole) in found.iter().zip(&whole) {
            assert!(found[kept.clone()] == whole[first * width..end * width], "{first} to {end}");
        }
        // Half of it is not enough where the picture goes on.
        if there.start > 0 {
            let less = denoised(there.start + 23..there.end);
            let kept = (first - there.start - 23) * width..(end - there.start - 23) * width;
            assert!(less[0][kept] != whole[0][first * width..end * width]);
        }
    }
}

#[test]
fn the_noisy_picture_is_kept_unchanged() {
    let spec = spec();
    let first = noisy_channel(&spec);
    let found = rows(&spec, &[10], first..first + 3);
    for (channel, found) in found.iter().enumerate() {
        let mut places =
            (0..HEIGHT as usize).flat_map(|y| (0..WIDTH as usize).map(move |x| (x, y)));
        assert!(found.iter().all(|bits| {
            let (x, y) = places.next().unwrap();
            *bits == value(channel, x, y).to_bits()
        }));
    }
}
