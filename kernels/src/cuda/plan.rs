//! The plan of one unit or of several on a device: the workspace and the launches, in order.
//! Allocates and launches nothing.

use super::Kernel;
use super::params::{BatchParams, DeviceScene, PathArrays, PathRun};
use crate::host::{RayCounts, RenderError, check_unit};
use std::ops::Range;
use tessera_layout::{PASSES_MAX, UnitParams};

/// Fewest paths in flight of a plan.
pub const PATHS_IN_FLIGHT_MIN: u32 = 1 << 10;
/// Most pixels of a unit, so that a path's pixel fits into 32 bits whatever is in flight.
const PIXELS_MAX: u64 = 1 << 28;
/// Most paths in flight, for the same reason.
const PATHS_IN_FLIGHT_MAX: u32 = 1 << 26;
/// Most units of a plan.
pub const UNITS_MAX: usize = 128;
/// Batches are this many times as large as keeps a device busy, so that it is busy at the last
/// bounces too, which few paths reach.
const DEEP: u64 = 8;
/// The paths of a batch take at most so small a part of a device's memory.
const MEMORY_PART: u64 = 16;
/// Most bytes of the films of a plan of several units.
const FILMS_BYTES_MAX: u64 = 64 << 20;
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
/// Bytes of a `PathKey`.
const KEY_BYTES: u64 = 8;
/// Bytes of `StageCounts`.
const STAGE_COUNTS_BYTES: u64 = 16;
/// Bytes of a path in the staged shape, with AOVs: eleven quads, three words and its key.
const STAGED_BYTES_MAX: u64 = 11 * QUAD_BYTES + 3 * 4 + KEY_BYTES;
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
        in_range(8 * self.threads())
    }

    /// Returns how many paths a batch begins with at most, on a device with so many bytes of free
    /// memory: eight times [`DeviceShape::paths_in_flight`], if a sixteenth of the memory is
    /// enough for them, but never fewer than that.
    pub fn batch_paths(&self, free_bytes: u64) -> u32 {
        let fit = free_bytes / MEMORY_PART / STAGED_BYTES_MAX;
        in_range((8 * self.threads()).max(fit.min(8 * self.threads() * DEEP)))
    }

    fn threads(&self) -> u64 {
        u64::from(self.multiprocessors) * u64::from(self.threads_per_multiprocessor)
    }
}

fn in_range(paths: u64) -> u32 {
    paths.clamp(u64::from(PATHS_IN_FLIGHT_MIN), u64::from(PATHS_IN_FLIGHT_MAX)) as u32
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
    /// The units cannot be rendered together.
    #[error(
        "units of one plan differ in their tiles and samples alone; there are 1 to {UNITS_MAX}"
    )]
    Apart,
}

/// One command to a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Write bytes.
    Write {
        /// Device address of the first.
        address: u64,
        /// The bytes, less than 64 KiB.
        bytes: Vec<u8>,
    },
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
    /// Returns the shape in which a unit is rendered alone. With others it may be
    /// [`Shape::Staged`] all the same.
    pub fn of(unit: &UnitParams) -> Self {
        Self::of_paths(paths_of(unit))
    }

    fn of_paths(paths: u64) -> Self {
        if paths < COMPACT_BELOW { Shape::Compact } else { Shape::Staged }
    }
}

fn pixels_of(unit: &UnitParams) -> u64 {
    u64::from(unit.width) * u64::from(unit.height)
}

fn paths_of(unit: &UnitParams) -> u64 {
    pixels_of(unit) * u64::from(unit.sample_count)
}

fn film_bytes_of(unit: &UnitParams) -> u64 {
    u64::from(unit.channels()) * pixels_of(unit) * 8
}

/// The unit without what units of one plan may differ in.
fn common(unit: &UnitParams) -> UnitParams {
    let (x, y, width, height) = (0, 0, 0, 0);
    UnitParams { x, y, width, height, first_sample: 0, sample_count: 0, ..*unit }
}

/// Number of paths below which units are rendered in the compact shape.
const COMPACT_BELOW: u64 = 1 << 16;

/// The launches of one unit, or of several of one scene that differ in their tiles and samples
/// alone. The result of each depends only on the scene and that unit.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    units: Vec<UnitParams>,
    device: DeviceShape,
    paths: u32,
    shape: Shape,
    /// Most blocks of the persistent kernels.
    trace_blocks: u32,
    /// Runs of paths are cut in two, so that paths look for theirs.
    is_cut: bool,
}

impl Plan {
    /// A plan of one unit with at most so many paths in flight (at least [`PATHS_IN_FLIGHT_MIN`]).
    ///
    /// # Errors
    /// [`PlanError`] where the unit is out of range or too large.
    pub fn new(
        unit: &UnitParams,
        device: &DeviceShape,
        paths_in_flight: u32,
    ) -> Result<Self, PlanError> {
        Self::of_units(std::slice::from_ref(unit), device, paths_in_flight)
    }

