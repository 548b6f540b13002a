//! The path tracer through cudarc: the sums that the host build gives, on any number of devices.

use crate::fixture::on;
use std::path::Path;
use std::sync::Arc;
use tessera_fake_cuda::{Config, Device};
use tessera_kernels::CheckedScene;
use tessera_kernels::cuda::{DeviceShape, KernelSet, Plan, SceneImage, render_unit, upload};
use tessera_kernels::host::{self, RayCounts, best_isa};
use tessera_scenes::{FlattenOptions, LoadOptions};
use tessera_support::gpu::Gpu;

const EDGE: u32 = 16;

fn scene() -> CheckedScene {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenes/library");
    let loaded = tessera_scenes::load(&folder, "cornell-box.gltf", &LoadOptions::default())
        .expect("a scene");
    let flat = loaded.flatten(&FlattenOptions::still(EDGE, EDGE)).expect("a flat scene");
    CheckedScene::new(Arc::new(flat)).expect("a checked scene")
}

fn unit() -> tessera_layout::UnitParams {
    tessera_layout::UnitParams {
        frame_width: EDGE,
        frame_height: EDGE,
        width: EDGE,
        height: EDGE,
        sample_count: 2,
        seed: 5,
        depth: 3,
        aovs: 15,
        filter: 1,
        frame: 1,
        ..tessera_layout::UnitParams::default()
    }
}

fn on_host() -> (Vec<i64>, RayCounts) {
    let (scene, unit) = (scene(), unit());
    let mut film = vec![0; (unit.channels() * EDGE * EDGE) as usize];
    let mut counts = RayCounts::default();
    host::render_unit(best_isa(), &scene, &unit, &mut film, &mut counts).expect("the host renders");
    (film, counts)
}

/// Renders the unit on a device with so many paths in flight; the sums, and the free bytes before
/// and after.
fn on_device(ordinal: usize, paths: u32) -> ((Vec<i64>, RayCounts), [usize; 2]) {
    let mut gpu = Gpu::open(ordinal, KernelSet::Plain.ptx()).expect("a device");
    let before = gpu.context.mem_get_info().expect("memory is known").0;
    let image = SceneImage::of(&scene());
    let (address, view) = upload(&mut gpu, &image).expect("the scene fits");
    let shape = DeviceShape { multiprocessors: 4, threads_per_multiprocessor: 1536 };
    let plan = Plan::new(&unit(), &shape, paths).expect("a plan");
    let result = render_unit(&mut gpu, &view, &plan).expect("the device renders");
    tessera_kernels::cuda::Queue::release(&mut gpu, address);
    let after = gpu.context.mem_get_info().expect("memory is known").0;
    (result, [before, after])
}

#[test]
fn a_cudarc_program_gives_the_sums_of_the_host() {
    let config = Config::of(2, Device::default());
    let rack = on("picture::a_cudarc_program_gives_the_sums_of_the_host", &config, || {
        let want = on_host();
        assert!(want.0.iter().any(|sum| *sum != 0), "the picture is black");
        for ordinal in 0..2 {
            let (found, free) = on_device(ordinal, 1 << 20);
            assert!(found == want, "device {ordinal} gives other sums");
            assert_eq!(free[0], free[1], "memory was lost");
        }
    });
    let Some(rack) = rack else { return };
    let counts = rack.counts(0);
    assert!(counts.launches > 0 && counts.steps > 0 && counts.used_bytes == 0, "{counts:?}");
    assert_eq!(counts.steps, rack.counts(1).steps);
}
