//! The plan of a unit on a device: the workspace and the launches, in order. Allocates and launches
//! nothing.

use super::Kernel;
use super::params::{BatchParams, DeviceScene, PathArrays};
use crate::host::{RayCounts, RenderError, check_unit};
use tessera_layout::{PASSES_MAX, UnitParams};

/// Fewest paths in flight of a plan.
pub const PATHS_IN_FLIGHT_MIN: u32 = 1 << 10;
/// Most pixels of a unit, so that a path's pixel fits into 32 bits whatever is in flight.
const PIXELS_MAX: u64 = 1 << 28;
/// Most paths in flight, for the same reason.
const PATHS_IN_FLIGHT_MAX: u32 = 1 << 26;
/// Threads of a block, for every kernel.
const BLOCK: u32 = 128;
/// Blocks per multiprocessor of the persistent kernels, [`Kernel::Extend`] and [`Kernel::Shadow`]:
/// as many as fit at once.
const TRACE_BLOCKS: u32 = 7;
/// Blocks per multiprocessor of [`Kernel::Shade`]: several times as many as fit, so that the last
/// ones are short.
const SHADE_BLOCKS: u32 = 16;
/// Bytes of a `Quad` or a `StoredHit`.
const QUAD_BYTES: u64 = 16;
/// Bytes of `StageCounts`.
const STAGE_COUNTS_BYTES: u64 = 16;
/// Parts of the workspace begin at multiples of this.
const ALIGNMENT: u64 = 256;

/// Properties of a device that a plan needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceShape {
    /// Streaming multiprocessors, >= 1.
    pub multiprocessors: u32,
    /// Threads that a multiprocessor holds at once, such as 1024, 1536 or 2048.
    pub threads_per_multiprocessor: u32,
}

impl DeviceShape {
    /// Returns how many paths keep the device busy: eight for every thread that it holds at once.
    pub fn paths_in_flight(&self) -> u32 {
        let threads = u64::from(self.multiprocessors) * u64::from(self.threads_per_multiprocessor);
        let paths =
            (8 * threads).clamp(u64::from(PATHS_IN_FLIGHT_MIN), u64::from(PATHS_IN_FLIGHT_MAX));
        paths as u32
    }
}

/// Why there is no plan for a unit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// A number of the unit is out of range.
    #[error(transparent)]
    Unit(#[from] RenderError),
    /// The unit's tile is too large for a device.
    #[error(
        "unit of {pixels} pixels is too large for a device: cut the frame into tiles of at most \
            {PIXELS_MAX}"
    )]
    Pixels {
        /// Number of pixels of the unit.
        pixels: u64,
    },
}

/// One command to a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Set bytes to zero.
    Zero {
        /// Device address of the bytes.
        address: u64,
        /// Number of bytes.
        bytes: u64,
    },
    /// Run a kernel.
    Launch {
        /// Kernel to run.
        kernel: Kernel,
        /// Number of blocks, >= 1.
        grid: u32,
        /// Threads of a block, a multiple of 32.
        block: u32,
        /// The kernel's only parameter.
        params: Vec<u8>,
    },
}

/// Order in which the kernels run. Both shapes give the same bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Each thread takes a path through all stages, in one launch. For units that do not fill a
    /// device in stages.
    Compact,
    /// All paths go through one stage after another.
    Staged,
}

impl Shape {
    /// Returns the shape in which a unit is rendered.
    pub fn of(unit: &UnitParams) -> Self {
        let pixels = u64::from(unit.width) * u64::from(unit.height);
        if pixels * u64::from(unit.sample_count) < COMPACT_BELOW {
            Shape::Compact
        } else {
            Shape::Staged
        }
    }
}

/// Number of paths below which a unit is rendered in the compact shape.
const COMPACT_BELOW: u64 = 1 << 16;

/// The launches of one unit. Its result depends only on the scene and the unit.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    unit: UnitParams,
    device: DeviceShape,
    paths: u32,
    shape: Shape,
    /// Most blocks of the persistent kernels.
    trace_blocks: u32,
}