    /// The same of several units, whose paths are in flight together.
    ///
    /// # Errors
    /// [`PlanError`] where a unit is out of range or too large, or they cannot be together.
    pub fn of_units(
        units: &[UnitParams],
        device: &DeviceShape,
        paths_in_flight: u32,
    ) -> Result<Self, PlanError> {
        for unit in units {
            check_unit(unit)?;
            let pixels = pixels_of(unit);
            if pixels > PIXELS_MAX {
                return Err(PlanError::Pixels { pixels });
            }
        }
        let together = units.split_first().is_some_and(|(first, rest)| {
            let films: u64 = units.iter().map(film_bytes_of).sum();
            rest.is_empty()
                || units.len() <= UNITS_MAX
                    && films <= FILMS_BYTES_MAX
                    && rest.iter().all(|unit| common(unit) == common(first))
        });
        if !together {
            return Err(PlanError::Apart);
        }
        let wanted = paths_in_flight.clamp(PATHS_IN_FLIGHT_MIN, PATHS_IN_FLIGHT_MAX);
        let total = units.iter().map(paths_of).sum();
        Ok(Self {
            units: units.to_vec(),
            device: *device,
            paths: u64::from(wanted).min(total) as u32,
            shape: Shape::of_paths(total),
            trace_blocks: device.multiprocessors.max(1).saturating_mul(TRACE_BLOCKS),
            is_cut: false,
        })
    }

    /// Returns whether another unit of the same scene fits into a batch of so many paths beside
    /// some units. What does not fill a batch alone fills it with others.
    pub fn takes(units: &[UnitParams], other: &UnitParams, paths_in_flight: u32) -> bool {
        let with = |of: fn(&UnitParams) -> u64| {
            units.iter().chain([other]).map(of).fold(0, u64::saturating_add)
        };
        units.first().is_some_and(|first| common(first) == common(other))
            && units.len() < UNITS_MAX
            && with(film_bytes_of) <= FILMS_BYTES_MAX
            && with(paths_of) <= u64::from(paths_in_flight)
    }

    /// Returns the same plan in the given shape, for tests and measurements.
    #[must_use]
    pub fn in_shape(self, shape: Shape) -> Self {
        Self { shape, ..self }
    }

    /// Returns a staged plan that takes a small unit through what large and many ones go through:
    /// two batches, several blocks that fill one queue, a single block of each persistent kernel,
    /// whose warps fetch again and again, and paths of several runs in one batch.
    #[must_use]
    pub fn in_waves(self) -> Self {
        let total = self.total();
        let paths = (total * 5 / 8).next_multiple_of(32).min(u64::from(self.paths)).max(1);
        let shape = Shape::Staged;
        Self { shape, paths: paths as u32, trace_blocks: 1, is_cut: true, ..self }
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

    /// Returns the device memory for each path in flight, in bytes. In the staged shape it is 148,
    /// or 196 with AOVs; in the compact shape it is 0.
    pub fn path_bytes(&self) -> u64 {
        match (self.shape, self.common().aovs) {
            (Shape::Compact, _) => 0,
            (Shape::Staged, 0) => STAGED_BYTES_MAX - 3 * QUAD_BYTES,
            (Shape::Staged, _) => STAGED_BYTES_MAX,
        }
    }

    /// Returns the units.
    pub fn units(&self) -> &[UnitParams] {
        &self.units
    }

    /// Returns the size of all films in bytes. They are at the workspace's start, one after
    /// another, as planar `i64` sums.
    pub fn film_bytes(&self) -> u64 {
        self.units.iter().map(film_bytes_of).sum()
    }

    /// Returns where the film of each unit is in the workspace, in bytes.
    pub fn films(&self) -> impl Iterator<Item = Range<usize>> + '_ {
        self.units.iter().scan(0, |end, unit| {
            let start = *end;
            *end += film_bytes_of(unit) as usize;
            Some(start..*end)
        })
    }

    /// Returns the position of the counts in the workspace.
    pub fn counts_offset(&self) -> u64 {
        self.film_bytes().next_multiple_of(ALIGNMENT)
    }

    /// Returns the size of the counts in bytes: one [`RayCounts`] for all units, and one for each.
    pub fn counts_bytes(&self) -> u64 {
        (1 + self.units.len() as u64) * size_of::<RayCounts>() as u64
    }

    /// Reads the counts of each unit. Rays are counted of all units together; each has its part by
    /// its paths.
    pub fn counts(&self, bytes: &[u8]) -> Vec<RayCounts> {
        let mut counts = bytes
            .chunks_exact(size_of::<RayCounts>())
            .map(|bytes| RayCounts::from_bytes(&std::array::from_fn(|index| bytes[index])));
        let all = counts.next().unwrap_or_default();
        let (total, mut before) = (u128::from(self.total().max(1)), 0u128);
        let of_unit = |(unit, own): (&UnitParams, RayCounts)| {
            let after = before + u128::from(paths_of(unit));
            let part = |rays: u64| {
                let until = |paths: u128| (u128::from(rays) * paths / total) as u64;
                until(after) - until(before)
            };
            let (closest, any) = (part(all.closest), part(all.any));
            before = after;
            RayCounts { closest, any, ..own }
        };
        self.units.iter().zip(counts).map(of_unit).collect()
    }

