//! Decodes `.hdr` (Radiance RGBE) and `.exr` files to linear radiance, within limits that are
//! checked on the header. Does not sample.

use exr::prelude::{MetaData, ReadChannels, ReadLayers, read};
use image::codecs::hdr::HdrDecoder;
use image::{DynamicImage, ImageDecoder};
use std::io::Cursor;
use tessera_layout::FILM_VALUE_MAX;

/// First bytes of an OpenEXR file.
const EXR_MAGIC: [u8; 4] = [0x76, 0x2f, 0x31, 0x01];
/// First bytes of a Radiance file: `#?RADIANCE` or `#?RGBE`.
const HDR_MAGIC: &[u8] = b"#?";
/// Largest edge of a map.
const EDGE_MAX: u64 = 1 << 16;

/// A decoded map.
#[derive(Debug)]
pub(crate) struct Map {
    pub(crate) width: u32,
    pub(crate) height: u32,
    /// Finite values >= 0, with rows from the top.
    pub(crate) texels: Vec<[f32; 3]>,
    /// Number of values that were not finite or negative.
    pub(crate) repaired: usize,
}

/// Most channels of an OpenEXR file. Channels other than red, green and blue are unpacked without
/// use.
const CHANNELS_MAX: usize = 64;

/// Sizes in a map's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MapSize {
    pub(crate) texels: u64,
    /// Bytes of the file's whole content after unpacking.
    pub(crate) file_bytes: u64,
}

/// Reads only a map's header. The error says what is wrong and what to do.
pub(crate) fn size(bytes: &[u8], texels_max: u64) -> Result<MapSize, String> {
    if bytes.starts_with(&EXR_MAGIC) {
        return exr_size(bytes, texels_max);
    }
    if !bytes.starts_with(HDR_MAGIC) {
        return Err("it is neither Radiance HDR nor OpenEXR; convert it".into());
    }
    let decoder = hdr_decoder(bytes)?;
    let (width, height) = decoder.dimensions();
    let (width, height) = check_size(width.into(), height.into(), texels_max)?;
    let texels = u64::from(width) * u64::from(height);
    Ok(MapSize { texels, file_bytes: 4 * texels })
}

/// Decodes a map, whose format is recognised by its first bytes. The error says what is wrong and
/// what to do.
pub(crate) fn decode(bytes: &[u8], texels_max: u64) -> Result<Map, String> {
    let (width, height, mut texels) = if bytes.starts_with(&EXR_MAGIC) {
        decode_exr(bytes, texels_max)?
    } else if bytes.starts_with(HDR_MAGIC) {
        decode_hdr(bytes, texels_max)?
    } else {
        return Err("it is neither Radiance HDR nor OpenEXR; convert it".into());
    };
    let mut repaired = 0;
    for value in texels.iter_mut().flatten() {
        if !(*value >= 0.0 && value.is_finite()) {
            // Half floats overflow to infinity in a bright sun. NaN and negative values become 0.
            *value = if *value > 0.0 { FILM_VALUE_MAX } else { 0.0 };
            repaired += 1;
        }
    }
    Ok(Map { width, height, texels, repaired })
}

fn check_size(width: u64, height: u64, texels_max: u64) -> Result<(u32, u32), String> {
    let edges = 1..=EDGE_MAX;
    if edges.contains(&width) && edges.contains(&height) && width * height <= texels_max {
        return Ok((width as u32, height as u32));
    }
    Err(format!("{width}x{height} texels are not in 1 to {texels_max}; resize it"))
}

type Pixels = (u32, u32, Vec<[f32; 3]>);

fn decode_hdr(bytes: &[u8], texels_max: u64) -> Result<Pixels, String> {
    let decoder = hdr_decoder(bytes)?;
    let (width, height) = decoder.dimensions();
    let (width, height) = check_size(width.into(), height.into(), texels_max)?;
    check_rows(bytes, (width as usize, height as usize))?;
    let values =
        DynamicImage::from_decoder(decoder).map_err(cannot_decode)?.into_rgb32f().into_raw();
    Ok((
        width,
        height,
        values.chunks_exact(3).map(|texel| [texel[0], texel[1], texel[2]]).collect(),
    ))
}

