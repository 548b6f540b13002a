//! The noise of a tile: the difference between two halves of its samples, divided by the square
//! root of its brightness (Dammertz, Hanika, Keller and Lensch 2010, "A Hierarchical Automatic
//! Stopping Condition for Monte Carlo Global Illumination", section 3). This is roughly how it
//! looks on a display. It uses only addition, multiplication, division and square root, in one
//! order, so it has the same bits everywhere.

use tessera_protocol::TileSums;
use tessera_protocol::film::FRACTION_BITS;

/// Edge in pixels of the blocks whose mean noise is computed. Smaller blocks give a less certain
/// mean, so the noisiest of them would be the noisiest by chance.
const BLOCK: usize = 16;
/// Added to the square root of a pixel's brightness. Below about a millionth, differences are
/// black.
const DARK: f64 = 1e-3;
const CHANNELS: usize = 3;

/// Half of the samples of a tile.
pub(super) struct Half {
    width: usize,
    height: usize,
    samples: f64,
    sums: Vec<i64>,
}

impl Half {
    /// Takes the beauty of a film.
    pub(super) fn of(film: TileSums) -> Self {
        let (width, height) = (usize::from(film.width), usize::from(film.height));
        let mut sums = film.values;
        sums.truncate(CHANNELS * width * height);
        Self { width, height, samples: f64::from(film.samples), sums }
    }
}

/// Returns the noise of the tile's noisiest block.
pub(super) fn noise_of(halves: &[Half; 2]) -> f64 {
    let (width, height) = (halves[0].width, halves[0].height);
    let mut most = 0.0;
    for top in (0..height).step_by(BLOCK) {
        for left in (0..width).step_by(BLOCK) {
            let (bottom, right) = ((top + BLOCK).min(height), (left + BLOCK).min(width));
            let pixels = (top..bottom).flat_map(|y| (left..right).map(move |x| y * width + x));
            let count = (bottom - top) * (right - left);
            let sum: f64 = pixels.map(|pixel| noise_at(halves, pixel)).sum();
            most = f64::max(most, sum / count as f64);
        }
    }
    most
}

/// Returns half the difference of the halves' means, divided by the square root of the sum of the
/// mean's channels.
fn noise_at([first, second]: &[Half; 2], pixel: usize) -> f64 {
    const SCALE: f64 = 1.0 / (1u64 << FRACTION_BITS) as f64;
    let plane = first.width * first.height;
    let (mut apart, mut bright) = (0.0, 0.0);
    for channel in 0..CHANNELS {
        let [a, b] = [first, second].map(|half| half.sums[channel * plane + pixel] as f64 * SCALE);
        apart += (a / first.samples - b / second.samples).abs();
        bright += (a + b) / (first.samples + second.samples);
    }
    0.5 * apart / (f64::max(bright, 0.0).sqrt() + DARK)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the noise of a tile whose red has these values in the two halves, with 16 samples
    /// each.
    fn noise(width: u16, height: u16, red: impl Fn(usize, usize) -> (f64, f64)) -> f64 {
        let film = |of: fn((f64, f64)) -> f64| {
            let mut film = TileSums::empty(width, height, 4);
            film.samples = 16;
            for y in 0..usize::from(height) {
                for x in 0..usize::from(width) {
                    let mean = of(red(x, y));
                    film.values[y * usize::from(width) + x] =
                        (mean * 16.0 * (1 << FRACTION_BITS) as f64) as i64;
                }
            }
            // A layer that is not part of the picture.
            let pixels = usize::from(width) * usize::from(height);
            film.values[3 * pixels..].fill(samples_apart(of));
            Half::of(film)
        };
        noise_of(&[film(|(first, _)| first), film(|(_, second)| second)])
    }

    fn samples_apart(of: fn((f64, f64)) -> f64) -> i64 {
        (of((0.0, 1.0)) * 1e9) as i64
    }

    #[test]
    fn halves_that_agree_have_no_noise() {
        assert_eq!(noise(32, 32, |x, y| (x as f64, x as f64 + 0.0 * y as f64)), 0.0);
        assert_eq!(noise(32, 32, |_, _| (0.0, 0.0)), 0.0);
    }

    #[test]
    fn noise_is_half_of_the_difference_by_the_root_of_the_mean() {
        let found = noise(8, 8, |_, _| (0.2, 0.3));
        assert!((found - 0.05 / (0.25f64.sqrt() + DARK)).abs() < 1e-6, "{found}");
        // A hundred times as bright, with a difference ten times as large.
        let bright = noise(8, 8, |_, _| (24.5, 25.5));
        assert!((bright - 0.5 / (25f64.sqrt() + DARK)).abs() < 1e-6, "{bright}");
    }

    #[test]
    fn the_noisiest_block_counts() {
        let spot = |left: usize, top: usize| {
            noise(29, 20, move |x, y| {
                let inside = (left..left + 4).contains(&x) && (top..top + 4).contains(&y);
                (1.0, if inside { 2.0 } else { 1.0 })
            })
        };
        // The spot is a sixteenth of a block. In the corner, a block of 13 × 4 pixels contains all
        // of it.
        let share = spot(8, 8);
        assert!((share * 16.0 / (0.5 / (1.5f64.sqrt() + DARK)) - 1.0).abs() < 1e-6, "{share}");
        assert!((spot(24, 16) / share - 16.0 * 16.0 / 52.0).abs() < 1e-9);
        // The spot lies in two blocks, half of it in the narrow one.
        assert!((spot(14, 8) / share - 16.0 * 8.0 / 208.0).abs() < 1e-9);
    }
}
