//! A scene in the memory of a device: one range of memory with every array in it. Uploads nothing
//! itself.

use super::compress::CompressedBvh;
use super::params::{DeviceScene, MESH_ARRAYS, VIEW_ARRAYS};
use crate::CheckedScene;
use crate::copies::without_standing;
use bytemuck::must_cast_slice;
use std::sync::Arc;

/// Arrays begin at multiples of this, like device allocations.
const ALIGNMENT: u64 = 256;

/// A piece of a [`SceneImage`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImagePart<'a> {
    /// Position in bytes from the image's start.
    pub offset: u64,
    /// Bytes of the piece. May be empty.
    pub bytes: &'a [u8],
}

/// A checked scene laid out for a device. Clones are cheap. The arrays are the scene's own, except
/// for the hierarchy, and for the triangles of a scene in which something stands still.
#[derive(Clone, Debug)]
pub struct SceneImage {
    scene: CheckedScene,
    hierarchy: Arc<CompressedBvh>,
    offsets: [u64; ARRAYS],
    bytes: u64,
}

/// Positions in [`arrays`] of the compressed hierarchy's two arrays, the materials' layers, the
/// media, and the instances with their meshes.
const HIERARCHY: usize = VIEW_ARRAYS;
const LAYERS: usize = HIERARCHY + 2;
const MEDIA: usize = LAYERS + 1;
const INSTANCES: usize = MEDIA + 1;
const ARRAYS: usize = INSTANCES + MESH_ARRAYS;

impl SceneImage {
    /// Lays a scene out. Compresses its hierarchies, which takes some seconds for ten million
    /// triangles.
    pub fn of(scene: &CheckedScene) -> Self {
        let scene = &without_standing(scene);
        let hierarchy = Arc::new(CompressedBvh::of(&scene.bvh, &scene.instances, &scene.meshes));
        let mut offsets = [0; ARRAYS];
        let mut end = 0u64;
        for (offset, array) in offsets.iter_mut().zip(arrays(scene, &hierarchy)) {
            *offset = end;
            end += (array.len() as u64).next_multiple_of(ALIGNMENT);
        }
        Self { scene: scene.clone(), hierarchy, offsets, bytes: end.max(ALIGNMENT) }
    }

    /// Returns the device memory that the image needs, in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the pieces to upload. Bytes between them are never read.
    pub fn parts(&self) -> impl Iterator<Item = ImagePart<'_>> {
        self.offsets
            .iter()
            .zip(arrays(&self.scene, &self.hierarchy))
            .map(|(offset, bytes)| ImagePart { offset: *offset, bytes })
    }

    /// Returns the hierarchy, for tests.
    #[doc(hidden)]
    pub fn hierarchy(&self) -> &CompressedBvh {
        &self.hierarchy
    }

    /// Returns the scene with offsets in place of addresses; see [`DeviceScene::at`].
    pub fn scene(&self) -> DeviceScene {
        let view = self.scene.view();
        DeviceScene {
            arrays: std::array::from_fn(|index| self.offsets[index]),
            absent: [0; 2],
            triangle_count: view.triangle_count,
            material_count: view.material_count,
            texture_count: view.texture_count,
            light_count: view.light_count,
            bvh_node_count: view.bvh_node_count,
            bvh_padding: view.bvh_padding,
            placed_light_count: view.placed_light_count,
            light_node_count: view.light_node_count,
            // The offset is never 0, because triangles or materials are at the image's start.
            layers: if self.scene.layers.is_empty() { 0 } else { self.offsets[LAYERS] },
            environment: view.environment,
            camera: view.camera,
            instances: std::array::from_fn(|index| self.offsets[INSTANCES + index]),
            absent_of_meshes: [0; 2],
            media: self.offsets[MEDIA],
            instance_count: view.instance_count,
            medium_count: view.medium_count,
            pane_count: view.pane_count,
            reserved: view.reserved,
            hierarchy: [self.offsets[HIERARCHY], self.offsets[HIERARCHY + 1]],
        }
    }
}

/// Returns the scene's arrays in the order of `SceneView`'s pointers, then the compressed
/// hierarchy's, the layers, the media, and the instances and meshes.
fn arrays<'a>(scene: &'a CheckedScene, hierarchy: &'a CompressedBvh) -> [&'a [u8]; ARRAYS] {
    [
        must_cast_slice(&scene.triangles),
        must_cast_slice(&scene.triangle_vertices),
        must_cast_slice(&scene.vertices),
        must_cast_slice(&scene.materials),
        must_cast_slice(&scene.textures),
        must_cast_slice(&scene.texels),
        must_cast_slice(&scene.lights),
        must_cast_slice(&scene.light_alias),
        must_cast_slice(&scene.light_nodes),
        must_cast_slice(&scene.environment_texels),
        must_cast_slice(&scene.environment_cells),
        must_cast_slice(&hierarchy.nodes),
        must_cast_slice(&hierarchy.triangles),
        must_cast_slice(&scene.layers),
        must_cast_slice(&scene.media),
        must_cast_slice(&scene.instances),
        must_cast_slice(&scene.meshes.triangles),
        must_cast_slice(&scene.meshes.triangle_vertices),
        must_cast_slice(&scene.meshes.vertices),
    ]
}
