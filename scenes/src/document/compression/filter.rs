//! Filters of compressed buffer views (EXT_meshopt_compression and KHR_meshopt_compression,
//! appendix B). Owns no decompression.
//!
//! meshoptimizer has them too, but computes them by what the processor offers: estimates of a root
//! differ from maker to maker, and its results with them by a unit. Here each is the extensions'
//! formula in f64, rounded once, so that every node reads the same numbers.

use serde::Deserialize;

/// Filter for the elements of ATTRIBUTES after decompression.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub(crate) enum Filter {
    #[default]
    None,
    Octahedral,
    Quaternion,
    Exponential,
    Color,
}

/// Applies a filter to elements of `stride` bytes, which is one that the filter can have.
pub(crate) fn apply(filter: Filter, bytes: &mut [u8], stride: usize) {
    match (filter, stride) {
        (Filter::None, _) => {}
        (Filter::Octahedral, 4) => each(bytes, |element: &mut [u8; 4]| {
            let [x, y, one, _] = element.map(|byte| f64::from(byte as i8));
            for (byte, value) in element.iter_mut().zip(octahedral(x, y, one)) {
                *byte = (value * 127.0).round() as i8 as u8;
            }
        }),
        (Filter::Octahedral, _) => each_of_16_bits(bytes, |element| {
            let [x, y, one, last] = element.map(|word| word as i16);
            let normal = octahedral(x.into(), y.into(), one.into());
            let [x, y, z] = normal.map(|value| (value * 32_767.0).round() as i16);
            [x, y, z, last].map(|word| word as u16)
        }),
        (Filter::Quaternion, _) => each_of_16_bits(bytes, quaternion),
        (Filter::Exponential, _) => each(bytes, |element: &mut [u8; 4]| {
            *element = exponential(i32::from_le_bytes(*element)).to_le_bytes();
        }),
        (Filter::Color, 4) => each(bytes, |element: &mut [u8; 4]| {
            let [y, co, cg, a] = *element;
            let color = color([y.into(), (co as i8).into(), (cg as i8).into(), a.into()]);
            *element = color.map(|value| (value * 255.0).round() as u8);
        }),
        (Filter::Color, _) => each_of_16_bits(bytes, |[y, co, cg, a]| {
            let color = color([y.into(), (co as i16).into(), (cg as i16).into(), a.into()]);
            color.map(|value| (value * 65_535.0).round() as u16)
        }),
    }
}

fn each<const N: usize>(bytes: &mut [u8], mut change: impl FnMut(&mut [u8; N])) {
    for element in bytes.as_chunks_mut().0 {
        change(element);
    }
}

fn each_of_16_bits(bytes: &mut [u8], change: impl Fn([u16; 4]) -> [u16; 4]) {
    each(bytes, |element: &mut [u8; 8]| {
        let word = |at: usize| u16::from_le_bytes([element[2 * at], element[2 * at + 1]]);
        let [a, b, c, d] = change([word(0), word(1), word(2), word(3)]).map(u16::to_le_bytes);
        *element = [a[0], a[1], b[0], b[1], c[0], c[1], d[0], d[1]];
    });
}

/// A unit vector from the two octahedral coordinates of it, given with what stands for 1. What is
/// none becomes NaN, and 0 as an integer.
fn octahedral(x: f64, y: f64, one: f64) -> [f64; 3] {
    let (x, y) = (x / one, y / one);
    let z = 1.0 - x.abs() - y.abs();
    // Below the equator the sides of the octahedron are folded over.
    let fold = z.min(0.0);
    let (x, y) = (x - fold.copysign(x), y - fold.copysign(y));
    let length = (x * x + y * y + z * z).sqrt();
    [x, y, z].map(|component| component / length)
}