    /// Returns the part of a time that each unit has by its paths.
    pub fn times(&self, nanos: u64) -> Vec<u64> {
        let total = u128::from(self.total().max(1));
        let part = |unit| (u128::from(nanos) * u128::from(paths_of(unit)) / total) as u64;
        self.units.iter().map(part).collect()
    }

    /// What all units have in common.
    fn common(&self) -> &UnitParams {
        &self.units[0]
    }

    /// Number of paths of all units.
    fn total(&self) -> u64 {
        self.units.iter().map(paths_of).sum()
    }

    /// Size of the list of runs in bytes: of a batch with paths of every unit.
    fn runs_bytes(&self) -> u64 {
        let runs = self.units.len() * if self.is_cut { 2 } else { 1 };
        (runs * size_of::<PathRun>()) as u64
    }

    /// The runs of a batch: from the first of all paths on, so many.
    fn runs(&self, first: u64, path_count: u32) -> Vec<PathRun> {
        let (mut begin, mut film) = (0, 0);
        let mut runs = Vec::new();
        for (index, unit) in self.units.iter().enumerate() {
            let end = begin + paths_of(unit);
            let (from, to) = (first.max(begin), (first + u64::from(path_count)).min(end));
            let middle = if self.is_cut { from + to.saturating_sub(from) / 2 } else { to };
            let parts = [(from, middle), (middle, to)].into_iter().filter(|(from, to)| from < to);
            for (from, _) in parts {
                let (at, pixels) = (from - begin, pixels_of(unit));
                runs.push(PathRun {
                    first_slot: (from - first) as u32,
                    first_sample: unit.first_sample.wrapping_add((at / pixels) as u32),
                    first_pixel: (at % pixels) as u32,
                    x: unit.x.cast_unsigned(),
                    y: unit.y.cast_unsigned(),
                    width: unit.width,
                    height: unit.height,
                    film: (film / 8) as u32,
                    unit: index as u32,
                    reserved: [0; 3],
                });
            }
            (begin, film) = (end, film + film_bytes_of(unit));
        }
        runs
    }

    /// Returns the size of the stages' counts in bytes: one for each depth, panes included, and one
    /// for the paths alive after the last.
    fn stages_bytes(&self) -> u64 {
        (u64::from(self.common().depth + PASSES_MAX) + 2) * STAGE_COUNTS_BYTES
    }

    /// Returns the commands in order, for a scene on the device and a workspace at an address.
    /// Afterwards the films and the counts are complete. Nothing has to be read back in between.
    pub fn steps(&self, scene: &DeviceScene, workspace: u64) -> impl Iterator<Item = Step> {
        let (plan, scene) = (self.clone(), *scene);
        let workspace = Workspace::of(self, workspace);
        let total = self.total();
        let results = self.counts_offset() + self.counts_bytes();
        let zero = Step::Zero { address: workspace.film, bytes: results };
        let batches = (0..total).step_by(self.paths as usize);
        std::iter::once(zero).chain(batches.flat_map(move |first| {
            let path_count = (total - first).min(u64::from(plan.paths)) as u32;
            let runs = plan.runs(first, path_count);
            let bytes = bytemuck::cast_slice(&runs).to_vec();
            let write = Step::Write { address: workspace.runs, bytes };
            let params = plan.params(&scene, &workspace, runs.len() as u32, path_count);
            std::iter::once(write).chain(plan.batch(&params)).collect::<Vec<_>>()
        }))
    }

    fn params(
        &self,
        scene: &DeviceScene,
        workspace: &Workspace,
        run_count: u32,
        path_count: u32,
    ) -> BatchParams {
        BatchParams {
            scene: *scene,
            unit: *self.common(),
            paths: workspace.paths,
            stages: workspace.stages,
            film: workspace.film,
            counts: workspace.counts,
            runs: workspace.runs,
            run_count,
            unit_count: self.units.len() as u32,
            path_count,
            depth: 0,
            capacity: self.paths,
            reserved: 0,
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
        let last = self.common().depth + if has_panes { PASSES_MAX } else { 0 };
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
    runs: u64,
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
        let counts = part(plan.counts_bytes());
        let (runs, paths) = (part(plan.runs_bytes()), PathArrays::default());
        let mut made = Self { film, counts, runs, stages: 0, paths, bytes: 0 };
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
                keys: part(paths * KEY_BYTES),
                first: if plan.common().aovs == 0 { 0 } else { part(3 * quads) },
            };
        }
        made.bytes = end - address;
        made
    }
}
