//! WebP files: what their containers say, read before anything is allocated for their pictures.
//! Decoding itself is `image_file`'s.
//!
//! The decoder of the `image` crate makes room for the picture that a chunk inside speaks of, which
//! need not have the size that the file itself names, so that both are compared here first.

use std::ops::Range;

/// Bytes of `RIFF`, a length and `WEBP`.
const HEADER_BYTES: usize = 12;
/// Bytes of a chunk's name and length.
const CHUNK_HEADER_BYTES: usize = 8;
/// Chunks that are looked at: a still picture has seven kinds.
const CHUNKS_MAX: usize = 64;
/// The flag of extended files that hold several frames.
const ANIMATION_FLAG: u8 = 2;

/// Width and height of a still picture. The error says what is wrong and what to do.
pub(crate) fn size(bytes: &[u8]) -> Result<(u32, u32), String> {
    let mut canvas = None;
    let mut at = HEADER_BYTES;
    for _ in 0..CHUNKS_MAX {
        let Some((name, data)) = chunk(bytes, at) else { break };
        let payload = bytes.get(data.start..data.end.min(bytes.len())).unwrap_or_default();
        let found = match &name {
            b"VP8X" if canvas.is_none() => {
                canvas = Some(extended(payload)?);
                None
            }
            b"VP8 " => Some(lossy(payload)),
            b"VP8L" => Some(lossless(payload)),
            _ => None,
        };
        if let Some(found) = found {
            let found = found.ok_or("its picture's header is cut short; write it again")?;
            if canvas.is_some_and(|canvas| canvas != found) {
                return Err(
                    "its picture has another size than the file says; write it again".into()
                );
            }
            return Ok(found);
        }
        at = data.end.next_multiple_of(2);
    }
    Err("it has no picture; write it again".into())
}

/// A chunk's name and where its bytes are, which may be beyond the end of the file.
fn chunk(bytes: &[u8], at: usize) -> Option<([u8; 4], Range<usize>)> {
    let name = bytes.get(at..at + 4)?.try_into().ok()?;
    let length = u32::from_le_bytes(bytes.get(at + 4..at + CHUNK_HEADER_BYTES)?.try_into().ok()?);
    let start = at + CHUNK_HEADER_BYTES;
    Some((name, start..start + length as usize))
}

/// The canvas of an extended file: flags, three reserved bytes, width and height less one in 24
/// bits each.
fn extended(payload: &[u8]) -> Result<(u32, u32), String> {
    let Some(&[flags, _, _, _, w0, w1, w2, h0, h1, h2]) = payload.first_chunk() else {
        return Err("its header is cut short; write it again".into());
    };
    if flags & ANIMATION_FLAG != 0 {
        return Err("it is an animation; save one of its frames".into());
    }
    let edge = |low, middle, high| u32::from_le_bytes([low, middle, high, 0]) + 1;
    Ok((edge(w0, w1, w2), edge(h0, h1, h2)))
}

/// Behind three bytes of tag and three of a signature: width and height in 14 bits each, with two
/// of a scale that nothing uses.
fn lossy(payload: &[u8]) -> Option<(u32, u32)> {
    let &[_, _, _, _, _, _, w0, w1, h0, h1] = payload.first_chunk()?;
    let edge = |low, high| u32::from(u16::from_le_bytes([low, high]) & 0x3fff);
    Some((edge(w0, w1), edge(h0, h1)))
}

