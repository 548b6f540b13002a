//! Mipmaps: makes every level of a texture from the one before, by a box filter in integers, so
//! that every machine gets the same. Kernels choose the level.

use crate::texture::srgb::linear_from_srgb;
use rayon::prelude::*;
use std::sync::OnceLock;
use tessera_layout::{TexelFormat, Texture};

/// How the colours of texels are averaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mean {
    /// All texels have the same weight.
    Plain,
    /// Each texel is weighted by its alpha, which is its coverage. If all alphas are 0, the weights
    /// are equal.
    ByAlpha,
}

/// Fills the levels after the first one, which is there. `texels` holds all levels of a texture of
/// this size.
pub(crate) fn fill_levels(texels: &mut [u8], size: (u32, u32), format: TexelFormat, mean: Mean) {
    match format {
        TexelFormat::Rgba8Srgb => fill::<Srgb8>(texels, size, mean),
        TexelFormat::Rgba8Linear => fill::<Linear8>(texels, size, mean),
        TexelFormat::Rgba16Linear => fill::<Linear16>(texels, size, mean),
    }
}

fn fill<T: Texel>(texels: &mut [u8], size: (u32, u32), mean: Mean) {
    let mut rest = texels;
    for level in 1..Texture::levels_of(size.0, size.1) {
        let source_size = Texture::level_size(size, level - 1);
        let (width, height) = Texture::level_size(size, level);
        let (source, behind) =
            rest.split_at_mut(source_size.0 as usize * source_size.1 as usize * T::BYTES);
        let row_bytes = width as usize * T::BYTES;
        behind[..row_bytes * height as usize].par_chunks_mut(row_bytes).enumerate().for_each(
            |(row, target)| {
                let down = taps(source_size.1, row as u32);
                for (column, texel) in target.chunks_exact_mut(T::BYTES).enumerate() {
                    let across = taps(source_size.0, column as u32);
                    T::write(average::<T>(source, source_size.0, (across, down), mean), texel);
                }
            },
        );
        rest = behind;
    }
}

/// The texels of one axis that a texel of the next level covers, and their weights; unused ones
/// have 0. The weights for an odd count are those of Guthe and Heckbert 2005, "Non-Power-of-Two
/// Mipmapping", section 2.
type Taps = [(u32, u64); 3];

fn taps(count: u32, at: u32) -> Taps {
    let half = count / 2;
    match (half, count % 2) {
        (0, _) => [(0, 1), (0, 0), (0, 0)],
        (_, 0) => [(2 * at, 1), (2 * at + 1, 1), (0, 0)],
        _ => [
            (2 * at, u64::from(half - at)),
            (2 * at + 1, u64::from(half)),
            (2 * at + 2, u64::from(at) + 1),
        ],
    }
}

/// Averages texels. Weights add up to at most 2^28, linear values have at most 24 bits, and alpha
/// 16, so the sums fit.
fn average<T: Texel>(
    source: &[u8],
    width: u32,
    (across, down): (Taps, Taps),
    mean: Mean,
) -> [u64; 4] {
    let (mut plain, mut by_alpha) = ([0u64; 4], [0u64; 3]);
    let mut total = 0;
    for (y, weight_down) in down {
        for (x, weight_across) in across {
            let weight = weight_down * weight_across;
            if weight == 0 {
                continue;
            }
            let at = (y as usize * width as usize + x as usize) * T::BYTES;
            let texel = T::read(&source[at..at + T::BYTES]);
            total += weight;
            plain = std::array::from_fn(|i| plain[i] + weight * texel[i]);
            if mean == Mean::ByAlpha {
                by_alpha = std::array::from_fn(|i| by_alpha[i] + weight * texel[3] * texel[i]);
            }
        }
    }
    let alpha = plain[3];
    let rounded = |sum: u64, of: u64| (sum + of / 2) / of;
    match mean {
        Mean::ByAlpha if alpha > 0 => {
            let [red, green, blue] = by_alpha.map(|sum| rounded(sum, alpha));
            [red, green, blue, rounded(alpha, total)]
        }
        _ => plain.map(|sum| rounded(sum, total)),
    }
}

/// The texels of a format as linear integers.
trait Texel {
    const BYTES: usize;
    fn read(bytes: &[u8]) -> [u64; 4];
    fn write(values: [u64; 4], bytes: &mut [u8]);
}

struct Linear8;

impl Texel for Linear8 {
    const BYTES: usize = 4;

    fn read(bytes: &[u8]) -> [u64; 4] {
        std::array::from_fn(|i| u64::from(bytes[i]))
    }

    fn write(values: [u64; 4], bytes: &mut [u8]) {
        bytes.copy_from_slice(&values.map(|value| value as u8));
    }
}

struct Linear16;

impl Texel for Linear16 {
    const BYTES: usize = 8;

    fn read(bytes: &[u8]) -> [u64; 4] {
        std::array::from_fn(|i| u64::from(u16::from_le_bytes([bytes[2 * i], bytes[2 * i + 1]])))
    }

    fn write(values: [u64; 4], bytes: &mut [u8]) {
        for (value, bytes) in values.iter().zip(bytes.chunks_exact_mut(2)) {
            bytes.copy_from_slice(&(*value as u16).to_le_bytes());
        }
    }
}

struct Srgb8;

impl Texel for Srgb8 {
    const BYTES: usize = 4;

