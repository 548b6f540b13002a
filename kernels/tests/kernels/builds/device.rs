//! The device's image, executed: both shapes and any number of paths in flight give the host's film
//! and counts, and leave no memory behind. The whole proof (more scenes, every function) stands in
//! `tests/ptx`.

use crate::builds::same_bits::{everything, varied};
use crate::geometry::instances::with_instances;
use std::sync::Arc;
use tessera_kernels::cuda::{
    self, DeviceShape, Kernel, KernelSet, Plan, PlanError, Queue, SceneImage, Shape, UNITS_MAX,
};
use tessera_kernels::host::RayCounts;
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

/// Units of one frame that differ in their tiles and samples.
fn several() -> Vec<UnitParams> {
    let tile = |x, y, width, height| UnitParams { x, y, width, height, ..small() };
    vec![
        small(),
        tile(0, 0, 8, 4),
        UnitParams { first_sample: 7, sample_count: 1, ..tile(0, 4, 16, 8) },
        UnitParams { first_sample: 0, sample_count: 9, ..tile(39, 39, 1, 1) },
        UnitParams { first_sample: 7, sample_count: 5, ..small() },
    ]
}

#[test]
fn units_together_have_the_films_that_they_have_alone() {
    let scene = varied();
    let mut queue = Interpreter::new(KernelSet::Plain);
    let (_, on_device) = cuda::upload(&mut queue, &SceneImage::of(&scene)).unwrap();
    let units = several();
    let alone: Vec<_> = units.iter().map(|unit| sums(best_isa(), &scene, unit)).collect();
    let free = queue.machine.free_bytes();
    let plan = |paths| Plan::of_units(&units, &DEVICE, paths).unwrap();
    let plans = [
        plan(1 << 20).in_shape(Shape::Compact),
        plan(1 << 20).in_shape(Shape::Staged),
        plan(1024).in_shape(Shape::Staged),
        plan(1 << 20).in_waves(),
    ];
    for plan in plans {
        let how = format!("{:?}, {} paths in flight", plan.shape(), plan.paths_in_flight());
        let made = cuda::render_units(&mut queue, &on_device, &plan).unwrap();
        let rays = |of: fn(&RayCounts) -> u64, counts: &mut dyn Iterator<Item = &RayCounts>| {
            counts.map(of).sum::<u64>()
        };
        for of in [|counts: &RayCounts| counts.closest, |counts: &RayCounts| counts.any] {
            let together = rays(of, &mut made.iter().map(|(_, counts)| counts));
            assert_eq!(together, rays(of, &mut alone.iter().map(|(_, counts)| counts)), "{how}");
        }
        for (index, ((film, counts), (want, own))) in made.iter().zip(&alone).enumerate() {
            assert!(film == want, "{how}: unit {index}");
            let dropped = |counts: &RayCounts| (counts.clamped, counts.non_finite);
            assert_eq!(dropped(counts), dropped(own), "{how}: unit {index}");
            let parts = plan.times(1_000_000);
            assert!(parts.iter().sum::<u64>() <= 1_000_000 && parts[0] > parts[3], "{parts:?}");
        }
        assert_eq!(queue.machine.free_bytes(), free, "{how}");
    }
}

#[test]
fn batches_are_eight_times_what_keeps_a_device_busy() {
    let h100 = DeviceShape { multiprocessors: 132, threads_per_multiprocessor: 2048 };
    assert_eq!(h100.paths_in_flight(), 132 * 2048 * 8);
    assert_eq!(h100.batch_paths(80 << 30), 8 * 132 * 2048 * 8);
    // A sixteenth of the memory holds fewer, or not even as many as keep it busy.
    assert_eq!(h100.batch_paths(16 << 30), ((16_u64 << 30) / 16 / 196) as u32);
    assert_eq!(h100.batch_paths(0), h100.paths_in_flight());
    let absurd = DeviceShape { multiprocessors: 1 << 20, threads_per_multiprocessor: 2048 };
    assert_eq!(absurd.batch_paths(u64::MAX), 1 << 26);
}

#[test]
fn a_batch_takes_units_of_one_frame_until_it_is_full() {
    let paths = |unit: &UnitParams| unit.width * unit.height * unit.sample_count;
    let (units, other) = (several(), small());
    let all: u32 = units.iter().map(paths).sum();
    assert!(Plan::takes(&units, &other, all + paths(&other)));
    assert!(!Plan::takes(&units, &other, all + paths(&other) - 1), "it is full");
    for apart in [
        UnitParams { frame: other.frame + 1, ..other },
        UnitParams { depth: other.depth + 1, ..other },
        UnitParams { seed: other.seed ^ 1, ..other },
    ] {
        assert!(!Plan::takes(&units, &apart, 1 << 20), "{apart:?}");
        let both = [other, apart];
        assert_eq!(Plan::of_units(&both, &DEVICE, 1024), Err(PlanError::Apart), "{apart:?}");
    }
    let many = vec![other; UNITS_MAX];
    assert!(!Plan::takes(&many, &other, u32::MAX) && Plan::takes(&many[1..], &other, u32::MAX));
    assert!(Plan::of_units(&many, &DEVICE, 1024).is_ok());
    let more = vec![other; UNITS_MAX + 1];
    assert_eq!(Plan::of_units(&more, &DEVICE, 1024), Err(PlanError::Apart));
    assert_eq!(Plan::of_units(&[], &DEVICE, 1024), Err(PlanError::Apart));
    assert!(!Plan::takes(&[], &other, u32::MAX));
    // Films of more than 64 MiB together are too many.
    let edge = 2000;
    let (frame_width, frame_height, width, height) = (edge, edge, edge, edge);
    let (x, y) = (0, 0);
    let large = UnitParams { frame_width, frame_height, width, height, x, y, ..other };
    assert!(!Plan::takes(&[large], &large, u32::MAX));
}

#[test]
fn a_plan_fits_what_it_says() {
    let unit =
        UnitParams { width: 40, height: 40, x: 0, y: 0, aovs: 0, sample_count: 64, ..small() };
    let plan = |paths, unit: &UnitParams| Plan::new(unit, &DEVICE, paths).unwrap();
    assert_eq!(plan(1 << 20, &small()).shape(), Shape::Compact);
    let large = plan(1 << 20, &unit);
    assert_eq!((large.shape(), large.paths_in_flight()), (Shape::Staged, 40 * 40 * 64));
    for (aovs, bytes) in [(0, 148), (15, 196)] {
        let plan = plan(1 << 20, &UnitParams { aovs, ..unit });
        assert_eq!(plan.path_bytes(), bytes);
        let paths = u64::from(plan.paths_in_flight()) * bytes;
        let rest = plan.workspace_bytes() - plan.counts_offset() - paths;
        assert!(rest < 8192, "{rest} bytes for the counts and for alignment");
    }
    assert!(plan(1 << 14, &unit).workspace_bytes() < large.workspace_bytes() / 5);
    assert!(Plan::new(&UnitParams { x: 1 << 20, ..unit }, &DEVICE, 1024).is_err());
}