/// Behind a byte of signature: width and height less one in 14 bits each.
fn lossless(payload: &[u8]) -> Option<(u32, u32)> {
    let &[_, b0, b1, b2, b3] = payload.first_chunk()?;
    let bits = u32::from_le_bytes([b0, b1, b2, b3]);
    Some(((bits & 0x3fff) + 1, ((bits >> 14) & 0x3fff) + 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image_file::{decode, header};
    use tessera_layout::TexelFormat;

    /// A file and the BLAKE3 hash of its texels, as libwebp decodes it too. `ramp` files show (7 x,
    /// 8 y, 128), the last two with an alpha of 255 - 6 x.
    type Sample = (&'static str, &'static [u8], &'static str);

    macro_rules! sample {
        ($name:literal, $hash:literal) => {
            ($name, include_bytes!(concat!("../../tests/images/", $name, ".webp")), $hash)
        };
    }

    const SAMPLES: [Sample; 5] = [
        sample!(
            "noise-lossless",
            "a70462456a4c1ebc3c4f323c1633f3b2026caf3385a63bd7232f1ccc5378b25b"
        ),
        sample!("noise-lossy", "bb7415c36e54c6c153caccf7217bfb387ce29df15e6945839fd92f1a0e191608"),
        sample!("ramp-lossy", "04064e544436b6b86d806ec7c9688c33db30b6a7903026ee5b1a9a9ba4f7ebf5"),
        sample!("ramp-alpha", "8922828366f69d4b49b05869d3355c163251b9f432a8200e95b9dc1dab6b59bc"),
        sample!(
            "ramp-lossless",
            "42bf19d2cf7c8c850c3449a0a93fd9e19e6408420d547d13be68ee0fda683b43"
        ),
    ];

    fn texels(bytes: &[u8]) -> Result<(usize, Vec<u8>), String> {
        let header = header(bytes, 16_384)?;
        let mut texels = vec![0; 4 * (header.width * header.height) as usize];
        decode(bytes, &header, TexelFormat::Rgba8Srgb, &mut texels)?;
        Ok((header.width as usize, texels))
    }

    /// The file with another number at some place.
    fn with(bytes: &[u8], at: usize, value: &[u8]) -> Vec<u8> {
        let mut bytes = bytes.to_vec();
        bytes[at..at + value.len()].copy_from_slice(value);
        bytes
    }

    #[test]
    fn texels_are_the_same_bits_on_every_machine() {
        for (name, bytes, hash) in SAMPLES {
            let (_, texels) = texels(bytes).unwrap();
            assert_eq!(blake3::hash(&texels).to_hex().as_str(), hash, "{name}");
        }
    }

    #[test]
    fn decoded_ramps_match_their_source() {
        for (name, bytes, _) in &SAMPLES[2..] {
            let (width, texels) = texels(bytes).unwrap();
            assert_eq!((width, texels.len()), (35, 4 * 35 * 29), "{name}");
            let far = if name.contains("lossless") { 0 } else { 12 };
            for (index, texel) in texels.chunks_exact(4).enumerate() {
                let (x, y) = (index % width, index / width);
                let alpha = if *name == "ramp-lossy" { 255 } else { 255 - 6 * x };
                let want = [7 * x, 8 * y, 128, alpha];
                let near = texel
                    .iter()
                    .zip(want)
                    .all(|(texel, want)| usize::from(*texel).abs_diff(want) <= far);
                assert!(near, "{name} at ({x}, {y}): {texel:?}, not {want:?}");
            }
        }
    }

    #[test]
    fn inconsistent_sizes_are_refused_before_allocation() {
        let [.., (_, alpha, _), (_, lossless, _)] = SAMPLES;
        assert_eq!((size(alpha), size(lossless)), (Ok((35, 29)), Ok((35, 29))));
        // The canvas of the extended file, then the picture inside, then the lossless one.
        assert!(size(&with(alpha, 24, &[255, 255, 255])).unwrap_err().contains("another size"));
        let at = alpha.windows(3).position(|bytes| bytes == [0x9d, 0x01, 0x2a]).unwrap() + 3;
        assert!(size(&with(alpha, at, &[255, 63, 255, 63])).unwrap_err().contains("another size"));
        assert_eq!(size(&with(lossless, 21, &[255; 4])), Ok((16_384, 16_384)));
        assert!(texels(&with(lossless, 21, &[255; 4])).is_err());
        let (_, lossy, _) = SAMPLES[2];
        assert!(texels(&with(lossy, 26, &[0, 0])).unwrap_err().contains("0x29"));
        assert!(header(lossy, 34).unwrap_err().contains("35x29"));
    }

    #[test]
    fn an_animation_is_refused() {
        let (_, alpha, _) = SAMPLES[3];
        assert!(size(&with(alpha, 20, &[ANIMATION_FLAG])).unwrap_err().contains("animation"));
    }

    #[test]
    fn broken_files_give_an_error_and_never_a_panic() {
        for (name, bytes, _) in SAMPLES {
            for length in 0..bytes.len() {
                // What is cut short by a few bytes may still show everything.
                let shown = texels(&bytes[..length]);
                assert!(shown.is_err() || length + 8 > bytes.len(), "{name} cut to {length}");
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