/// A unit quaternion from its three smaller components. The last word stands for 1, but for two
/// bits that say which one is the largest.
fn quaternion(words: [u16; 4]) -> [u16; 4] {
    let [x, y, z, last] = words.map(|word| word as i16);
    let one = f64::from(last | 3);
    let [x, y, z] = [x, y, z].map(|word| f64::from(word) / one * std::f64::consts::FRAC_1_SQRT_2);
    let w = (1.0 - x * x - y * y - z * z).max(0.0).sqrt();
    let largest = (last & 3) as usize;
    let mut turned = [0; 4];
    for (place, value) in [w, x, y, z].into_iter().enumerate() {
        turned[(largest + place) % 4] = (value * 32_767.0).round() as i16 as u16;
    }
    turned
}

/// Eight bits of exponent over 24 of a whole number, both signed.
fn exponential(word: i32) -> f32 {
    let (exponent, number) = (word >> 24, word << 8 >> 8);
    // 2^exponent has no fraction bits, and its own exponent is well within those of f64.
    let power = f64::from_bits(((1023 + i64::from(exponent)) as u64) << 52);
    (f64::from(number) * power) as f32
}

/// Red, green, blue and alpha in 0 to 1, from luma, two differences of colour, and alpha under a
/// bit that says how many bits all of them have.
fn color([y, co, cg, alpha]: [i32; 4]) -> [f64; 4] {
    let Some(bits) = alpha.checked_ilog2() else { return [0.0; 4] };
    let largest = (1 << (bits + 1)) - 1;
    let alpha = alpha & (largest >> 1);
    let alpha = alpha << 1 | alpha & 1;
    [y + co - cg, y + cg, y - co - cg, alpha].map(|value| f64::from(value) / f64::from(largest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use meshopt::EncodeExpMode;

    /// Unit vectors all over the sphere, and quaternions.
    fn vectors() -> Vec<[f32; 4]> {
        let mut state = 0x5eed_u32;
        let mut next = move || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) as f32 / (1 << 23) as f32 - 1.0
        };
        let raw = std::iter::repeat_with(move || [next(), next(), next(), next()]);
        let long = raw.filter(|v| v[..3].iter().map(|c| c * c).sum::<f32>() > 0.01);
        long.take(4096).collect()
    }

    fn unit<const N: usize>(v: [f32; 4]) -> [f32; 4] {
        let length = v[..N].iter().map(|c| c * c).sum::<f32>().sqrt();
        std::array::from_fn(|i| if i < N { v[i] / length } else { v[i] })
    }

    fn bytes(words: &[[i16; 4]]) -> Vec<u8> {
        words.iter().flatten().flat_map(|word| word.to_le_bytes()).collect()
    }

    fn words(bytes: &[u8]) -> Vec<[i16; 4]> {
        let words: Vec<i16> =
            bytes.as_chunks().0.iter().map(|word| i16::from_le_bytes(*word)).collect();
        words.as_chunks().0.to_vec()
    }

    /// The largest difference of two components.
    fn apart<T: Copy + Into<i32>>(a: &[[T; 4]], b: &[[T; 4]]) -> i32 {
        assert_eq!(a.len(), b.len());
        let pairs = a.as_flattened().iter().zip(b.as_flattened());
        pairs.map(|(a, b)| ((*a).into() - (*b).into()).abs()).max().unwrap()
    }

    #[test]
    fn unit_vectors_match_the_compressor_within_one_step() {
        let normals: Vec<[f32; 4]> = vectors().into_iter().map(unit::<3>).collect();
        for bits in [4, 8, 12, 16] {
            let packed: Vec<[i16; 4]> = meshopt::encode_filter_oct(&normals, bits);
            let (mut ours, mut theirs) = (bytes(&packed), packed);
            apply(Filter::Octahedral, &mut ours, 8);
            meshopt::decode_filter_oct(&mut theirs);
            assert!(apart(&words(&ours), &theirs) <= 1, "{bits} bits");
        }
        for bits in [4, 8] {
            let packed: Vec<[i8; 4]> = meshopt::encode_filter_oct(&normals, bits);
            let mut ours: Vec<u8> = packed.as_flattened().iter().map(|byte| *byte as u8).collect();
            let mut theirs = packed;
            apply(Filter::Octahedral, &mut ours, 4);
            meshopt::decode_filter_oct(&mut theirs);
            let ours: Vec<i8> = ours.iter().map(|byte| *byte as i8).collect();
            assert!(apart(ours.as_chunks().0, &theirs) <= 1, "{bits} bits");
        }
    }

    #[test]
    fn quaternions_match_the_compressor_within_one_step() {
        let quaternions: Vec<[f32; 4]> = vectors().into_iter().map(unit::<4>).collect();
        for bits in [4, 9, 16] {
            let packed = meshopt::encode_filter_quat(&quaternions, bits);
            let (mut ours, mut theirs) = (bytes(&packed), packed);
            apply(Filter::Quaternion, &mut ours, 8);
            meshopt::decode_filter_quat(&mut theirs);
            assert!(apart(&words(&ours), &theirs) <= 1, "{bits} bits");
        }
    }

    #[test]
    fn floats_match_the_compressor_exactly() {
        let floats: Vec<[f32; 4]> = vectors()
            .iter()
            .zip(-20..)
            .map(|(v, i)| v.map(|c| c * f32::powi(2.0, i % 90)))
            .collect();
        for bits in [8, 15, 24] {
            let packed = meshopt::encode_filter_exp(&floats, bits, EncodeExpMode::Separate);
            let mut ours: Vec<u8> =
                packed.as_flattened().iter().flat_map(|word| word.to_le_bytes()).collect();
            let mut theirs = packed;
            apply(Filter::Exponential, &mut ours, 16);
            meshopt::decode_filter_exp(&mut theirs);
            let theirs: Vec<u8> =
                theirs.as_flattened().iter().flat_map(|word| word.to_le_bytes()).collect();
            assert_eq!(ours, theirs, "{bits} bits");
        }
    }

    #[test]
    fn colors_match_the_compressor_within_one_step() {
        let colors: Vec<[f32; 4]> =
            vectors().into_iter().map(|v| v.map(|c| c.abs().min(1.0))).collect();
        for bits in [3, 8, 11, 16] {
            let packed: Vec<[u16; 4]> = meshopt::encode_filter_color(&colors, bits);
            let mut ours: Vec<u8> =
                packed.as_flattened().iter().flat_map(|word| word.to_le_bytes()).collect();
            let mut theirs = packed;
            apply(Filter::Color, &mut ours, 8);
            meshopt::decode_filter_color(&mut theirs);
            let ours: Vec<u16> =
                ours.as_chunks().0.iter().map(|word| u16::from_le_bytes(*word)).collect();
            assert!(apart(ours.as_chunks().0, &theirs) <= 1, "{bits} bits");
        }
        let packed: Vec<[u8; 4]> = meshopt::encode_filter_color(&colors, 7);
        let (mut ours, mut theirs) = (packed.as_flattened().to_vec(), packed);
        apply(Filter::Color, &mut ours, 4);
        meshopt::decode_filter_color(&mut theirs);
        assert!(apart(ours.as_chunks().0, &theirs) <= 1);
    }

    #[test]
    fn the_numbers_are_the_same_bits_on_every_machine() {
        let mut state = 0x5eed_u32;
        let noise: Vec<u8> = std::iter::repeat_with(move || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8
        })
        .take(1 << 16)
        .collect();
        for (filter, stride, hash) in [
            (Filter::Octahedral, 4, "bb061265257a45c3"),
            (Filter::Octahedral, 8, "321f3fc58aefa32e"),
            (Filter::Quaternion, 8, "7a7ccbf9733a3e26"),
            (Filter::Exponential, 4, "b3deae059f54c6c2"),
            (Filter::Color, 4, "21d35621e0c7709f"),
            (Filter::Color, 8, "231165e0cd64a754"),
        ] {
            let mut bytes = noise.clone();
            apply(filter, &mut bytes, stride);
            assert_eq!(&blake3::hash(&bytes).to_hex()[..16], hash, "{filter:?} {stride}");
        }
    }
}