/// Checks that every row has the picture's width, as far as the bytes go. The decoder believes the
/// picture and not the row.
fn check_rows(bytes: &[u8], (width, height): (usize, usize)) -> Result<(), String> {
    let mut file = Cursor::new(bytes);
    drop(HdrDecoder::new_nonstrict(&mut file).map_err(cannot_decode)?);
    let mut rest = &bytes[file.position() as usize..];
    for row in 0..height {
        let Some((first, after)) = rest.split_first_chunk::<4>() else { return Ok(()) };
        let told = match *first {
            [2, 2, high @ 0..128, low] => {
                let told = usize::from(high) << 8 | usize::from(low);
                rest = match after_planes(after, width) {
                    Some(after) => after,
                    None if told == width => return Ok(()),
                    None => after,
                };
                told
            }
            _ => {
                let (told, after) = old_row(after, width);
                rest = after;
                told
            }
        };
        if told != width {
            return Err(format!(
                "row {row} has {told} texels, but the picture is {width} wide; write it again"
            ));
        }
    }
    Ok(())
}

/// Skips the four components of a row, each as runs. Returns None if the bytes end before.
fn after_planes(mut rest: &[u8], width: usize) -> Option<&[u8]> {
    for _ in 0..4 {
        let mut have = 0;
        while have < width {
            let (&length, after) = rest.split_first()?;
            let (texels, bytes) = if length > 128 { (length - 128, 1) } else { (length, length) };
            rest = after.get(usize::from(bytes)..)?;
            have += usize::from(texels);
        }
    }
    Some(rest)
}

/// Skips the rest of a row of single texels and repeats of them, after its first texel. Returns its
/// texels; a row that is cut off has as many as it should.
fn old_row(mut rest: &[u8], width: usize) -> (usize, &[u8]) {
    let (mut have, mut shift) = (1usize, 0);
    while have < width {
        let Some((texel, after)) = rest.split_first_chunk::<4>() else { return (width, &[]) };
        rest = after;
        match *texel {
            [1, 1, 1, count] if shift < usize::BITS => {
                have = have.saturating_add(usize::from(count) << shift);
                shift += 8;
            }
            [1, 1, 1, _] => {}
            _ => (have, shift) = (have + 1, 0),
        }
    }
    (have, rest)
}

fn hdr_decoder(bytes: &[u8]) -> Result<HdrDecoder<Cursor<&[u8]>>, String> {
    HdrDecoder::new_nonstrict(Cursor::new(bytes)).map_err(cannot_decode)
}

fn cannot_decode(error: impl std::fmt::Display) -> String {
    format!("it cannot be decoded ({error}); write it again")
}

/// Returns the size of the largest layer, and the bytes of all layers together.
fn exr_size(bytes: &[u8], texels_max: u64) -> Result<MapSize, String> {
    let meta = MetaData::read_from_buffered(Cursor::new(bytes), false).map_err(cannot_decode)?;
    let mut size = MapSize { texels: 0, file_bytes: 0 };
    for header in &meta.headers {
        let (width, height) =
            check_size(header.layer_size.0 as u64, header.layer_size.1 as u64, texels_max)?;
        let channels = &header.channels.list;
        if channels.len() > CHANNELS_MAX {
            let count = channels.len();
            return Err(format!(
                "it has {count} channels, more than {CHANNELS_MAX}; write only red, green and blue"
            ));
        }
        let texels = u64::from(width) * u64::from(height);
        let texel: u64 =
            channels.iter().map(|channel| channel.sample_type.bytes_per_sample() as u64).sum();
        size.texels = size.texels.max(texels);
        size.file_bytes = size.file_bytes.saturating_add(texels.saturating_mul(texel));
    }
    Ok(size)
}

