//! Files of parts of a frame: the bits of the whole, with and without the denoiser, and the windows
//! that say where they lie.

use super::tests::{Bench, read_exr};
use super::*;
use std::collections::BTreeMap;
use tessera_protocol::job::{AovSpec, CropSpec, RenderSpec, Window};
use tessera_protocol::{TileSums, UnitIndex};

/// A frame of one pass, whose noise the denoiser removes.
fn spec(denoise: bool, tile: u32) -> RenderSpec {
    let aovs = vec![AovSpec::Normal, AovSpec::Position];
    RenderSpec { aovs, denoise, ..super::tests::spec(150, 130, tile, 8, 8) }
}

fn with_crop(spec: &RenderSpec, crop: Option<[u32; 4]>, overscan: u32) -> RenderSpec {
    let crop = crop.map(|[x, y, width, height]| CropSpec { x, y, width, height });
    RenderSpec { crop, overscan, ..spec.clone() }
}

/// Returns a made-up sum of a pixel, within the frame or beyond it.
fn sum(channel: u32, x: i32, y: i32) -> i64 {
    let seed = u64::from(channel) << 40 ^ (x as u64 & 0xffff) << 20 ^ (y as u64 & 0xffff);
    let noise = (seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 42) as i64;
    i64::from(x.div_euclid(40) + 9) * (1 << 23) + noise * 8
}

fn bench(spec: &RenderSpec) -> Bench {
    let grid = Grid::of(spec);
    let film = |unit: u32| {
        let (rect, samples) = grid.unit(UnitIndex(unit)).unwrap();
        let window = grid.tile_window(grid.tile_and_pass(UnitIndex(unit)).0).unwrap();
        let mut film = TileSums::empty(rect.width as u16, rect.height as u16, spec.channels());
        film.samples = samples.count;
        let places = (0..u32::from(spec.channels())).flat_map(|channel| {
            (window.top..window.bottom)
                .flat_map(move |y| (window.left..window.right).map(move |x| (channel, x, y)))
        });
        film.values.iter_mut().zip(places).for_each(|(value, (c, x, y))| *value = sum(c, x, y));
        (unit, film)
    };
    Bench::of_films((0..grid.units()).map(film).collect())
}

/// The bits of each channel by place in the frame, and the display window of the file.
type Pixels = BTreeMap<(i32, i32), Vec<(String, u32)>>;

fn resolved(spec: &RenderSpec) -> Pixels {
    let bench = bench(spec);
    let files = bench.resolve_in_rounds(spec, None).unwrap();
    let data = spec.data_window();
    let meta = exr::meta::MetaData::read_from_buffered(bench.open(&files[0]), true).unwrap();
    let header = &meta.headers[0];
    assert_eq!(header.shared_attributes.display_window.position, exr::prelude::Vec2(0, 0));
    assert_eq!(header.shared_attributes.display_window.size, exr::prelude::Vec2(150, 130));
    let found = (header.own_attributes.layer_position, header.layer_size);
    assert_eq!((found.0.0, found.0.1), (data.left, data.top));
    assert_eq!((found.1.0 as u32, found.1.1 as u32), (data.width(), data.height()));
    let png = png::Decoder::new(bench.open(&files[1])).read_info().unwrap();
    assert_eq!((png.info().width, png.info().height), (data.width(), data.height()));
    let (_, channels) = read_exr(bench.open(&files[0]));
    let places = (data.top..data.bottom).flat_map(|y| (data.left..data.right).map(move |x| (x, y)));
    let pixel = |index: usize| {
        channels.iter().map(|(name, values)| (name.clone(), values[index].to_bits())).collect()
    };
    places.enumerate().map(|(index, place)| (place, pixel(index))).collect()
}

fn assert_part(part: &RenderSpec, whole: &Pixels) {
    let found = resolved(part);
    let Window { left, top, right, bottom } = part.data_window();
    assert_eq!(found.len(), ((right - left) * (bottom - top)) as usize);
    for (place, bits) in found {
        assert_eq!(Some(&bits), whole.get(&place), "{place:?} of {part:?}");
    }
}

#[test]
fn crops_have_the_pixels_of_the_whole_frame() {
    for denoise in [false, true] {
        let whole = resolved(&spec(denoise, 64));
        for tile in [16, 64, 100] {
            let spec = spec(denoise, tile);
            for crop in [[0, 0, 70, 61], [70, 61, 80, 69], [50, 50, 1, 1], [149, 3, 1, 127]] {
                assert_part(&with_crop(&spec, Some(crop), 0), &whole);
            }
            // The overscan of these ends at the frame's edges.
            assert_part(&with_crop(&spec, Some([9, 20, 100, 30]), 9), &whole);
        }
    }
}

#[test]
fn overscan_does_not_change_the_frame() {
    for denoise in [false, true] {
        let whole = resolved(&spec(denoise, 64));
        let wide = resolved(&with_crop(&spec(denoise, 64), None, 20));
        for (place, bits) in &whole {
            assert_eq!(Some(bits), wide.get(place), "{place:?}");
        }
        let spec = spec(denoise, 32);
        assert_part(&with_crop(&spec, None, 7), &wide);
        for crop in [[0, 0, 5, 5], [140, 60, 10, 9], [30, 129, 90, 1]] {
            assert_part(&with_crop(&spec, Some(crop), 20), &wide);
            assert_part(&with_crop(&spec, Some(crop), 3), &wide);
        }
    }
}
