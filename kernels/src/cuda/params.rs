//! Kernel parameters: the twins of the structs in `source/layout.h` and
//! `source/integrator/wavefront.h`, with device addresses in place of pointers.

use super::KernelSet;
use bytemuck::{Pod, Zeroable};
use tessera_layout::{Camera, Environment, SceneView, UnitParams};

/// Arrays of [`SceneView`] that a device has: all except the wide hierarchy, which comes last.
pub(crate) const VIEW_ARRAYS: usize = 11;
/// Arrays of instances and meshes that a device has: all except the meshes' wide hierarchies, which
/// come last.
pub(crate) const MESH_ARRAYS: usize = 4;

/// A scene on a device, the twin of `DeviceScene`: [`SceneView`] with device addresses and the
/// compressed hierarchy. Before [`DeviceScene::at`] it has offsets into a
/// [`SceneImage`](super::SceneImage).
#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable)]
#[repr(C, align(16))]
pub struct DeviceScene {
    /// Arrays in the order of [`SceneView`]'s pointers.
    pub(crate) arrays: [u64; VIEW_ARRAYS],
    /// Nodes and triangle blocks of the wide hierarchy; always 0.
    pub(crate) absent: [u64; 2],
    pub(crate) triangle_count: u32,
    pub(crate) material_count: u32,
    pub(crate) texture_count: u32,
    pub(crate) light_count: u32,
    pub(crate) bvh_node_count: u32,
    pub(crate) bvh_padding: f32,
    pub(crate) placed_light_count: u32,
    pub(crate) light_node_count: u32,
    /// Layers of materials; 0 if no material has any.
    pub(crate) layers: u64,
    pub(crate) environment: Environment,
    pub(crate) camera: Camera,
    /// Instances, and the triangles, triangles' vertices and vertices of meshes.
    pub(crate) instances: [u64; MESH_ARRAYS],
    /// Nodes and triangle blocks of the meshes' wide hierarchies; always 0.
    pub(crate) absent_of_meshes: [u64; 2],
    /// Media that closed surfaces enclose.
    pub(crate) media: u64,
    pub(crate) instance_count: u32,
    pub(crate) medium_count: u32,
    pub(crate) pane_count: u32,
    pub(crate) reserved: [u32; 3],
    /// Nodes and triangles of the compressed hierarchy.
    pub(crate) hierarchy: [u64; 2],
}

const _: () = assert!(size_of::<DeviceScene>() == size_of::<SceneView>() + 16);
const _: () = assert!(
    std::mem::offset_of!(DeviceScene, absent) == std::mem::offset_of!(SceneView, bvh_nodes)
        && std::mem::offset_of!(DeviceScene, triangle_count)
            == std::mem::offset_of!(SceneView, triangle_count)
        && std::mem::offset_of!(DeviceScene, bvh_padding)
            == std::mem::offset_of!(SceneView, bvh_padding)
        && std::mem::offset_of!(DeviceScene, layers) == std::mem::offset_of!(SceneView, layers)
        && std::mem::offset_of!(DeviceScene, environment)
            == std::mem::offset_of!(SceneView, environment)
        && std::mem::offset_of!(DeviceScene, camera) == std::mem::offset_of!(SceneView, camera)
        && std::mem::offset_of!(DeviceScene, instances)
            == std::mem::offset_of!(SceneView, instances)
        && std::mem::offset_of!(DeviceScene, absent_of_meshes)
            == std::mem::offset_of!(SceneView, mesh_nodes)
        && std::mem::offset_of!(DeviceScene, media) == std::mem::offset_of!(SceneView, media)
        && std::mem::offset_of!(DeviceScene, instance_count)
            == std::mem::offset_of!(SceneView, instance_count)
);

impl DeviceScene {
    /// Returns the kernels that render the scene.
    pub fn kernel_set(&self) -> KernelSet {
        if self.instance_count == 0 { KernelSet::Plain } else { KernelSet::Instances }
    }

    /// The scene whose image lies at a device address. `self` must hold offsets, as
    /// [`SceneImage::scene`] gives it.
    ///
    /// [`SceneImage::scene`]: super::SceneImage::scene
    #[must_use]
    pub fn at(&self, address: u64) -> Self {
        let mut moved = *self;
        for array in moved
            .arrays
            .iter_mut()
            .chain(&mut moved.hierarchy)
            .chain(&mut moved.instances)
            .chain([&mut moved.media])
        {
            *array = array.wrapping_add(address);
        }
        if moved.layers != 0 {
            moved.layers = moved.layers.wrapping_add(address);
        }
        moved
    }

    /// Returns the scene as bytes, to pass it to another process of this machine.
    pub fn to_bytes(&self) -> Vec<u8> {
        bytemuck::bytes_of(self).to_vec()
    }

    /// Reads [`DeviceScene::to_bytes`]; `None` if the length is wrong. Kernels follow the addresses
    /// in it, so the bytes must come from a process that is trusted as much as this one.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        bytemuck::try_pod_read_unaligned(bytes).ok()
    }
}

/// Twin of `PathArrays`.
#[derive(Clone, Copy, Debug, Default, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct PathArrays {
    pub(crate) origin: u64,
    pub(crate) direction: u64,
    pub(crate) throughput: u64,
    pub(crate) radiance: u64,
    pub(crate) vantage: u64,
    pub(crate) hit: u64,
    pub(crate) shadow_direction: u64,
    pub(crate) shadow_radiance: u64,
    pub(crate) queue: [u64; 2],
    pub(crate) passes: u64,
    pub(crate) keys: u64,
    pub(crate) first: u64,
}

/// Twin of `PathRun`: paths of a batch that follow one another in one unit. It has no addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C, align(16))]
pub(crate) struct PathRun {
    pub(crate) first_slot: u32,
    pub(crate) first_sample: u32,
    pub(crate) first_pixel: u32,
    pub(crate) x: u32,
    pub(crate) y: u32,
    pub(crate) width: u32,
    pub(crate) height: u32,
    /// Position of the unit's film among the plan's, in sums.
    pub(crate) film: u32,
    pub(crate) unit: u32,
    pub(crate) reserved: [u32; 3],
}

const _: () = assert!(size_of::<PathRun>() == 48);

/// Twin of `BatchParams`: the parameter of every kernel.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C, align(16))]
pub(crate) struct BatchParams {
    pub(crate) scene: DeviceScene,
    pub(crate) unit: UnitParams,
    pub(crate) paths: PathArrays,
    pub(crate) stages: u64,
    pub(crate) film: u64,
    pub(crate) counts: u64,
    pub(crate) runs: u64,
    pub(crate) run_count: u32,
    pub(crate) unit_count: u32,
    pub(crate) path_count: u32,
    pub(crate) depth: u32,
    pub(crate) capacity: u32,
    pub(crate) reserved: u32,
}

const _: () = assert!(size_of::<BatchParams>() == size_of::<DeviceScene>() + 224);
