//! KTX2 files with Basis Universal textures (KHR_texture_basisu): checks their headers and
//! transcodes the texels of their largest level. Owns no limits.
//!
//! The transcoder allocates by the file's own numbers, so sizes and positions are checked here
//! first. UASTC blocks are passed to it in a separate plain file. So Tessera's own library handles
//! the Zstandard part.

use basisu::{DecodeFlags, TargetFormat, Transcoder};
use std::ops::Range;

/// First bytes of every file.
pub(crate) const IDENTIFIER: [u8; 12] = *b"\xabKTX 20\xbb\r\n\x1a\n";
/// Length of the header, and of one level in the index after it.
const HEADER_BYTES: usize = 80;
const LEVEL_BYTES: usize = 24;
/// Place in the header for the position of keys and values.
const TEXTS_AT: Range<usize> = 56..64;
/// Most levels: those of the largest edge that fits into 16 bits.
const LEVELS_MAX: u32 = 16;
/// Lengths of a data format descriptor with one channel and with two.
const DESCRIPTOR_BYTES: [usize; 2] = [44, 60];
/// Texels along a block's edge, and length of a UASTC block.
const BLOCK_EDGE: u32 = 4;
const BLOCK_BYTES: usize = 16;

/// Supercompression schemes, and colour models of the descriptor.
const PLAIN: u32 = 0;
const BASIS_LZ: u32 = 1;
const ZSTANDARD: u32 = 2;
const ETC1S: u8 = 163;
const UASTC: u8 = 166;

/// Parts of a file, after a check that all of them exist.
struct Parts<'a> {
    size: (u32, u32),
    scheme: u32,
    model: u8,
    descriptor: &'a [u8],
    /// The largest level, as stored.
    level: &'a [u8],
    /// Length of the level without Zstandard, according to the file.
    level_bytes: u64,
}

/// Width and height. The error says what is wrong and what to do.
pub(crate) fn size(bytes: &[u8]) -> Result<(u32, u32), String> {
    parts(bytes).map(|parts| parts.size)
}

/// Decodes into `target`, four bytes per texel. The caller has checked [`size`] and allocated
/// `target` for it.
pub(crate) fn decode(bytes: &[u8], target: &mut [u8]) -> Result<(), String> {
    let parts = parts(bytes)?;
    let file = if parts.model == UASTC { plain_file(&parts)? } else { without_texts(bytes) };
    let broken = |error| format!("it cannot be decoded ({error:?}); write it again");
    let transcoder = Transcoder::new(&file).map_err(broken)?;
    transcoder.transcode_into(0, TargetFormat::Rgba32, DecodeFlags::NONE, target).map_err(broken)
}

/// Returns the file without its keys and values, which are not needed. The transcoder reads beyond
/// their end if the last one is not padded.
fn without_texts(bytes: &[u8]) -> Vec<u8> {
    let mut file = bytes.to_vec();
    file[TEXTS_AT].fill(0);
    file
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|word| u32::from_le_bytes(*word))
}

fn long(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..)?.first_chunk().map(|long| u64::from_le_bytes(*long))
}

/// Returns a range of the file, if it exists.
fn range(bytes: &[u8], at: u64, length: u64) -> Option<&[u8]> {
    let end = at.checked_add(length)?;
    bytes.get(Range { start: usize::try_from(at).ok()?, end: usize::try_from(end).ok()? })
}

fn parts(bytes: &[u8]) -> Result<Parts<'_>, String> {
    const CUT: &str = "it is cut short; copy it again";
    let header = bytes.first_chunk::<HEADER_BYTES>().ok_or(CUT)?;
    let number = |at: usize| word(header, at).unwrap_or_default();
    let [format, width, height, depth] = [12, 20, 24, 28].map(number);
    let [layers, faces, levels, scheme] = [32, 36, 40, 44].map(number);
    if format != 0 {
        let what = "where ETC1S and UASTC are read; convert it to PNG";
        return Err(format!("it is a KTX2 file of Vulkan's format {format}, {what}"));
    }
    if depth != 0 || layers > 1 || faces != 1 {
        return Err("it is an array, a cube or a volume; save one of its pictures".into());
    }
    if !(1..=LEVELS_MAX).contains(&levels) {
        return Err(format!("it has {levels} levels, not 1 to {LEVELS_MAX}; write it again"));
    }
    let [descriptor_at, descriptor_bytes] = [48, 52].map(|at| u64::from(number(at)));
    let descriptor = range(bytes, descriptor_at, descriptor_bytes).ok_or(CUT)?;
    if !DESCRIPTOR_BYTES.contains(&descriptor.len()) {
        return Err(
            "its data format descriptor is not that of Basis Universal; convert it to PNG".into()
        );
    }
    let model = descriptor[12];
    if !matches!((model, scheme), (ETC1S, BASIS_LZ) | (UASTC, PLAIN | ZSTANDARD)) {
        let what = "where ETC1S with BasisLZ and UASTC are read; convert it to PNG";
        return Err(format!("it has colour model {model} with supercompression {scheme}, {what}"));
    }
    let global = (long(header, 64).unwrap_or_default(), long(header, 72).unwrap_or_default());
    range(bytes, global.0, global.1).ok_or(CUT)?;
    let index =
        range(bytes, HEADER_BYTES as u64, u64::from(levels) * LEVEL_BYTES as u64).ok_or(CUT)?;
    let [at, length, level_bytes] = [0, 8, 16].map(|at| long(index, at).unwrap_or_default());
    let level = range(bytes, at, length).ok_or(CUT)?;
    Ok(Parts { size: (width, height), scheme, model, descriptor, level, level_bytes })
}