fn decode_exr(bytes: &[u8], texels_max: u64) -> Result<Pixels, String> {
    exr_size(bytes, texels_max)?;
    let image = read()
        .no_deep_data()
        .largest_resolution_level()
        .rgb_channels(
            |size, _| (size.0, vec![[0.0f32; 3]; size.0 * size.1]),
            |(width, texels): &mut (usize, Vec<[f32; 3]>), at, (r, g, b): (f32, f32, f32)| {
                if let Some(texel) = texels.get_mut(at.1 * *width + at.0) {
                    *texel = [r, g, b];
                }
            },
        )
        .first_valid_layer()
        .all_attributes()
        .from_buffered(Cursor::new(bytes))
        .map_err(cannot_decode)?;
    let size = image.layer_data.size;
    let (width, height) = check_size(size.0 as u64, size.1 as u64, texels_max)?;
    Ok((width, height, image.layer_data.channel_data.pixels.1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use exr::prelude::write_rgb_file;

    #[test]
    fn an_exr_keeps_its_rows_and_drops_invalid_radiance() {
        let dir = std::env::temp_dir().join(format!("tessera-exr-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let file = dir.join("map.exr");
        write_rgb_file(&file, 2, 2, |x, y| match (x, y) {
            (0, 0) => (1.0f32, 2.0f32, 3.0f32),
            (1, 0) => (-1.0, f32::NAN, f32::INFINITY),
            _ => (0.5, 0.5, y as f32),
        })
        .unwrap();
        let map = decode(&std::fs::read(&file).unwrap(), 4).unwrap();
        assert_eq!((map.width, map.height, map.repaired), (2, 2, 3));
        assert_eq!(map.texels[0], [1.0, 2.0, 3.0]);
        assert_eq!(map.texels[1], [0.0, 0.0, FILM_VALUE_MAX]);
        assert_eq!(map.texels[2], [0.5, 0.5, 1.0]);
        assert!(decode(&std::fs::read(&file).unwrap(), 3).is_err());
        std::fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn rows_have_the_width_of_their_picture() {
        let file = |rows: &[u8]| [b"#?RADIANCE\n\n-Y 1 +X 8\n", rows].concat();
        // Eight equal texels, each component as one run.
        let row = |told: u8| {
            let planes = [128, 128, 128, 129].map(|value| [128 + 8, value]);
            [&[2, 2, 0, told], planes.as_flattened()].concat()
        };
        assert_eq!(decode(&file(&row(8)), 8).unwrap().texels, [[1.0; 3]; 8]);
        for told in [7, 9, 0] {
            let error = decode(&file(&row(told)), 8).unwrap_err();
            assert!(error.contains(&format!("row 0 has {told} texels")), "{error}");
        }
        // The older encoding repeats a texel so often.
        let old = |count: u8| file(&[128, 128, 128, 129, 1, 1, 1, count]);
        assert_eq!(decode(&old(7), 8).unwrap().texels, [[1.0; 3]; 8]);
        assert!(decode(&old(8), 8).unwrap_err().contains("row 0 has 9 texels"));
        assert!(decode(&old(6), 8).unwrap_err().contains("cannot be decoded"));
        let long = [&[1u8; 4][..], &[1, 1, 1, 255].repeat(20)].concat();
        assert!(decode(&file(&long), 8).is_err());
    }

    #[test]
    fn a_radiance_file_without_run_lengths_is_read() {
        let mut bytes = b"#?RADIANCE\nFORMAT=32-bit_rle_rgbe\n\n-Y 1 +X 2\n".to_vec();
        bytes.extend([128, 64, 0, 129, 255, 255, 255, 128]);
        let map = decode(&bytes, 2).unwrap();
        assert_eq!(map.texels, [[1.0, 0.5, 0.0], [255.0 / 256.0; 3]]);
        assert!(decode(&bytes, 1).is_err());
        assert!(decode(b"GIF89a", 9).unwrap_err().contains("neither"));
    }
}