    fn read(bytes: &[u8]) -> [u64; 4] {
        let linear = &codes().linear;
        let color = |i: usize| u64::from(linear[usize::from(bytes[i])]);
        [color(0), color(1), color(2), u64::from(bytes[3])]
    }

    fn write(values: [u64; 4], bytes: &mut [u8]) {
        for (value, byte) in values[..3].iter().zip(&mut *bytes) {
            *byte = codes().nearest(*value as u32);
        }
        bytes[3] = values[3] as u8;
    }
}

/// sRGB codes and their linear values in 2^-24.
struct Codes {
    linear: [u32; 256],
    /// Code from which a search starts, by the first bits of the value.
    start: Vec<u8>,
}

const LINEAR_BITS: u32 = 24;
const START_BITS: u32 = 12;

fn codes() -> &'static Codes {
    static CODES: OnceLock<Codes> = OnceLock::new();
    CODES.get_or_init(|| {
        let linear =
            linear_from_srgb().map(|value| (value * f64::from(1u32 << LINEAR_BITS)).round() as u32);
        let mut codes = Codes { linear, start: vec![0] };
        for place in 1..=1u32 << START_BITS {
            let last = codes.start[codes.start.len() - 1];
            let code = codes.search(last, place << (LINEAR_BITS - START_BITS));
            codes.start.push(code);
        }
        codes
    })
}

impl Codes {
    fn nearest(&self, value: u32) -> u8 {
        self.search(self.start[(value >> (LINEAR_BITS - START_BITS)) as usize], value)
    }

    /// Returns the code nearest to a value. It is `code` or a later one.
    fn search(&self, mut code: u8, value: u32) -> u8 {
        while code < 255 {
            let at = usize::from(code);
            if 2 * value < self.linear[at] + self.linear[at + 1] {
                break;
            }
            code += 1;
        }
        code
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn levels(format: TexelFormat, size: (u32, u32), mean: Mean, first: &[u8]) -> Vec<u8> {
        let bytes = if format == TexelFormat::Rgba16Linear { 8 } else { 4 };
        let count = Texture::level_texels(size, Texture::levels_of(size.0, size.1)) as usize;
        let mut texels = first.to_vec();
        texels.resize(count * bytes, 0);
        fill_levels(&mut texels, size, format, mean);
        texels
    }

    #[test]
    fn every_code_is_nearest_to_itself() {
        for code in 0..=255u8 {
            assert_eq!(codes().nearest(codes().linear[usize::from(code)]), code);
        }
    }

    #[test]
    fn a_plain_texture_stays_what_it_is() {
        for format in [TexelFormat::Rgba8Srgb, TexelFormat::Rgba8Linear, TexelFormat::Rgba16Linear]
        {
            for size in [(8, 8), (7, 5), (1, 13), (6, 1), (1, 1)] {
                for mean in [Mean::Plain, Mean::ByAlpha] {
                    let bytes = if format == TexelFormat::Rgba16Linear { 8 } else { 4 };
                    let texel: Vec<u8> = (0..bytes as u8).map(|i| 31 * i + 9).collect();
                    let all = levels(format, size, mean, &texel.repeat((size.0 * size.1) as usize));
                    assert!(
                        all.chunks(bytes).all(|found| found == texel),
                        "{format:?} {size:?}: {all:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn colours_are_averaged_as_light() {
        let black_and_white = [[0, 0, 0, 255], [255, 255, 255, 255]].concat();
        let all = levels(TexelFormat::Rgba8Srgb, (2, 1), Mean::Plain, &black_and_white);
        assert_eq!(all[8..], [188, 188, 188, 255], "half of the light is code 188");
        let all = levels(TexelFormat::Rgba8Linear, (2, 1), Mean::Plain, &black_and_white);
        assert_eq!(all[8..], [128, 128, 128, 255]);
    }

    #[test]
    fn transparent_texels_give_no_colour() {
        let leaf_and_nothing = [[40, 200, 30, 255], [0, 0, 0, 0]].concat();
        let all = levels(TexelFormat::Rgba8Srgb, (2, 1), Mean::ByAlpha, &leaf_and_nothing);
        assert_eq!(all[8..], [40, 200, 30, 128]);
        let nothing = [[10, 10, 10, 0]; 2].concat();
        assert_eq!(
            levels(TexelFormat::Rgba8Srgb, (2, 1), Mean::ByAlpha, &nothing)[8..],
            [10, 10, 10, 0]
        );
    }

    #[test]
    fn odd_sizes_keep_the_mean() {
        let size = (13u32, 7u32);
        let value = |index: u32| (index.wrapping_mul(0x9e37_79b9) >> 16) as u16;
        let first: Vec<u8> =
            (0..size.0 * size.1 * 4).flat_map(|index| value(index).to_le_bytes()).collect();
        let all = levels(TexelFormat::Rgba16Linear, size, Mean::Plain, &first);
        let word = |texels: &[u8], index: usize| {
            f64::from(u16::from_le_bytes([texels[index * 2], texels[index * 2 + 1]]))
        };
        for channel in 0..4 {
            let mean = (0..91).map(|texel| word(&first, texel * 4 + channel)).sum::<f64>() / 91.0;
            let last = word(&all, all.len() / 2 - 4 + channel);
            // There are three levels, and each rounds once.
            assert!((last - mean).abs() <= 1.5, "{channel}: {last}, not {mean}");
        }
    }
}