impl Plan {
    /// A plan with at most so many paths in flight (at least [`PATHS_IN_FLIGHT_MIN`]).
    ///
    /// # Errors
    /// [`PlanError`] where the unit is out of range or too large.
    pub fn new(
        unit: &UnitParams,
        device: &DeviceShape,
        paths_in_flight: u32,
    ) -> Result<Self, PlanError> {
        check_unit(unit)?;
        let pixels = u64::from(unit.width) * u64::from(unit.height);
        if pixels > PIXELS_MAX {
            return Err(PlanError::Pixels { pixels });
        }
        let wanted = paths_in_flight.clamp(PATHS_IN_FLIGHT_MIN, PATHS_IN_FLIGHT_MAX);
        let total = pixels * u64::from(unit.sample_count);
        Ok(Self {
            unit: *unit,
            device: *device,
            paths: u64::from(wanted).min(total) as u32,
            shape: Shape::of(unit),
            trace_blocks: device.multiprocessors.max(1).saturating_mul(TRACE_BLOCKS),
        })
    }

    /// Returns the same plan in the given shape, for tests and measurements.
    #[must_use]
    pub fn in_shape(self, shape: Shape) -> Self {
        Self { shape, ..self }
    }

    /// Returns a staged plan that takes a small unit through what a large one goes through: two
    /// batches, several blocks that fill one queue, and a single block of each persistent kernel,
    /// whose warps fetch again and again.
    #[must_use]
    pub fn in_waves(self) -> Self {
        let total = self.pixels() * u64::from(self.unit.sample_count);
        let paths = (total * 5 / 8).next_multiple_of(32).min(u64::from(self.paths)).max(1);
        Self { shape: Shape::Staged, paths: paths as u32, trace_blocks: 1, ..self }
    }

    /// Returns the shape.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// Returns the number of paths in flight.
    pub fn paths_in_flight(&self) -> u32 {
        self.paths
    }

    /// Returns the device memory that the plan needs besides the scene, in bytes. Its address must
    /// be a multiple of 256.
    pub fn workspace_bytes(&self) -> u64 {
        Workspace::of(self, 0).bytes
    }

    /// Returns the device memory for each path in flight, in bytes. In the staged shape it is 140,
    /// or 188 with AOVs; in the compact shape it is 0.
    pub fn path_bytes(&self) -> u64 {
        let quads = if self.unit.aovs == 0 { 8 } else { 11 };
        if self.shape == Shape::Staged { quads * QUAD_BYTES + 3 * 4 } else { 0 }
    }

    /// Returns the size of the film in bytes. The film is at the workspace's start, as planar `i64`
    /// sums.
    pub fn film_bytes(&self) -> u64 {
        u64::from(self.unit.channels()) * self.pixels() * 8
    }

    /// Returns the position of the [`RayCounts`] in the workspace.
    pub fn counts_offset(&self) -> u64 {
        self.film_bytes().next_multiple_of(ALIGNMENT)
    }

    fn pixels(&self) -> u64 {
        u64::from(self.unit.width) * u64::from(self.unit.height)
    }

    /// Returns the size of the stages' counts in bytes: one for each depth, panes included, and one
    /// for the paths alive after the last.
    fn stages_bytes(&self) -> u64 {
        (u64::from(self.unit.depth + PASSES_MAX) + 2) * STAGE_COUNTS_BYTES
    }

    /// Returns the commands in order, for a scene on the device and a workspace at an address.
    /// Afterwards the film and the counts are complete. Nothing has to be read back in between.
    pub fn steps(&self, scene: &DeviceScene, workspace: u64) -> impl Iterator<Item = Step> {
        let (plan, scene) = (self.clone(), *scene);
        let workspace = Workspace::of(self, workspace);
        let total = self.pixels() * u64::from(self.unit.sample_count);
        let results = self.counts_offset() + size_of::<RayCounts>() as u64;
        let zero = Step::Zero { address: workspace.film, bytes: results };
        let batches = (0..total).step_by(self.paths as usize);
        std::iter::once(zero).chain(batches.flat_map(move |first| {
            let path_count = (total - first).min(u64::from(plan.paths)) as u32;
            plan.batch(&plan.params(&scene, &workspace, first, path_count))
        }))
    }

