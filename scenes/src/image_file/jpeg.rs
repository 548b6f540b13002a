//! Decodes JPEG files to RGBA texels, with integer arithmetic whose code is the same on every
//! processor. Owns no limits.
//!
//! `zune-jpeg` has vector code for the transform, the upsampling and the colours, and chooses it by
//! the processor. Our build excludes it by feature flags (docs/decisions/0002-dependencies.md),
//! because texels must not depend on the machine that decodes them.

use zune_jpeg::JpegDecoder;
use zune_jpeg::errors::DecodeErrors;
use zune_jpeg::zune_core::bytestream::ZCursor;
use zune_jpeg::zune_core::colorspace::ColorSpace;
use zune_jpeg::zune_core::options::DecoderOptions;

/// Largest edge that the format allows.
const EDGE_MAX: usize = 65_535;

type Decoder<'a> = JpegDecoder<ZCursor<&'a [u8]>>;

/// Width and height, read without decoding. The error says what is wrong and what to do.
pub(crate) fn size(bytes: &[u8]) -> Result<(u32, u32), String> {
    open(bytes).map(|(_, size)| size)
}

/// Decodes into `target`, four bytes per texel, opaque. The caller has checked [`size`] and
/// allocated `target` for it.
pub(crate) fn decode(bytes: &[u8], target: &mut [u8]) -> Result<(), String> {
    let (mut decoder, (width, height)) = open(bytes)?;
    let grey = decoder.input_colorspace() == Some(ColorSpace::Luma);
    let space = if grey { ColorSpace::Luma } else { ColorSpace::RGB };
    decoder.set_options(options().jpeg_set_out_colorspace(space));
    let pixels = decoder.decode().map_err(cannot_decode)?;
    let components = if grey { 1 } else { 3 };
    let count = width as usize * height as usize;
    if pixels.len() != components * count || target.len() != 4 * count {
        return Err("its size is not what its header says; write it again".into());
    }
    for (texel, pixel) in target.chunks_exact_mut(4).zip(pixels.chunks_exact(components)) {
        let color = if grey { [pixel[0]; 3] } else { [pixel[0], pixel[1], pixel[2]] };
        texel[..3].copy_from_slice(&color);
        texel[3] = 255;
    }
    Ok(())
}

fn open(bytes: &[u8]) -> Result<(Decoder<'_>, (u32, u32)), String> {
    let mut decoder = JpegDecoder::new_with_options(ZCursor::new(bytes), options());
    decoder.decode_headers().map_err(cannot_decode)?;
    let size = decoder
        .dimensions()
        .and_then(|(w, h)| Some((u32::try_from(w).ok()?, u32::try_from(h).ok()?)));
    let size = size.ok_or("its header has no size; write it again")?;
    Ok((decoder, size))
}

fn options() -> DecoderOptions {
    // A file that is cut short or slightly wrong still gives a picture, as in other programs.
    DecoderOptions::default()
        .set_strict_mode(false)
        .set_max_width(EDGE_MAX)
        .set_max_height(EDGE_MAX)
}

fn cannot_decode(error: DecodeErrors) -> String {
    format!("it cannot be decoded ({error:?}); write it again")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file, its width, and the BLAKE3 hash of its texels. `ramp` files show (7 x, 8 y, 128), the
    /// grey one 7 x.
    type Sample = (&'static str, &'static [u8], usize, &'static str);

    macro_rules! sample {
        ($name:literal, $width:literal, $hash:literal) => {
            ($name, include_bytes!(concat!("../../tests/images/", $name, ".jpg")), $width, $hash)
        };
    }

    const SAMPLES: [Sample; 5] = [
        sample!("ramp-420", 35, "06b9d992a78f3c94f6805756f55adac551cb9d32402881b4842d63bc894a98ef"),
        sample!(
            "ramp-422-progressive",
            35,
            "cbc865962f05bf9bb297a9c7085f82a292c995957901dd2f0097b3c539efbfa5"
        ),
        sample!(
            "ramp-grey",
            35,
            "b894d1dbbc17a6f69b74e9ab6946fde4c2da6b1c99658b8ad46e21673320661f"
        ),
        sample!(
            "noise-420",
            45,
            "32a936ea474b008a91026e45d4168f04465ac6bad5c005c29c6e3fe6ac9b04bf"
        ),
        sample!(
            "noise-444-progressive",
            45,
            "7749981f2efa4d695a5d30aa4ab97f64d1160d5aa8242947b8ee9f1aa91f19c9"
        ),
    ];

    fn texels(bytes: &[u8]) -> (usize, Vec<u8>) {
        let (width, height) = size(bytes).unwrap();
        let mut texels = vec![0; 4 * (width * height) as usize];
        decode(bytes, &mut texels).unwrap();
        (width as usize, texels)
    }

    #[test]
    fn texels_are_the_same_bits_on_every_machine() {
        for (name, bytes, width, hash) in SAMPLES {
            let (found, texels) = texels(bytes);
            assert_eq!((found, texels.len() % (4 * width)), (width, 0), "{name}");
            assert_eq!(blake3::hash(&texels).to_hex().as_str(), hash, "{name}");
        }
    }

    #[test]
    fn decoded_ramps_match_their_source() {
        for (name, bytes, width, _) in &SAMPLES[..3] {
            for (index, texel) in texels(bytes).1.chunks_exact(4).enumerate() {
                let (x, y) = (index % width, index / width);
                let want = if name.contains("grey") { [7 * x; 3] } else { [7 * x, 8 * y, 128] };
                let near = texel
                    .iter()
                    .zip(want)
                    .all(|(texel, want)| usize::from(*texel).abs_diff(want) <= 12);
                assert!(near && texel[3] == 255, "{name} at ({x}, {y}): {texel:?}, not {want:?}");
            }
        }
    }

    #[test]
    fn broken_files_give_an_error_and_never_a_panic() {
        assert!(size(b"\xff\xd8\xff").is_err() && size(b"").is_err());
        for (name, bytes, ..) in SAMPLES {
            let (_, whole) = texels(bytes);
            assert!(decode(bytes, &mut vec![0; whole.len() - 4]).is_err(), "{name}");
            for length in 0..bytes.len() {
                // A file that is cut short may still give a picture. Its size is then the one in
                // its header.
                let mut texels = vec![0; whole.len()];
                let _ = size(&bytes[..length]).and_then(|_| decode(&bytes[..length], &mut texels));
            }
        }
    }
}
