//! The kernels on a CUDA device: the PTX, what is uploaded, and in which order kernels run. Knows no driver; whoever has one
//! implements [`Queue`].
//!
//! A unit is rendered so: [`SceneImage::of`] a checked scene is uploaded once; a [`Plan`] for the unit says how large a
//! workspace it needs and which [`Step`]s fill it; the film and the [`RayCounts`](crate::host::RayCounts) are then read
//! from its front. Any number of paths in flight gives the same bits, so a plan that does not fit is made again with fewer.

mod bytes;
mod image;
mod params;
mod plan;
mod queue;

pub use image::{ImagePart, SceneImage};
pub use params::DeviceScene;
pub use plan::{DeviceShape, PATHS_IN_FLIGHT_MIN, Plan, PlanError, Step};
pub use queue::{Queue, render_unit, upload};

/// The device's kernels for every GPU of compute capability 7.5 or newer, compiled by the driver when it is loaded. Made
/// from `source/entry_cuda.cu` by `cargo run --release -p tessera-kernels --example make_ptx`.
pub const PTX: &str = include_str!("../../images/tessera.ptx");

/// Least compute capability, major and minor.
pub const COMPUTE_CAPABILITY_MIN: (u32, u32) = (7, 5);

/// A kernel of [`PTX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kernel {
    /// A path from its first stage to its last by every thread.
    RenderPaths,
}

impl Kernel {
    /// Every kernel that a plan may launch.
    pub const ALL: [Kernel; 1] = [Kernel::RenderPaths];

    /// Its name in [`PTX`].
    pub fn name(self) -> &'static str {
        match self {
            Kernel::RenderPaths => "tessera_render_paths",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kernel_is_in_the_image() {
        for kernel in Kernel::ALL {
            assert!(PTX.contains(&format!(".entry {}(", kernel.name())), "{kernel:?}");
        }
    }
}
