//! Kernel parameters: the twins of the structs in `source/entry_cuda.cu` and of `SceneView`, with device addresses in the
//! place of pointers.

use super::bytes::Plain;
use tessera_layout::{Camera, Environment, SceneView, UnitParams};

/// A scene on a device: [`SceneView`] with device addresses, or with offsets into a [`SceneImage`](super::SceneImage) until it
/// is [`DeviceScene::at`] an address.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(C, align(16))]
pub struct DeviceScene {
    /// The arrays in the order of [`SceneView`]'s pointers.
    pub(crate) arrays: [u64; 12],
    pub(crate) triangle_count: u32,
    pub(crate) material_count: u32,
    pub(crate) texture_count: u32,
    pub(crate) light_count: u32,
    pub(crate) bvh_node_count: u32,
    pub(crate) bvh_padding: f32,
    pub(crate) reserved: [u32; 2],
    pub(crate) environment: Environment,
    pub(crate) camera: Camera,
}

const _: () = assert!(size_of::<DeviceScene>() == size_of::<SceneView>());
const _: () = assert!(
    std::mem::offset_of!(DeviceScene, triangle_count) == std::mem::offset_of!(SceneView, triangle_count)
        && std::mem::offset_of!(DeviceScene, bvh_padding) == std::mem::offset_of!(SceneView, bvh_padding)
        && std::mem::offset_of!(DeviceScene, environment) == std::mem::offset_of!(SceneView, environment)
        && std::mem::offset_of!(DeviceScene, camera) == std::mem::offset_of!(SceneView, camera)
);

// SAFETY: 12 addresses, 8 words, 28 words and 20 words, all `repr(C)`: 320 bytes without padding.
unsafe impl Plain for DeviceScene {}

/// Bytes of a [`DeviceScene`].
const DEVICE_SCENE_BYTES: usize = size_of::<DeviceScene>();

impl DeviceScene {
    /// The scene whose image lies at a device address. `self` must hold offsets, as [`SceneImage::scene`] gives it.
    ///
    /// [`SceneImage::scene`]: super::SceneImage::scene
    #[must_use]
    pub fn at(&self, address: u64) -> Self {
        let mut moved = *self;
        for array in &mut moved.arrays {
            *array = array.wrapping_add(address);
        }
        moved
    }

    /// As bytes, to hand it to another process of this machine.
    pub fn to_bytes(&self) -> Vec<u8> {
        super::bytes::bytes_of_one(self)
    }

    /// From [`DeviceScene::to_bytes`]; `None` where the length is wrong. Kernels follow what it says, so the bytes must come
    /// from a process that is trusted as much as this one.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; DEVICE_SCENE_BYTES] = bytes.try_into().ok()?;
        // SAFETY: every field is a number, for which all bits are valid; `read_unaligned` asks for no alignment.
        Some(unsafe { bytes.as_ptr().cast::<Self>().read_unaligned() })
    }
}

/// Twin of `PathsParams`.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(16))]
pub(crate) struct PathsParams {
    pub(crate) scene: DeviceScene,
    pub(crate) unit: UnitParams,
    pub(crate) film: u64,
    pub(crate) counts: u64,
    pub(crate) first_sample: u32,
    pub(crate) first_pixel: u32,
    pub(crate) path_count: u32,
    pub(crate) reserved: u32,
}

const _: () = assert!(size_of::<PathsParams>() == 416);

// SAFETY: 320 + 64 + 2 * 8 + 4 * 4 = 416 bytes without padding, all numbers.
unsafe impl Plain for PathsParams {}
