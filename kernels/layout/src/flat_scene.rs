//! A whole scene at one moment, flattened: what a device is given.

use crate::{
    AliasEntry, Array, Bvh, BvhNode8, Camera, Environment, EnvironmentCell, Instance, Layers,
    Light, LightKind, LightNode, Material, Medium, Meshes, ShadingVertex, Texture, Triangle,
    TriangleBlock, material_flags,
};
use std::sync::Arc;

/// Triangles that a scene may show, each instance's counted by itself: ids keep clear of
/// [`crate::BLOCK_ALPHA_FLAG`].
pub const SHOWN_TRIANGLES_MAX: u64 = 1 << 30;

/// One frame's scene as plain arrays. Everything is world space at the frame's time.
///
/// What does not change over the frames of an animation (textures, environment; geometry and its
/// hierarchy where only cameras or lights move) is shared.
#[derive(Clone, Debug)]
pub struct FlatScene {
    /// Indexed by triangle id.
    pub triangles: Array<Triangle>,
    /// Three indices into `vertices` per triangle id.
    pub triangle_vertices: Array<[u32; 3]>,
    /// Shading vertices.
    pub vertices: Array<ShadingVertex>,
    /// At least one material.
    pub materials: Array<Material>,
    /// What extensions add to materials; empty, or [`Layers::NONE`] and then those that materials
    /// name.
    pub layers: Array<Layers>,
    /// What closed surfaces enclose; empty where `layers` is, else [`Medium::AIR`] and then those
    /// that layers name.
    pub media: Array<Medium>,
    /// Texture descriptors.
    pub textures: Array<Texture>,
    /// Texel bytes, see [`Texture::offset`].
    pub texels: Array<u8>,
    /// Emitters: points and spots, then triangles in id order, then directional ones, then the
    /// environment.
    pub lights: Array<Light>,
    /// One entry for all lights that have a place, if there are any, and one for each other; in
    /// proportion to estimated power.
    pub light_alias: Array<AliasEntry>,
    /// The tree over lights that have a place; see [`LightNode`].
    pub light_nodes: Array<LightNode>,
    /// The environment, possibly absent.
    pub environment: Environment,
    /// `width * height` RGB texels.
    pub environment_texels: Array<[f32; 3]>,
    /// One entry per environment texel, and behind them one per row.
    pub environment_cells: Array<EnvironmentCell>,
    /// The camera.
    pub camera: Camera,
    /// The hierarchy over `triangles` and `instances`.
    pub bvh: Arc<Bvh>,
    /// Meshes in their places, in the order of their ids.
    pub instances: Array<Instance>,
    /// The meshes that instances show.
    pub meshes: Arc<Meshes>,
}

impl FlatScene {
    /// Returns how many materials have [`material_flags::PANE`].
    pub fn pane_count(&self) -> u32 {
        let is_pane = |material: &&Material| material.flags & material_flags::PANE != 0;
        self.materials.iter().filter(is_pane).count() as u32
    }

    /// Bytes of all arrays: what a device must hold.
    pub fn bytes(&self) -> u64 {
        fn of<T>(items: &[T]) -> u64 {
            size_of_val(items) as u64
        }
        of(&self.triangles)
            + of(&self.triangle_vertices)
            + of(&self.vertices)
            + of(&self.materials)
            + of(&self.layers)
            + of(&self.media)
            + of(&self.textures)
            + of(&self.texels)
            + of(&self.lights)
            + of(&self.light_alias)
            + of(&self.light_nodes)
            + of(&self.environment_texels)
            + of(&self.environment_cells)
            + of(&self.bvh.nodes)
            + of(&self.bvh.blocks)
            + of(&self.instances)
            + of(&self.meshes.triangles)
            + of(&self.meshes.triangle_vertices)
            + of(&self.meshes.vertices)
            + of(&self.meshes.nodes)
            + of(&self.meshes.blocks)
    }

    /// Triangles, each instance's counted by itself: one more than the greatest id.
    pub fn shown_triangles(&self) -> u64 {
        let instanced = self.instances.iter().map(|instance| u64::from(instance.triangle_count));
        self.triangles.len() as u64 + instanced.sum::<u64>()
    }

    /// How many lights have a place: as many as the tree has leaves.
    pub fn placed_lights(&self) -> usize {
        let (lights, groups) = (self.lights.len(), self.light_alias.len());
        if lights > groups {
            return (lights - groups + 1).min(lights);
        }
        let has_place = |light: &Light| {
            ![LightKind::Directional as u32, LightKind::Environment as u32].contains(&light.kind)
        };
        usize::from(self.lights.first().is_some_and(has_place))
    }

