//! The device's image, executed: both shapes and any number of paths in flight give the host's film
//! and counts, and leave no memory behind. The whole proof (more scenes, every function) stands in
//! `tests/ptx`.

use crate::builds::same_bits::{everything, varied};
use crate::geometry::instances::with_instances;
use std::sync::Arc;
use tessera_kernels::cuda::{self, DeviceShape, Kernel, KernelSet, Plan, Queue, SceneImage, Shape};
use tessera_kernels::host::best_isa;
use tessera_layout::UnitParams;
use tessera_ptx::{Limits, LoadedModule, Machine, Module, Settings};
use tessera_support::builder::*;
use tessera_support::panes::greenhouse;

/// A stream whose device is the interpreter.
struct Interpreter {
    machine: Machine,
    module: LoadedModule,
}

impl Interpreter {
    fn new(set: KernelSet) -> Self {
        let module = Arc::new(Module::parse(set.ptx()).unwrap());
        let mut machine = Machine::new(Settings::default());
        let module = machine.load(&module).unwrap();
        Self { machine, module }
    }
}

impl Queue for Interpreter {
    type Error = String;

    fn allocate(&mut self, bytes: u64) -> Result<u64, String> {
        self.machine.allocate(bytes).map_err(|error| error.to_string())
    }

    fn release(&mut self, address: u64) {
        self.machine.free(address).unwrap();
    }

    fn upload(&mut self, address: u64, bytes: &[u8]) -> Result<(), String> {
        self.machine.write(address, bytes).map_err(|error| error.to_string())
    }

    fn zero(&mut self, address: u64, bytes: u64) -> Result<(), String> {
        self.machine.fill(address, 0, bytes).map_err(|error| error.to_string())
    }

    fn launch(
        &mut self,
        kernel: Kernel,
        grid: u32,
        block: u32,
        params: &[u8],
    ) -> Result<(), String> {
        let limits = Limits::default();
        let result = self.machine.launch(
            &self.module,
            kernel.name(),
            [grid, 1, 1],
            [block, 1, 1],
            0,
            params,
            &limits,
        );
        result.map(|_| ()).map_err(|error| error.to_string())
    }

    fn download(&mut self, address: u64, bytes: &mut [u8]) -> Result<(), String> {
        self.machine.read(address, bytes).map_err(|error| error.to_string())
    }
}

const DEVICE: DeviceShape = DeviceShape { multiprocessors: 1, threads_per_multiprocessor: 256 };

fn small() -> UnitParams {
    UnitParams {
        frame_width: 40,
        frame_height: 40,
        x: 10,
        y: 12,
        width: 19,
        height: 17,
        first_sample: 3,
        sample_count: 4,
        ..everything()
    }
}

#[test]
fn both_shapes_give_the_hosts_film() {
    let scene = varied();
    let image = SceneImage::of(&scene);
    let mut queue = Interpreter::new(KernelSet::Plain);
    let free = queue.machine.free_bytes();
    let (address, on_device) = cuda::upload(&mut queue, &image).unwrap();
    for unit in [
        small(),
        UnitParams { aovs: 0, depth: 1, width: 16, height: 20, ..small() },
        UnitParams { depth: 0, ..small() },
    ] {
        let (film, counts) = sums(best_isa(), &scene, &unit);
        for (shape, paths) in
            [(Shape::Compact, 1 << 20), (Shape::Staged, 1024), (Shape::Staged, 1 << 20)]
        {
            let plan = Plan::new(&unit, &DEVICE, paths).unwrap().in_shape(shape);
            let (made, made_counts) = cuda::render_unit(&mut queue, &on_device, &plan).unwrap();
            assert_eq!(made_counts, counts, "{shape:?}, {paths} paths in flight");
            assert!(made == film, "{shape:?}, {paths} paths in flight");
        }
    }
    queue.release(address);
    assert_eq!(queue.machine.free_bytes(), free);
}

#[test]
fn a_scene_with_instances_gives_the_hosts_film() {
    let scene = with_instances();
    let unit = UnitParams { width: 12, height: 14, sample_count: 2, ..small() };
    let mut queue = Interpreter::new(KernelSet::Instances);
    let (_, on_device) = cuda::upload(&mut queue, &SceneImage::of(&scene)).unwrap();
    let plan = Plan::new(&unit, &DEVICE, 1 << 20).unwrap().in_shape(Shape::Staged);
    let made = cuda::render_unit(&mut queue, &on_device, &plan).unwrap();
    assert_eq!(made, sums(best_isa(), &scene, &unit));
}

#[test]
fn a_scene_with_panes_gives_the_hosts_film() {
    let scene = greenhouse();
    let unit = UnitParams { clamp: 4.0, depth: 3, ..whole(16, 12, 4, 3) };
    let mut queue = Interpreter::new(KernelSet::Plain);
    let (_, on_device) = cuda::upload(&mut queue, &SceneImage::of(&scene)).unwrap();
    for shape in [Shape::Compact, Shape::Staged] {
        let plan = Plan::new(&unit, &DEVICE, 1 << 20).unwrap().in_shape(shape);
        let made = cuda::render_unit(&mut queue, &on_device, &plan).unwrap();
        assert_eq!(made, sums(best_isa(), &scene, &unit), "{shape:?}");
    }
}

#[test]
fn a_scene_without_triangles_is_its_environment() {
    let mut builder = Builder::default();
    builder.constant([0.25, 0.5, 1.0]);
    let scene = builder.finish();
    let mut queue = Interpreter::new(KernelSet::Plain);
    let (_, on_device) = cuda::upload(&mut queue, &SceneImage::of(&scene)).unwrap();
    let unit = whole(8, 8, 2, 3);
    let plan = Plan::new(&unit, &DEVICE, 1 << 20).unwrap().in_shape(Shape::Staged);
    let made = cuda::render_unit(&mut queue, &on_device, &plan).unwrap();
    assert_eq!(made, sums(best_isa(), &scene, &unit));
}

#[test]
fn a_plan_fits_what_it_says() {
    let unit =
        UnitParams { width: 40, height: 40, x: 0, y: 0, aovs: 0, sample_count: 64, ..small() };
    let plan = |paths, unit: &UnitParams| Plan::new(unit, &DEVICE, paths).unwrap();
    assert_eq!(plan(1 << 20, &small()).shape(), Shape::Compact);
    let large = plan(1 << 20, &unit);
    assert_eq!((large.shape(), large.paths_in_flight()), (Shape::Staged, 40 * 40 * 64));
    for (aovs, bytes) in [(0, 140), (15, 188)] {
        let plan = plan(1 << 20, &UnitParams { aovs, ..unit });
        assert_eq!(plan.path_bytes(), bytes);
        let paths = u64::from(plan.paths_in_flight()) * bytes;
        let rest = plan.workspace_bytes() - plan.counts_offset() - paths;
        assert!(rest < 8192, "{rest} bytes for the counts and for alignment");
    }
    assert!(plan(1 << 14, &unit).workspace_bytes() < large.workspace_bytes() / 5);
    assert!(Plan::new(&UnitParams { x: 1 << 20, ..unit }, &DEVICE, 1024).is_err());
}