    fn params(
        &self,
        scene: &DeviceScene,
        workspace: &Workspace,
        first: u64,
        path_count: u32,
    ) -> BatchParams {
        BatchParams {
            scene: *scene,
            unit: self.unit,
            paths: workspace.paths,
            stages: workspace.stages,
            film: workspace.film,
            counts: workspace.counts,
            first_sample: (first / self.pixels()) as u32,
            first_pixel: (first % self.pixels()) as u32,
            path_count,
            depth: 0,
            capacity: self.paths,
            reserved: [0; 5],
        }
    }

    /// Returns the steps of one batch.
    fn batch(&self, params: &BatchParams) -> Vec<Step> {
        let all = params.path_count.div_ceil(BLOCK);
        let resident =
            |blocks: u32| all.min(self.device.multiprocessors.max(1).saturating_mul(blocks));
        let tracing = all.min(self.trace_blocks);
        let launch = |kernel, grid, depth| {
            let params = bytemuck::bytes_of(&BatchParams { depth, ..*params }).to_vec();
            Step::Launch { kernel, grid, block: BLOCK, params }
        };
        let is_layered = params.scene.layers != 0;
        if self.shape == Shape::Compact {
            let kernel = if is_layered { Kernel::RenderLayered } else { Kernel::RenderPaths };
            return vec![launch(kernel, all, 0)];
        }
        let has_panes = params.scene.pane_count != 0;
        let shadow = if has_panes { Kernel::ShadowPanes } else { Kernel::Shadow };
        let last = self.unit.depth + if has_panes { PASSES_MAX } else { 0 };
        let mut steps = vec![Step::Zero { address: params.stages, bytes: self.stages_bytes() }];
        steps.push(launch(Kernel::Generate, all, 0));
        for depth in 0..=last {
            steps.push(launch(Kernel::Extend, tracing, depth));
            steps.push(launch(Kernel::Shade, resident(SHADE_BLOCKS), depth));
            if is_layered {
                steps.push(launch(Kernel::ShadeLayered, resident(SHADE_BLOCKS), depth));
            }
            if depth < last {
                // the last edge has no light sample
                steps.push(launch(shadow, tracing, depth));
            }
        }
        steps.push(launch(Kernel::Finish, all, 0));
        steps
    }
}

/// Positions of all parts in a workspace.
#[derive(Clone, Copy, Debug)]
struct Workspace {
    film: u64,
    counts: u64,
    stages: u64,
    paths: PathArrays,
    bytes: u64,
}

impl Workspace {
    fn of(plan: &Plan, address: u64) -> Self {
        let mut end = address;
        let mut part = |bytes: u64| {
            let start = end;
            end += bytes.next_multiple_of(ALIGNMENT);
            start
        };
        let film = part(plan.film_bytes());
        let counts = part(size_of::<RayCounts>() as u64);
        let mut made = Self { film, counts, stages: 0, paths: PathArrays::default(), bytes: 0 };
        if plan.shape == Shape::Staged {
            let paths = u64::from(plan.paths);
            made.stages = part(plan.stages_bytes());
            let quads = paths * QUAD_BYTES;
            made.paths = PathArrays {
                origin: part(quads),
                direction: part(quads),
                throughput: part(quads),
                radiance: part(quads),
                vantage: part(quads),
                hit: part(quads),
                shadow_direction: part(quads),
                shadow_radiance: part(quads),
                queue: [part(paths * 4), part(paths * 4)],
                passes: part(paths * 4),
                first: if plan.unit.aovs == 0 { 0 } else { part(3 * quads) },
            };
        }
        made.bytes = end - address;
        made
    }
}