    /// The pointers and counts that a kernel gets. Valid as long as `self` is borrowed and
    /// unchanged.
    pub fn view(&self) -> SceneView {
        SceneView {
            triangles: self.triangles.as_ptr(),
            triangle_vertices: self.triangle_vertices.as_ptr(),
            vertices: self.vertices.as_ptr(),
            materials: self.materials.as_ptr(),
            textures: self.textures.as_ptr(),
            texels: self.texels.as_ptr(),
            lights: self.lights.as_ptr(),
            light_alias: self.light_alias.as_ptr(),
            light_nodes: self.light_nodes.as_ptr(),
            environment_texels: self.environment_texels.as_ptr(),
            environment_cells: self.environment_cells.as_ptr(),
            bvh_nodes: self.bvh.nodes.as_ptr(),
            triangle_blocks: self.bvh.blocks.as_ptr(),
            triangle_count: self.triangles.len() as u32,
            material_count: self.materials.len() as u32,
            texture_count: self.textures.len() as u32,
            light_count: self.lights.len() as u32,
            bvh_node_count: self.bvh.nodes.len() as u32,
            bvh_padding: self.bvh.padding,
            placed_light_count: self.placed_lights() as u32,
            light_node_count: self.light_nodes.len() as u32,
            layers: if self.layers.is_empty() { std::ptr::null() } else { self.layers.as_ptr() },
            environment: self.environment,
            camera: self.camera,
            instances: self.instances.as_ptr(),
            mesh_triangles: self.meshes.triangles.as_ptr(),
            mesh_triangle_vertices: self.meshes.triangle_vertices.as_ptr(),
            mesh_vertices: self.meshes.vertices.as_ptr(),
            mesh_nodes: self.meshes.nodes.as_ptr(),
            mesh_blocks: self.meshes.blocks.as_ptr(),
            media: self.media.as_ptr(),
            instance_count: self.instances.len() as u32,
            medium_count: self.media.len() as u32,
            pane_count: self.pane_count(),
            reserved: [0; 3],
        }
    }
}

/// Pointers into a [`FlatScene`] (host memory here, device memory on a GPU).
#[derive(Clone, Copy, Debug)]
#[repr(C, align(16))]
pub struct SceneView {
    /// `triangle_count` entries.
    pub triangles: *const Triangle,
    /// `triangle_count` entries.
    pub triangle_vertices: *const [u32; 3],
    /// Shading vertices.
    pub vertices: *const ShadingVertex,
    /// `material_count` entries.
    pub materials: *const Material,
    /// `texture_count` entries.
    pub textures: *const Texture,
    /// Texel bytes.
    pub texels: *const u8,
    /// `light_count` entries.
    pub lights: *const Light,
    /// One entry for all lights with a place together, if there are any, and one for each other.
    pub light_alias: *const AliasEntry,
    /// `light_node_count` entries.
    pub light_nodes: *const LightNode,
    /// `environment.width * environment.height` entries.
    pub environment_texels: *const [f32; 3],
    /// `environment.width * environment.height` entries of texels, then `environment.height` of
    /// rows.
    pub environment_cells: *const EnvironmentCell,
    /// `bvh_node_count` entries.
    pub bvh_nodes: *const BvhNode8,
    /// The hierarchy's leaves.
    pub triangle_blocks: *const TriangleBlock,
    /// Triangles.
    pub triangle_count: u32,
    /// Materials.
    pub material_count: u32,
    /// Textures.
    pub texture_count: u32,
    /// Lights.
    pub light_count: u32,
    /// Hierarchy nodes; 0 means that every ray misses.
    pub bvh_node_count: u32,
    /// [`Bvh::padding`].
    pub bvh_padding: f32,
    /// Lights that have a place, which come first.
    pub placed_light_count: u32,
    /// Nodes of the tree over them.
    pub light_node_count: u32,
    /// What extensions add to materials; null where none of them has any.
    pub layers: *const Layers,
    /// The environment.
    pub environment: Environment,
    /// The camera.
    pub camera: Camera,
    /// `instance_count` entries.
    pub instances: *const Instance,
    /// [`Meshes::triangles`].
    pub mesh_triangles: *const Triangle,
    /// [`Meshes::triangle_vertices`].
    pub mesh_triangle_vertices: *const [u32; 3],
    /// [`Meshes::vertices`].
    pub mesh_vertices: *const ShadingVertex,
    /// [`Meshes::nodes`]; null on a device, whose hierarchy is another one.
    pub mesh_nodes: *const BvhNode8,
    /// [`Meshes::blocks`]; likewise.
    pub mesh_blocks: *const TriangleBlock,
    /// `medium_count` entries.
    pub media: *const Medium,
    /// Instances.
    pub instance_count: u32,
    /// Media; 0 where there are no layers.
    pub medium_count: u32,
    /// Materials with [`material_flags::PANE`]; shadow rays and paths pass panes where it is not 0.
    pub pane_count: u32,
    /// Zero.
    pub reserved: [u32; 3],
}

const _: () = assert!(size_of::<SceneView>() == 104 + 40 + 112 + size_of::<Camera>() + 80);
