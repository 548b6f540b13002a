//! From the sums of a unit to the mean that people see who watch its frame: half floats, at most
//! 64 × 64 of them. No picture of the farm is made from it.

use tessera_protocol::TileSums;
use tessera_protocol::compute::half_of_f64;
use tessera_protocol::film::FRACTION_BITS;
use tessera_protocol::live::{LIVE_VALUE_BYTES, LiveValues, live_size, live_step};
use tessera_protocol::node::TileRect;

/// Largest half float.
const HALF_MAX: f64 = 65_504.0;
/// Channels of the beauty, which are a film's first ones.
const COLORS: usize = 3;

/// Returns the mean of a tile's samples; None for a film without samples or colours, or of another
/// tile.
pub(crate) fn live_mean(sums: &TileSums, tile: &TileRect) -> Option<LiveValues> {
    let (width, height) = (usize::from(sums.width), usize::from(sums.height));
    let is_of_tile = (tile.width as usize, tile.height as usize) == (width, height);
    let colors = sums.values.get(..COLORS * width * height)?;
    if !is_of_tile || sums.samples == 0 || usize::from(sums.channels) < COLORS {
        return None;
    }
    let step = live_step(tile) as usize;
    let (across, down) = live_size(tile);
    let scale = f64::from(sums.samples) * f64::from(1u32 << FRACTION_BITS);
    let mut bytes = Vec::with_capacity((across * down) as usize * LIVE_VALUE_BYTES);
    for top in (0..height).step_by(step) {
        for left in (0..width).step_by(step) {
            let (rows, columns) = (top..height.min(top + step), left..width.min(left + step));
            let pixels = (rows.len() * columns.len()) as f64;
            for plane in colors.chunks_exact(width * height) {
                let lines = rows.clone().map(|y| &plane[y * width..][columns.clone()]);
                // A film's sum fits into an i64, and those of 64 pixels may not.
                let sum: f64 = lines.flatten().map(|sum| *sum as f64).sum();
                let mean = (sum / (pixels * scale)).clamp(-HALF_MAX, HALF_MAX);
                bytes.extend_from_slice(&half_of_f64(mean).to_le_bytes());
            }
        }
    }
    Some(LiveValues(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tessera_protocol::compute::half_to_f64;
    use tessera_protocol::live::LIVE_BYTES_MAX;

    const ONE: i64 = 1 << FRACTION_BITS;

    fn tile(width: u32, height: u32) -> TileRect {
        TileRect { x: 0, y: 0, width, height }
    }

    fn sums(width: u16, height: u16, value: impl Fn(usize, usize, usize) -> i64) -> TileSums {
        let mut sums = TileSums::empty(width, height, 4);
        sums.samples = 4;
        let (across, down) = (usize::from(width), usize::from(height));
        for channel in 0..4 {
            for y in 0..down {
                for x in 0..across {
                    sums.values[(channel * down + y) * across + x] = value(channel, x, y);
                }
            }
        }
        sums
    }

    fn values(values: &LiveValues) -> Vec<f64> {
        let pairs = values.0.chunks_exact(2);
        pairs.map(|pair| half_to_f64(u16::from_le_bytes([pair[0], pair[1]]))).collect()
    }

    #[test]
    fn a_small_tile_has_the_mean_of_each_pixel() {
        let film = sums(2, 1, |channel, x, _| ONE * (channel + 4 * x) as i64);
        let mean = live_mean(&film, &tile(2, 1)).expect("it has samples");
        assert_eq!(values(&mean), [0.0, 0.25, 0.5, 1.0, 1.25, 1.5]);
    }

    #[test]
    fn a_large_tile_is_sent_with_fewer_values() {
        // Pixels 0 and 1 of each square are bright, so that half of the squares is.
        let film = sums(128, 130, |channel, x, y| match (channel, y) {
            (0, _) => 4 * ONE * (x / 3 % 2) as i64,
            (1, _) => 4 * ONE * ((x % 3 == 0) as i64),
            _ => 8 * ONE * (y >= 129) as i64,
        });
        let mean = live_mean(&film, &tile(128, 130)).expect("it has samples");
        assert_eq!(mean.0.len(), 43 * 44 * LIVE_VALUE_BYTES);
        let values = values(&mean);
        assert_eq!(values[..6], [0.0, 0.333_251_953_125, 0.0, 1.0, 0.333_251_953_125, 0.0]);
        let last = &values[(43 * 43 + 42) * 3..];
        assert_eq!(last, [0.0, 0.5, 2.0], "the last square has two columns and one row");
        let largest = live_mean(&sums(512, 512, |_, _, _| ONE), &tile(512, 512));
        assert_eq!(largest.map(|mean| mean.0.len()), Some(LIVE_BYTES_MAX));
    }

    #[test]
    fn values_beyond_half_floats_are_clamped() {
        let film = sums(64, 64, |channel, _, _| [i64::MAX, i64::MIN, 1, 0][channel]);
        let mean = live_mean(&film, &tile(64, 64)).expect("it has samples");
        let all = values(&mean);
        assert!(all.iter().all(|value| value.is_finite()));
        assert_eq!(all[..3], [65_504.0, -65_504.0, 0.0]);
    }

    #[test]
    fn a_film_without_samples_or_of_another_tile_has_no_mean() {
        let film = sums(4, 4, |_, _, _| ONE);
        assert!(live_mean(&film, &tile(4, 4)).is_some());
        assert_eq!(live_mean(&film, &tile(4, 5)), None);
        assert_eq!(live_mean(&TileSums { samples: 0, ..film.clone() }, &tile(4, 4)), None);
        assert_eq!(live_mean(&TileSums::empty(0, 0, 0), &tile(0, 0)), None);
        assert_eq!(live_mean(&TileSums::empty(4, 4, 2), &tile(4, 4)), None);
    }
}
