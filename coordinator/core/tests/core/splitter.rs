//! The splitter: every sample of every pixel is in exactly one unit, whatever the spec, and units
//! have a sensible size.

use tessera_core::Grid;
use tessera_core::splitter::{FRAME_UNITS_WANTED, UNIT_CAMERA_SAMPLES, UNIT_CAMERA_SAMPLES_LEAST};
use tessera_protocol::UnitIndex;
use tessera_protocol::job::{CropSpec, RenderSpec};
use tessera_support::inputs;

fn spec((width, height): (u32, u32), spp: u32, tile: u32, unit_samples: u32) -> RenderSpec {
    RenderSpec { width, height, spp, tile, unit_samples, ..inputs::render() }
}

#[test]
fn every_sample_of_every_pixel_is_in_one_unit() {
    for (size, spp, tile, unit_samples) in [
        ((1, 1), 1, 8, 0),
        ((37, 23), 7, 8, 3),
        ((64, 48), 64, 16, 1),
        ((100, 9), 1000, 64, 0),
        ((33, 17), 5, 512, 5),
    ] {
        let spec = spec(size, spp, tile, unit_samples);
        check_cover(&spec);
        check_cover(&RenderSpec { noise: Some(0.1), unit_samples: 0, ..spec });
    }
}

fn check_cover(spec: &RenderSpec) {
    let (size, spp) = ((spec.width, spec.height), spec.spp);
    let grid = Grid::of(spec);
    let mut seen = vec![0u8; (size.0 * size.1 * spp) as usize];
    for unit in 0..grid.units() {
        let (rect, samples) = grid.unit(UnitIndex(unit)).expect("a unit of the grid");
        assert_eq!(
            grid.unit_camera_samples(UnitIndex(unit)),
            u64::from(rect.width * rect.height * samples.count)
        );
        for y in rect.y..rect.y + rect.height {
            for x in rect.x..rect.x + rect.width {
                for sample in samples.first..samples.first + samples.count {
                    seen[((y * size.0 + x) * spp + sample) as usize] += 1;
                }
            }
        }
    }
    assert!(seen.iter().all(|count| *count == 1), "{spec:?}");
    assert_eq!(grid.unit(UnitIndex(grid.units())), None);
}

#[test]
fn a_part_of_a_frame_has_only_its_own_units() {
    let whole = spec((100, 70), 7, 16, 2);
    let crop = Some(CropSpec { x: 20, y: 30, width: 40, height: 9 });
    let parts = [
        // Tiles of columns 1 to 3 and rows 1 and 2.
        (RenderSpec { crop, ..whole.clone() }, 6, 6 * 256),
        (RenderSpec { crop, overscan: 4, ..whole.clone() }, 6, 6 * 256),
        // With 46 more pixels on every side it is the whole frame.
        (RenderSpec { crop, denoise: true, ..whole.clone() }, 35, 7000),
        (RenderSpec { overscan: 3, ..whole.clone() }, 8 * 6, 106 * 76),
    ];
    for (part, tiles, pixels) in parts {
        let grid = Grid::of(&part);
        assert_eq!((grid.tiles(), grid.units()), (tiles, tiles * 4), "{part:?}");
        assert_eq!(grid.frame_camera_samples(), pixels * 7);
        let mut seen = std::collections::BTreeMap::new();
        for tile in 0..tiles {
            let window = grid.tile_window(tile).expect("a tile of the grid");
            for y in window.top..window.bottom {
                (window.left..window.right).for_each(|x| *seen.entry((x, y)).or_insert(0) += 1);
            }
        }
        assert_eq!(seen.len() as u64, pixels, "each pixel once");
        let rendered = part.rendered_window();
        let needed = (rendered.top..rendered.bottom)
            .flat_map(|y| (rendered.left..rendered.right).map(move |x| (x, y)));
        assert!(needed.into_iter().all(|pixel| seen.contains_key(&pixel)));
    }
}

#[test]
fn units_are_neither_too_large_nor_too_many() {
    for (size, spp) in [
        ((512, 512), 128),
        ((512, 512), 8192),
        ((1920, 1080), 64),
        ((3840, 2160), 4),
        ((64, 64), 1_000_000),
    ] {
        let grid = Grid::of(&spec(size, spp, 64, 0));
        let largest = grid.unit_camera_samples(UnitIndex(0));
        assert!(largest <= UNIT_CAMERA_SAMPLES, "{size:?} {spp}: {largest}");
        let more_than_tiles = grid.passes() > 1;
        assert!(
            !more_than_tiles || largest >= UNIT_CAMERA_SAMPLES_LEAST,
            "{size:?} {spp}: {largest}"
        );
        let few = u64::from(grid.units()) < FRAME_UNITS_WANTED / 2;
        assert!(
            !few || largest < 4 * UNIT_CAMERA_SAMPLES_LEAST,
            "{size:?} {spp}: {} units",
            grid.units()
        );
    }
    assert_eq!(Grid::of(&spec((512, 512), 128, 64, 0)).units(), 128);
    assert_eq!(Grid::of(&spec((1920, 1080), 64, 64, 0)).passes(), 1);
}
