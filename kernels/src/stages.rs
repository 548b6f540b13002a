//! For tests: runs the staged shape of a plan on the host (`source/tests/stages.cpp`). Returns the
//! content of a workspace after a launch, in a form that does not depend on the order of the
//! queues. Not a stable interface; it changes with the kernels.

use crate::CheckedScene;
use crate::cuda::{BatchParams, DeviceScene, Kernel, Plan, SceneImage, Shape, Step};
use crate::float_mode::FloatMode;
use crate::host::RayCounts;
use std::mem::offset_of;
use tessera_layout::{PASSES_MAX, UnitParams};

unsafe extern "C" {
    fn tessera_test_stage(kernel: u32, params: *const BatchParams);
}

/// Content of new memory until it is written, on the host as in the interpreter.
const UNWRITTEN: u8 = 0xcd;
/// Bytes of a `Quad`, a `StoredHit` or a `StageCounts`.
const QUAD: u64 = 16;

/// Memory with the alignment of a device.
#[derive(Clone, Copy)]
#[repr(C, align(256))]
struct Block([u8; 256]);

struct Memory(Vec<Block>);

impl Memory {
    fn new(bytes: u64) -> Self {
        Self(vec![Block([UNWRITTEN; 256]); bytes.div_ceil(256) as usize])
    }

    fn address(&mut self) -> u64 {
        self.0.as_mut_ptr() as u64
    }

    fn bytes(&mut self) -> &mut [u8] {
        let length = self.0.len() * size_of::<Block>();
        // SAFETY: blocks are bytes without padding, and the slice borrows all of them.
        unsafe { std::slice::from_raw_parts_mut(self.0.as_mut_ptr().cast(), length) }
    }
}

/// A plan in the staged shape that runs on the host, with scene and workspace in the host's memory.
pub struct HostStages {
    plan: Plan,
    view: DeviceScene,
    /// Keeps the arrays alive that `view` points to.
    _arrays: Memory,
    workspace: Memory,
}

impl HostStages {
    /// Nothing has run yet; the workspace holds what new memory holds.
    ///
    /// # Panics
    /// If the plan is in the compact shape.
    pub fn new(scene: &CheckedScene, plan: &Plan) -> Self {
        assert_eq!(plan.shape(), Shape::Staged, "only stages leave something between launches");
        let image = SceneImage::of(scene);
        let mut arrays = Memory::new(image.bytes());
        for part in image.parts() {
            arrays.bytes()[part.offset as usize..][..part.bytes.len()].copy_from_slice(part.bytes);
        }
        let view = image.scene().at(arrays.address());
        let workspace = Memory::new(plan.workspace_bytes());
        Self { plan: plan.clone(), view, _arrays: arrays, workspace }
    }

    /// Returns the plan's steps for this memory, in the order of a device.
    pub fn steps(&mut self) -> Vec<Step> {
        self.plan.steps(&self.view, self.workspace.address()).collect()
    }

    /// Returns the workspace.
    pub fn workspace(&mut self) -> &mut [u8] {
        self.workspace.bytes()
    }

    /// Executes one of [`HostStages::steps`]. Returns the words after a launch.
    pub fn take(&mut self, step: &Step) -> Option<Vec<u32>> {
        let start = self.workspace.address();
        match step {
            Step::Write { address, bytes } => {
                let at = (address - start) as usize;
                self.workspace.bytes()[at..][..bytes.len()].copy_from_slice(bytes);
                None
            }
            Step::Zero { address, bytes } => {
                self.workspace.bytes()[(address - start) as usize..][..*bytes as usize].fill(0);
                None
            }
            Step::Launch { kernel, params, .. } => {
                let batch = batch_of(params);
                let _mode = FloatMode::strict();
                // SAFETY: the plan's parameters point into the two memories of `self`, which hold a
                // checked scene and a workspace of the plan's size; stages write inside of it.
                unsafe { tessera_test_stage(number(*kernel), &batch) };
                Some(left_by(*kernel, params, self.workspace.bytes()))
            }
        }
    }
}

/// What every launch of a plan in the staged shape leaves on the host, in order.
///
/// # Panics
/// If the plan is in the compact shape.
pub fn on_host(scene: &CheckedScene, plan: &Plan) -> Vec<Vec<u32>> {
    let mut host = HostStages::new(scene, plan);
    let steps = host.steps();
    steps.iter().filter_map(|step| host.take(step)).collect()
}

/// Positions of the paths of a launch, in bytes from the workspace's start.
#[derive(Clone, Copy, Debug)]
pub struct Offsets {
    /// Number of scattering events of the launch's paths so far.
    pub depth: u32,
    /// Number of paths that the arrays hold.
    pub capacity: u32,
    /// Two words: the number of paths alive, and of shadow rays.
    pub lengths: usize,
    /// Four floats per path: the ray's origin and its end.
    pub origin: usize,
    /// Four floats per path: the ray's direction and its pdf.
    pub direction: usize,
    /// Four floats per path: throughput and the cosine of the last scattering.
    pub throughput: usize,
    /// Four words per path: radiance and the media around the ray.
    pub radiance: usize,
    /// Four words per path: distance, triangle, u, v.
    pub hit: usize,
    /// Four floats in the order of the shadow queue: direction and end.
    pub shadow_direction: usize,
    /// Four words in the order of the shadow queue: radiance and the path's slot.
    pub shadow_radiance: usize,
    /// One word for each path alive: its slot. Not read at depth 0.
    pub queue: usize,
    /// Two words per path: what its sampler is made of.
    pub keys: usize,
    /// Three arrays of four floats per path: albedo and depth, normal, position. 0 without AOVs.
    pub first: usize,
}

