//! Tests of the CPU device with the real kernels.

use super::*;
use crate::device::begin;
use crate::test_scene;
use tessera_protocol::TileSums;

fn sums(threads: usize, isa: Isa, unit: tessera_layout::UnitParams) -> TileSums {
    let device = CpuDevice::open(Some(threads), Some(isa)).unwrap();
    begin(&device, &test_scene::frame(), unit).end().unwrap().sums
}

/// Copies `part`, which is at (x, y), into the whole frame.
fn place(frame: &mut TileSums, part: &TileSums, x: usize, y: usize) {
    let (width, height) = (usize::from(part.width), usize::from(part.height));
    for (row, values) in part.values.chunks_exact(width).enumerate() {
        let (channel, row) = (row / height, row % height);
        let start = (channel * usize::from(frame.height) + y + row) * usize::from(frame.width) + x;
        frame.values[start..start + width].copy_from_slice(values);
    }
}

#[test]
fn bits_do_not_depend_on_threads_isa_or_tiling() {
    let whole = sums(1, best_isa(), test_scene::unit(0, 0, 64, 48, 0..40));
    assert_eq!(whole.samples, 40);
    assert!(whole.values.iter().any(|value| *value != 0), "the picture is empty");
    for isa in available_isas() {
        assert_eq!(sums(3, isa, test_scene::unit(0, 0, 64, 48, 0..40)), whole, "{isa}");
    }
    let mut tiled = TileSums::empty(64, 48, 13);
    for (x, y, width, height) in [(0, 0, 23, 48), (23, 0, 41, 17), (23, 17, 41, 31)] {
        let mut tile = TileSums::empty(width as u16, height as u16, 13);
        for samples in [0..1, 1..8, 8..40] {
            tile.add(&sums(2, best_isa(), test_scene::unit(x, y, width, height, samples))).unwrap();
        }
        assert_eq!(tile.samples, 40);
        tiled.samples = tile.samples;
        place(&mut tiled, &tile, x as usize, y as usize);
    }
    assert_eq!(tiled, whole);
}

#[test]
fn a_unit_far_from_its_frame_fails() {
    let device = CpuDevice::open(Some(1), None).unwrap();
    let frame = test_scene::frame();
    let outside = begin(&device, &frame, test_scene::unit(1 << 20, 40, 16, 16, 0..1)).end();
    assert!(matches!(outside, Err(DeviceError::Failed(_))));
    assert_eq!(device.telemetry().samples_per_second, 0.0, "before the first unit");
    assert!(begin(&device, &frame, test_scene::unit(0, 0, 8, 8, 0..1)).end().is_ok());
    assert!(device.telemetry().samples_per_second > 0.0);
    assert!(device.info().parallelism == 1 && device.info().memory_bytes > 0);
}
