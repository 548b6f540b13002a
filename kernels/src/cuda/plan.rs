//! How a unit is rendered on a device: the workspace and the launches, in order. Allocates and
//! launches nothing.

use super::Kernel;
use super::params::{BatchParams, DeviceScene, PathArrays};
use crate::host::{RayCounts, RenderError, check_unit};
use tessera_layout::UnitParams;

/// Least number of paths in flight that a plan is made for.
pub const PATHS_IN_FLIGHT_MIN: u32 = 1 << 10;
/// Pixels of a unit at most, so that a path's pixel fits 32 bits whatever is in flight.
const PIXELS_MAX: u64 = 1 << 28;
/// Paths in flight at most, for the same reason.
const PATHS_IN_FLIGHT_MAX: u32 = 1 << 26;
/// Threads of a block of every kernel.
const BLOCK: u32 = 128;
/// Blocks a multiprocessor of the persistent kernels, [`Kernel::Extend`] and [`Kernel::Shadow`]: as
/// many as fit at once.
const TRACE_BLOCKS: u32 = 7;
/// The same of [`Kernel::Shade`], a few times over so that the last ones to end are short.
const SHADE_BLOCKS: u32 = 16;
/// Bytes of a `Quad` or a `StoredHit`.
const QUAD_BYTES: u64 = 16;
/// Bytes of `StageCounts`.
const STAGE_COUNTS_BYTES: u64 = 16;
/// Parts of the workspace start at multiples of this.
const ALIGNMENT: u64 = 256;

/// What a plan has to know about a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceShape {
    /// Streaming multiprocessors, >= 1.
    pub multiprocessors: u32,
    /// Threads that one of them holds at once, such as 1024, 1536 or 2048.
    pub threads_per_multiprocessor: u32,
}

impl DeviceShape {
    /// How many paths keep the device busy: eight for every thread that it holds at once.
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
        /// Its pixels.
        pixels: u64,
    },
}

/// One thing that a device is told to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Set bytes to zero.
    Zero {
        /// Device address.
        address: u64,
        /// How many.
        bytes: u64,
    },
    /// Run a kernel.
    Launch {
        /// Which.
        kernel: Kernel,
        /// Blocks, >= 1.
        grid: u32,
        /// Threads a block, a multiple of 32.
        block: u32,
        /// Its one parameter.
        params: Vec<u8>,
    },
}

/// In which shape the kernels run. Both give the same bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// A path by every thread, in one launch: for units that do not fill a device in stages.
    Compact,
    /// All paths stage by stage.
    Staged,
}

/// Units of fewer paths are rendered in the compact shape.
const COMPACT_BELOW: u64 = 1 << 16;

/// The launches of one unit. Its result depends on the scene and the unit alone.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    unit: UnitParams,
    device: DeviceShape,
    paths: u32,
    shape: Shape,
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
            shape: if total < COMPACT_BELOW { Shape::Compact } else { Shape::Staged },
        })
    }

    /// The same plan in the other shape, or in the same; for tests and measurements.
    #[must_use]
    pub fn in_shape(self, shape: Shape) -> Self {
        Self { shape, ..self }
    }

    /// The shape.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// Paths in flight.
    pub fn paths_in_flight(&self) -> u32 {
        self.paths
    }

    /// Device memory that the plan needs beside the scene, at an address that is a multiple of 256.
    pub fn workspace_bytes(&self) -> u64 {
        Workspace::of(self, 0).bytes
    }

    /// Device memory for each path in flight: 136 bytes, or 184 with AOVs, in the staged shape;
    /// nothing in the compact one.
    pub fn path_bytes(&self) -> u64 {
        let quads = if self.unit.aovs == 0 { 8 } else { 11 };
        if self.shape == Shape::Staged { quads * QUAD_BYTES + 2 * 4 } else { 0 }
    }

    /// Bytes of the film, which lies at the workspace's start: planar `i64` sums.
    pub fn film_bytes(&self) -> u64 {
        u64::from(self.unit.channels()) * self.pixels() * 8
    }

    /// Where in the workspace the [`RayCounts`] lie.
    pub fn counts_offset(&self) -> u64 {
        self.film_bytes().next_multiple_of(ALIGNMENT)
    }

    fn pixels(&self) -> u64 {
        u64::from(self.unit.width) * u64::from(self.unit.height)
    }

    /// Bytes of the stages' counts, one for each depth and one for what is alive after the last.
    fn stages_bytes(&self) -> u64 {
        (u64::from(self.unit.depth) + 2) * STAGE_COUNTS_BYTES
    }

    /// What to do, in order, for a scene on the device and a workspace at an address. Afterwards
    /// the film and the counts are complete; nothing has to be read back in between.
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
            reserved: [0; 3],
        }
    }

    /// The steps of one batch.
    fn batch(&self, params: &BatchParams) -> Vec<Step> {
        let all = params.path_count.div_ceil(BLOCK);
        let resident =
            |blocks: u32| all.min(self.device.multiprocessors.max(1).saturating_mul(blocks));
        let launch = |kernel, grid, depth| {
            let params = bytemuck::bytes_of(&BatchParams { depth, ..*params }).to_vec();
            Step::Launch { kernel, grid, block: BLOCK, params }
        };
        let is_layered = params.scene.layers != 0;
        if self.shape == Shape::Compact {
            let kernel = if is_layered { Kernel::RenderLayered } else { Kernel::RenderPaths };
            return vec![launch(kernel, all, 0)];
        }
        let mut steps = vec![Step::Zero { address: params.stages, bytes: self.stages_bytes() }];
        steps.push(launch(Kernel::Generate, all, 0));
        for depth in 0..=self.unit.depth {
            steps.push(launch(Kernel::Extend, resident(TRACE_BLOCKS), depth));
            steps.push(launch(Kernel::Shade, resident(SHADE_BLOCKS), depth));
            if is_layered {
                steps.push(launch(Kernel::ShadeLayered, resident(SHADE_BLOCKS), depth));
            }
            if depth < self.unit.depth {
                // the last edge has no light sample
                steps.push(launch(Kernel::Shadow, resident(TRACE_BLOCKS), depth));
            }
        }
        steps.push(launch(Kernel::Finish, all, 0));
        steps
    }
}

/// Where everything lies in a workspace.
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
                first: if plan.unit.aovs == 0 { 0 } else { part(3 * quads) },
            };
        }
        made.bytes = end - address;
        made
    }
}