/// Those of a launch with some parameters.
///
/// # Panics
/// If the parameters are not those of a plan in the staged shape.
pub fn offsets(params: &[u8]) -> Offsets {
    let batch = batch_of(params);
    let at = |address: u64| (address - batch.film) as usize;
    let paths = &batch.paths;
    Offsets {
        depth: batch.depth,
        capacity: batch.capacity,
        lengths: at(batch.stages + u64::from(batch.depth) * QUAD),
        origin: at(paths.origin),
        direction: at(paths.direction),
        throughput: at(paths.throughput),
        radiance: at(paths.radiance),
        hit: at(paths.hit),
        shadow_direction: at(paths.shadow_direction),
        shadow_radiance: at(paths.shadow_radiance),
        queue: at(paths.queue[(batch.depth & 1) as usize]),
        keys: at(paths.keys),
        first: paths.first.saturating_sub(batch.film) as usize,
    }
}

/// Where a kernel's parameter says how many paths of a staged plan are alive, in bytes.
#[derive(Clone, Copy, Debug)]
pub struct Alive {
    /// Device address of the stages' counts, of which the paths alive are the first word.
    pub stages: usize,
    /// The launch's depth: which of the counts is its own.
    pub depth: usize,
    /// Bytes of the counts of one depth.
    pub stride: u64,
    /// Width of the frame in pixels.
    pub frame_width: usize,
}

/// Those positions.
pub const ALIVE: Alive = Alive {
    stages: offset_of!(BatchParams, stages),
    depth: offset_of!(BatchParams, depth),
    stride: QUAD,
    frame_width: offset_of!(BatchParams, unit) + offset_of!(UnitParams, frame_width),
};

/// Returns the kernel's number in `tests/stages.cpp`.
fn number(kernel: Kernel) -> u32 {
    match kernel {
        Kernel::RenderPaths | Kernel::RenderLayered => 0,
        Kernel::Generate => 1,
        Kernel::Extend => 2,
        Kernel::Shade => 3,
        Kernel::Shadow => 4,
        Kernel::Finish => 5,
        Kernel::ShadeLayered => 6,
        Kernel::ShadowPanes => 7,
    }
}

fn batch_of(params: &[u8]) -> BatchParams {
    assert_eq!(params.len(), size_of::<BatchParams>(), "the parameter of a kernel");
    // SAFETY: the length is right, every field is a number, and `read_unaligned` asks for no
    // alignment.
    unsafe { params.as_ptr().cast::<BatchParams>().read_unaligned() }
}

/// The words of a workspace after a launch with some parameters: film, counts, lengths of the
/// queues, and every path's ray, throughput, radiance, hit and first surface; after a shading or a
/// shadow launch also the shadow rays and the next depth's queue, sorted by their paths, because
/// their order is free.
///
/// # Panics
/// If the parameters are not those of a plan whose workspace this is.
pub fn left_by(kernel: Kernel, params: &[u8], workspace: &[u8]) -> Vec<u32> {
    let batch = batch_of(params);
    let paths = &batch.paths;
    let capacity = u64::from(batch.capacity);
    let words = |address: u64, bytes: u64| {
        let bytes = &workspace[(address - batch.film) as usize..][..bytes as usize];
        bytes.chunks_exact(4).map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]]))
    };
    let counts = (1 + u64::from(batch.unit_count)) * size_of::<RayCounts>() as u64;
    let mut left: Vec<u32> = words(batch.film, batch.counts - batch.film + counts).collect();
    let depths = u64::from(batch.unit.depth + PASSES_MAX) + 2;
    let lengths: Vec<u32> = words(batch.stages, depths * QUAD).collect();
    left.extend(lengths.chunks_exact(4).flat_map(|stage| &stage[..2]));
    for array in [paths.origin, paths.direction, paths.throughput, paths.radiance, paths.hit] {
        left.extend(words(array, capacity * QUAD));
    }
    left.extend(words(paths.keys, capacity * 8));
    if paths.first != 0 {
        left.extend(words(paths.first, 3 * capacity * QUAD));
    }
    if matches!(kernel, Kernel::Shade | Kernel::ShadeLayered | Kernel::Shadow | Kernel::ShadowPanes)
    {
        let depth = batch.depth as usize;
        let length = |at: usize| u64::from(lengths[at]).min(capacity);
        let (shadows, alive) = (length(4 * depth + 1), length(4 * depth + 4));
        let directions: Vec<u32> = words(paths.shadow_direction, shadows * QUAD).collect();
        let radiances: Vec<u32> = words(paths.shadow_radiance, shadows * QUAD).collect();
        let mut rows: Vec<_> = radiances.chunks_exact(4).zip(directions.chunks_exact(4)).collect();
        rows.sort_unstable_by_key(|(radiance, direction)| (radiance[3], *radiance, *direction));
        left.extend(
            rows.into_iter().flat_map(|(radiance, direction)| radiance.iter().chain(direction)),
        );
        let mut queue: Vec<u32> = words(paths.queue[(depth + 1) & 1], alive * 4).collect();
        queue.sort_unstable();
        left.extend(queue);
    }
    left
}
