//! How a unit is rendered on a device: the workspace and the launches, in order. Allocates and launches nothing.

use super::Kernel;
use super::bytes::bytes_of_one;
use super::params::{DeviceScene, PathsParams};
use crate::host::{RayCounts, RenderError, check_unit};
use tessera_layout::UnitParams;

/// Least number of paths in flight that a plan is made for.
pub const PATHS_IN_FLIGHT_MIN: u32 = 1 << 10;
/// Pixels of a unit at most, so that a path's pixel fits 32 bits whatever is in flight.
const PIXELS_MAX: u64 = 1 << 28;
/// Paths in flight at most, for the same reason.
const PATHS_IN_FLIGHT_MAX: u32 = 1 << 26;
/// Threads of a block of [`Kernel::RenderPaths`].
const PATHS_BLOCK: u32 = 128;
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
        let paths = (8 * threads).clamp(u64::from(PATHS_IN_FLIGHT_MIN), u64::from(PATHS_IN_FLIGHT_MAX));
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
        "unit of {pixels} pixels is too large for a device: cut the frame into tiles of at most {PIXELS_MAX}"
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

/// The launches of one unit. Its result depends on the scene and the unit alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    unit: UnitParams,
    paths: u32,
}

impl Plan {
    /// A plan with at most so many paths in flight (at least [`PATHS_IN_FLIGHT_MIN`]).
    ///
    /// # Errors
    /// [`PlanError`] where the unit is out of range or too large.
    pub fn new(unit: &UnitParams, device: &DeviceShape, paths_in_flight: u32) -> Result<Self, PlanError> {
        check_unit(unit)?;
        let pixels = u64::from(unit.width) * u64::from(unit.height);
        if pixels > PIXELS_MAX {
            return Err(PlanError::Pixels { pixels });
        }
        let _ = device;
        let wanted = paths_in_flight.clamp(PATHS_IN_FLIGHT_MIN, PATHS_IN_FLIGHT_MAX);
        let paths = u64::from(wanted).min(pixels * u64::from(unit.sample_count)) as u32;
        Ok(Self { unit: *unit, paths })
    }

    /// Paths in flight.
    pub fn paths_in_flight(&self) -> u32 {
        self.paths
    }

    /// Device memory that the plan needs beside the scene, at an address that is a multiple of 256.
    pub fn workspace_bytes(&self) -> u64 {
        self.counts_offset() + ALIGNMENT
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

    /// What to do, in order, for a scene on the device and a workspace at an address. Afterwards the film and the counts are
    /// complete; nothing has to be read back in between.
    pub fn steps(&self, scene: &DeviceScene, workspace: u64) -> impl Iterator<Item = Step> {
        let (plan, scene) = (self.clone(), *scene);
        let total = self.pixels() * u64::from(self.unit.sample_count);
        let zero =
            Step::Zero { address: workspace, bytes: self.counts_offset() + size_of::<RayCounts>() as u64 };
        let batches = (0..total).step_by(self.paths as usize);
        std::iter::once(zero).chain(batches.map(move |first| plan.batch(&scene, workspace, first, total)))
    }

    fn batch(&self, scene: &DeviceScene, workspace: u64, first: u64, total: u64) -> Step {
        let path_count = (total - first).min(u64::from(self.paths)) as u32;
        let params = PathsParams {
            scene: *scene,
            unit: self.unit,
            film: workspace,
            counts: workspace + self.counts_offset(),
            first_sample: (first / self.pixels()) as u32,
            first_pixel: (first % self.pixels()) as u32,
            path_count,
            reserved: 0,
        };
        Step::Launch {
            kernel: Kernel::RenderPaths,
            grid: path_count.div_ceil(PATHS_BLOCK),
            block: PATHS_BLOCK,
            params: bytes_of_one(&params),
        }
    }
}
