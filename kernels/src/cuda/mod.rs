//! The kernels on a CUDA device: the PTX, the data to upload, and the order of the launches. Knows
//! no driver; the owner of a stream implements [`Queue`].
//!
//! Rendering units has three steps. The [`SceneImage::of`] a checked scene is uploaded once. A
//! [`Plan`] for one unit or several says how large a workspace it needs and which [`Step`]s fill
//! it. The films and the [`RayCounts`](crate::host::RayCounts) are then read from the front of the
//! workspace. The bits depend neither on the number of paths in flight nor on the units beside, so
//! a plan that does not fit is made again with fewer.

mod compress;
mod cubin;
mod film;
mod hierarchy;
mod image;
mod params;
mod plan;
mod queue;
mod standing;

use crate::packed::PackedPtx;
#[doc(hidden)]
pub use compress::{CompressedNode, LeafTriangle};
pub use cubin::CUBIN_CAPABILITIES;
pub use film::FilmImages;
#[doc(hidden)]
pub use hierarchy::CompressedBvh;
pub use image::{ImagePart, SceneImage};
pub(crate) use params::BatchParams;
pub use params::DeviceScene;
pub use plan::{DeviceShape, PATHS_IN_FLIGHT_MIN, Plan, PlanError, Shape, Step, UNITS_MAX};
pub use queue::{Queue, render_unit, render_units, upload};

static PLAIN: PackedPtx = PackedPtx::new(include_bytes!("../../images/tessera.ptx.zst"));
static INSTANCES: PackedPtx =
    PackedPtx::new(include_bytes!("../../images/tessera-instances.ptx.zst"));

/// The device's kernels, compiled twice from one source: with and without support for instances.
/// Both give the same bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum KernelSet {
    /// For scenes without instances.
    Plain,
    /// For scenes with instances. Slower for other scenes.
    Instances,
}

impl KernelSet {
    /// Both sets.
    pub const ALL: [KernelSet; 2] = [KernelSet::Plain, KernelSet::Instances];

    /// Returns the PTX for every GPU of compute capability 7.5 or newer. The driver compiles it
    /// when it is loaded. Made from `source/entry/cuda.cu` and `source/entry/cuda_instances.cu` by
    /// `cargo run --release -p tessera-kernels --example make_ptx`.
    pub fn ptx(self) -> &'static str {
        match self {
            KernelSet::Plain => PLAIN.text(),
            KernelSet::Instances => INSTANCES.text(),
        }
    }
}

/// Lowest compute capability, major and minor.
pub const COMPUTE_CAPABILITY_MIN: (u32, u32) = (7, 5);

/// A kernel of a [`KernelSet`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kernel {
    /// Takes each path from its first stage to its last in one thread, for small units.
    RenderPaths,
    /// Makes the camera rays of a batch of paths.
    Generate,
    /// Finds the closest hits of the paths alive at a depth.
    Extend,
    /// Computes emission, light samples and next rays at those hits.
    Shade,
    /// Tests whether light samples arrive.
    Shadow,
    /// Adds the batch's values to the film.
    Finish,
    /// Does the work of [`Kernel::RenderPaths`] for scenes that have layers.
    RenderLayered,
    /// Shades the hits that [`Kernel::Shade`] leaves in scenes that have layers.
    ShadeLayered,
    /// Does the work of [`Kernel::Shadow`] for scenes that have panes.
    ShadowPanes,
}

impl Kernel {
    /// Every kernel that a plan may launch.
    pub const ALL: [Kernel; 9] = [
        Kernel::RenderPaths,
        Kernel::Generate,
        Kernel::Extend,
        Kernel::Shade,
        Kernel::Shadow,
        Kernel::Finish,
        Kernel::RenderLayered,
        Kernel::ShadeLayered,
        Kernel::ShadowPanes,
    ];

    /// Returns the kernel's name in the PTX.
    pub fn name(self) -> &'static str {
        match self {
            Kernel::RenderPaths => "tessera_render_paths",
            Kernel::Generate => "tessera_generate",
            Kernel::Extend => "tessera_extend",
            Kernel::Shade => "tessera_shade",
            Kernel::Shadow => "tessera_shadow",
            Kernel::Finish => "tessera_finish",
            Kernel::RenderLayered => "tessera_render_layered",
            Kernel::ShadeLayered => "tessera_shade_layered",
            Kernel::ShadowPanes => "tessera_shadow_panes",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kernel_is_in_both_images() {
        for (kernels, kernel) in
            KernelSet::ALL.iter().flat_map(|kernels| Kernel::ALL.map(|kernel| (kernels, kernel)))
        {
            assert!(
                kernels.ptx().contains(&format!(".entry {}(", kernel.name())),
                "{kernels:?}: {kernel:?}"
            );
        }
    }
}