/// Returns a file with only the largest level's UASTC blocks.
fn plain_file(parts: &Parts) -> Result<Vec<u8>, String> {
    let (width, height) = parts.size;
    let blocks = width.div_ceil(BLOCK_EDGE) as usize * height.div_ceil(BLOCK_EDGE) as usize;
    let length = blocks * BLOCK_BYTES;
    let stored =
        if parts.scheme == ZSTANDARD { parts.level_bytes } else { parts.level.len() as u64 };
    if stored != length as u64 {
        let problem = format!(
            "its largest level has {stored} bytes, but {width}x{height} texels take {length}"
        );
        return Err(format!("{problem}; write it again"));
    }
    let level_at = HEADER_BYTES + LEVEL_BYTES + parts.descriptor.len();
    let level_at = level_at.next_multiple_of(BLOCK_BYTES);
    let mut file = Vec::with_capacity(level_at + length);
    file.extend(IDENTIFIER);
    // Format, size of its type, width, height, depth, layers, faces, levels and scheme; then the
    // position of the descriptor, and nothing else.
    let descriptor_at = (HEADER_BYTES + LEVEL_BYTES) as u32;
    let words =
        [0, 1, width, height, 0, 0, 1, 1, PLAIN, descriptor_at, parts.descriptor.len() as u32];
    file.extend(words.into_iter().flat_map(u32::to_le_bytes));
    file.resize(HEADER_BYTES, 0);
    file.extend(
        [level_at, length, length].into_iter().flat_map(|value| (value as u64).to_le_bytes()),
    );
    file.extend(parts.descriptor);
    file.resize(level_at + length, 0);
    let target = &mut file[level_at..];
    if parts.scheme == PLAIN {
        target.copy_from_slice(parts.level);
        return Ok(file);
    }
    match zstd::bulk::decompress_to_buffer(parts.level, target) {
        Ok(written) if written == length => Ok(file),
        Ok(written) => {
            Err(format!("its largest level gives {written} bytes, not {length}; write it again"))
        }
        Err(error) => {
            Err(format!("its largest level cannot be decompressed ({error}); write it again"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image_file;
    use tessera_layout::TexelFormat;

    /// A file, the BLAKE3 hash of its texels as Binomial's own transcoder gives them, how far
    /// colours are from (7 x, 8 y, 128), and how far alpha is from 255 - 6 x; without the last it
    /// is opaque. All but the second have six levels.
    type Sample = (&'static str, &'static [u8], &'static str, usize, Option<usize>);

    macro_rules! sample {
        ($name:literal, $hash:literal, $color:literal, $alpha:expr) => {
            (
                $name,
                include_bytes!(concat!("../../tests/images/", $name, ".ktx2")),
                $hash,
                $color,
                $alpha,
            )
        };
    }

    const SAMPLES: [Sample; 3] = [
        sample!(
            "ramp-etc1s-alpha",
            "18231f3ab95f314066b7db428efbcccc4eb32b741b09c40b46dffedb79884510",
            21,
            Some(5)
        ),
        sample!(
            "ramp-etc1s",
            "5e060458403cd4bdb411bb8b3e636a65fd5d419d12df6e0f187edd6dbd635226",
            21,
            None
        ),
        sample!(
            "ramp-uastc",
            "8f74ac8d86aaa5e6a97a194097004ac3dfc0bb0ca968ac75900bdab2cc38f23e",
            3,
            Some(3)
        ),
    ];

    fn texels(bytes: &[u8]) -> Result<Vec<u8>, String> {
        let header = image_file::header(bytes, 16_384)?;
        let mut texels = vec![0; 4 * (header.width * header.height) as usize];
        image_file::decode(bytes, &header, TexelFormat::Rgba8Srgb, &mut texels)?;
        Ok(texels)
    }

    /// Returns the file with other bytes at one place.
    fn with(bytes: &[u8], at: usize, value: &[u8]) -> Vec<u8> {
        let mut bytes = bytes.to_vec();
        bytes[at..at + value.len()].copy_from_slice(value);
        bytes
    }

    #[test]
    fn texels_are_the_same_bits_on_every_machine() {
        for (name, bytes, hash, ..) in SAMPLES {
            assert_eq!(blake3::hash(&texels(bytes).unwrap()).to_hex().as_str(), hash, "{name}");
        }
    }

    #[test]
    fn decoded_ramps_match_their_source() {
        for (name, bytes, _, color_far, alpha_far) in SAMPLES {
            assert_eq!(size(bytes), Ok((35, 29)), "{name}");
            for (index, texel) in texels(bytes).unwrap().chunks_exact(4).enumerate() {
                let (x, y) = (index % 35, index / 35);
                let alpha = alpha_far.map_or(255, |_| 255 - 6 * x);
                let want = [7 * x, 8 * y, 128, alpha];
                let far = [color_far, color_far, color_far, alpha_far.unwrap_or(0)];
                let mut apart =
                    texel.iter().zip(want).map(|(texel, want)| usize::from(*texel).abs_diff(want));
                assert!(
                    far.iter().all(|far| apart.next() <= Some(*far)),
                    "{name} at ({x}, {y}): {texel:?}"
                );
            }
        }
    }

    #[test]
    fn blocks_are_read_with_zstandard_and_without() {
        let (_, packed, hash, ..) = SAMPLES[2];
        let plain = plain_file(&parts(packed).unwrap()).unwrap();
        assert_eq!((packed[44], plain[44]), (ZSTANDARD as u8, PLAIN as u8));
        assert_eq!(blake3::hash(&texels(&plain).unwrap()).to_hex().as_str(), hash);
    }

    #[test]
    fn inconsistent_sizes_are_refused_before_allocation() {
        let huge = &[255; 8][..];
        for (name, bytes, ..) in SAMPLES {
            let told = |at: usize, value: &[u8]| texels(&with(bytes, at, value)).unwrap_err();
            assert!(told(20, &[255; 4]).contains("4294967295x29"), "{name}");
            assert!(told(24, &[0; 4]).contains("35x0"), "{name}");
            // Position and length of the level, of the descriptor, and of the data that all levels
            // share.
            for at in [80, 88, 48, 52, 64, 72] {
                let value = if at < 64 { &huge[..4] } else { huge };
                assert!(
                    told(at, value).contains("cut short"),
                    "{name} at {at}: {}",
                    told(at, value)
                );
            }
            assert!(told(40, &[17, 0]).contains("17 levels"), "{name}");
            assert!(told(36, &[6]).contains("a cube"), "{name}");
            assert!(told(12, &[43]).contains("Vulkan's format 43"), "{name}");
            assert!(told(44, &[3]).contains("supercompression 3"), "{name}");
        }
        let (_, uastc, ..) = SAMPLES[2];
        let error = texels(&with(uastc, 20, &[64])).unwrap_err();
        assert!(error.contains("has 1152 bytes, but 64x29 texels take 2048"), "{error}");
        let error = texels(&with(uastc, 96, huge)).unwrap_err();
        assert!(error.contains("has 18446744073709551615 bytes"), "{error}");
    }

    /// Without our checks, the transcoder would read past the end of this file.
    #[test]
    fn key_value_data_is_ignored() {
        let (_, bytes, hash, ..) = SAMPLES[1];
        let mut long = bytes.to_vec();
        let at = long.len() as u32;
        long.extend([5, 0, 0, 0, b'a', 0, 0, 0, 0]);
        let told = [at.to_le_bytes(), 9u32.to_le_bytes()].concat();
        let long = with(&long, TEXTS_AT.start, &told);
        assert_eq!(blake3::hash(&texels(&long).unwrap()).to_hex().as_str(), hash);
    }

    #[test]
    fn broken_files_give_an_error_and_never_a_panic() {
        for (name, bytes, ..) in SAMPLES {
            for length in 0..bytes.len() {
                // Smaller levels come before the largest one, so every byte at the end belongs to
                // the largest.
                assert!(texels(&bytes[..length]).is_err(), "{name} cut to {length}");
            }
            for at in 0..bytes.len() {
                for value in [0, 1, 127, 128, 255] {
                    // What is damaged may still show something.
                    let damaged = with(bytes, at, &[value]);
                    if size(&damaged).is_ok_and(|(width, height)| width.max(height) <= 64) {
                        let _ = texels(&damaged);
                    }
                }
            }
        }
    }
}
