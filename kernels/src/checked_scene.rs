//! A scene whose indices have all been checked, so that kernels can follow them without a check.

use crate::checked_hierarchy::{self, MeshTrees};
use std::ops::Deref;
use std::sync::Arc;
use tessera_layout::{
    Bvh, CHILD_INSTANCE_FLAG, CHILD_LEAF_FLAG, FlatScene, Instance, LAYERS_MAX, LIGHT_TRAIL_BITS,
    LIGHT_TREE_DEPTH_MAX, LightKind, MEDIA_MAX, Medium, Meshes, NONE, SHOWN_TRIANGLES_MAX,
    TexelFormat, Texture, Triangle, light_child_bits, triangle_flags,
};

/// Largest coordinate of a box in the hierarchy, in metres. Beyond it the device's grids overflow.
pub(crate) const BOUND_MAX: f32 = 1e35;

/// A fault of a flattened scene. It is the fault of the code that made the scene, not of the
/// kernels' caller.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SceneError {
    /// Two arrays that belong together have different lengths.
    #[error("flattened scene: {what} has {found} entries where {expected} are needed")]
    Length {
        /// Name of the array.
        what: &'static str,
        /// Length of the array.
        found: usize,
        /// Length that the array should have.
        expected: usize,
    },
    /// An index points outside its array.
    #[error("flattened scene: {what} {index} points outside its array")]
    Index {
        /// Name of the array that has the index.
        what: &'static str,
        /// Position of the index in that array.
        index: usize,
    },
    /// A box reaches further than single precision can compute with.
    #[error(
        "flattened scene: the box of bvh node {index} is not finite or reaches beyond \
            {BOUND_MAX:e} m"
    )]
    Extent {
        /// Number of the node.
        index: usize,
    },
    /// The hierarchy is not a tree, or is deeper than kernels can walk.
    #[error("flattened scene: the hierarchy is not a tree of at most {0} levels")]
    Hierarchy(u32),
}

/// A [`FlatScene`] that kernels can render. Clones are cheap.
#[derive(Clone, Debug)]
pub struct CheckedScene {
    scene: Arc<FlatScene>,
    meshes: Arc<CheckedMeshes>,
}

/// What is known of the instanced meshes of a scene, which frames of a film share. It keeps them in
/// memory.
#[derive(Debug)]
pub struct CheckedMeshes {
    meshes: Arc<Meshes>,
    /// Number of materials for which their triangles were checked.
    materials: usize,
    trees: Arc<MeshTrees>,
}

impl CheckedScene {
    /// Checks every length and every index once, in one pass over the scene.
    ///
    /// # Errors
    /// [`SceneError`] names the first array that is wrong.
    pub fn new(scene: Arc<FlatScene>) -> Result<Self, SceneError> {
        Self::after(scene, None)
    }

    /// As [`Self::new`], but what was checked with another frame is not checked again.
    ///
    /// # Errors
    /// Those of [`Self::new`].
    pub fn after(scene: Arc<FlatScene>, last: Option<&CheckedMeshes>) -> Result<Self, SceneError> {
        let materials = scene.materials.len();
        let last = last
            .filter(|last| Arc::ptr_eq(&last.meshes, &scene.meshes) && last.materials == materials);
        check_lengths(&scene)?;
        check_surfaces(&scene)?;
        check_textures(&scene)?;
        check_lights(&scene)?;
        if last.is_none() {
            check_mesh_surfaces(&scene)?;
        }
        check_instances(&scene)?;
        let known = last.map(|last| last.trees.clone()).unwrap_or_default();
        let trees = checked_hierarchy::check(&scene, known)?;
        let meshes = CheckedMeshes { meshes: Arc::clone(&scene.meshes), materials, trees };
        Ok(Self { scene, meshes: Arc::new(meshes) })
    }

    /// The scene with another hierarchy, over the same triangles.
    pub(crate) fn with_bvh(&self, bvh: Bvh) -> Self {
        let scene = FlatScene { bvh: Arc::new(bvh), ..FlatScene::clone(&self.scene) };
        Self { scene: Arc::new(scene), meshes: Arc::clone(&self.meshes) }
    }

    /// Returns what the next frame of the film need not check again.
    pub fn checked_meshes(&self) -> &Arc<CheckedMeshes> {
        &self.meshes
    }
}

impl Deref for CheckedScene {
    type Target = FlatScene;

    fn deref(&self) -> &FlatScene {
        &self.scene
    }
}

fn equal(what: &'static str, found: usize, expected: usize) -> Result<(), SceneError> {
    if found == expected { Ok(()) } else { Err(SceneError::Length { what, found, expected }) }
}

pub(crate) fn all<T>(
    what: &'static str,
    items: &[T],
    good: impl Fn(&T) -> bool,
) -> Result<(), SceneError> {
    match items.iter().position(|item| !good(item)) {
        None => Ok(()),
        Some(index) => Err(SceneError::Index { what, index }),
    }
}

fn check_lengths(scene: &FlatScene) -> Result<(), SceneError> {
    equal("triangle_vertices", scene.triangle_vertices.len(), scene.triangles.len())?;
    let placed = scene.placed_lights();
    let far = scene.lights.len().saturating_sub(placed);
    equal("light_alias", scene.light_alias.len(), far + usize::from(placed > 0))?;
    let environment = &scene.environment;
    let texels = (u64::from(environment.width) * u64::from(environment.height)) as usize;
    equal("environment_texels", scene.environment_texels.len(), texels)?;
    let rows = if texels > 0 { environment.height as usize } else { 0 };
    equal("environment_cells", scene.environment_cells.len(), texels + rows)?;
    let (of_texels, of_rows) = scene.environment_cells.split_at(texels);
    all("environment_cells", of_texels, |cell| cell.start < environment.width)?;
    all("environment_cells", of_rows, |cell| cell.start < environment.height)?;
    if scene.layers.len() > LAYERS_MAX {
        return Err(SceneError::Length {
            what: "layers",
            found: scene.layers.len(),
            expected: LAYERS_MAX,
        });
    }
    if scene.media.len() > MEDIA_MAX {
        return Err(SceneError::Length {
            what: "media",
            found: scene.media.len(),
            expected: MEDIA_MAX,
        });
    }
    let most = CHILD_LEAF_FLAG as usize; // ids keep their top bit for flags
    for (what, length) in [
        ("triangles", scene.triangles.len()),
        ("vertices", scene.vertices.len()),
        ("lights", scene.lights.len()),
        ("environment_texels", texels),
    ] {
        shorter(what, length, most)?;
    }
    // In leaves the next bit is a flag too.
    shorter("bvh blocks", scene.bvh.blocks.len(), CHILD_INSTANCE_FLAG as usize)?;
    shorter("instances", scene.instances.len(), CHILD_INSTANCE_FLAG as usize)
}

pub(crate) fn shorter(what: &'static str, found: usize, expected: usize) -> Result<(), SceneError> {
    if found < expected { Ok(()) } else { Err(SceneError::Length { what, found, expected }) }
}

fn check_surfaces(scene: &FlatScene) -> Result<(), SceneError> {
    let (materials, vertices) = (scene.materials.len(), scene.vertices.len());
    let (lights, textures, layers) = (scene.lights.len(), scene.textures.len(), scene.layers.len());
    let index = |value: u32, length: usize| (value as usize) < length;
    let optional = |value: u32, length: usize| value == NONE || index(value, length);
    all("triangle", &scene.triangles, |t| {
        index(t.material, materials) && optional(t.light, lights)
    })?;
    all("triangle_vertices", &scene.triangle_vertices, |t| t.iter().all(|v| index(*v, vertices)))?;
    all("material", &scene.materials, |m| {
        (m.layers == 0 || index(m.layers, layers))
            && [
                &m.base_color_texture,
                &m.metallic_roughness_texture,
                &m.normal_texture,
                &m.emission_texture,
            ]
            .iter()
            .all(|texture| optional(texture.texture, textures))
    })?;
    all("layers", &scene.layers, |l| {
        index(l.medium, scene.media.len())
            && l.textures.iter().all(|used| optional(used.texture, textures))
    })?;
    let is_air_first = scene.media.first().is_none_or(|first| *first == Medium::AIR);
    if is_air_first { Ok(()) } else { Err(SceneError::Index { what: "medium", index: 0 }) }
}

/// Checks that every triangle and vertex of instanced meshes exists.
fn check_mesh_surfaces(scene: &FlatScene) -> Result<(), SceneError> {
    let meshes = &scene.meshes;
    let (materials, vertices) = (scene.materials.len(), meshes.vertices.len());
    let is_plain = |t: &Triangle| t.light == NONE && t.flags & triangle_flags::EMISSIVE == 0;
    all("mesh triangle", &meshes.triangles, |t| (t.material as usize) < materials && is_plain(t))?;
    equal("mesh_triangle_vertices", meshes.triangle_vertices.len(), meshes.triangles.len())?;
    all("mesh_triangle_vertices", &meshes.triangle_vertices, |t| {
        t.iter().all(|v| (*v as usize) < vertices)
    })
}

/// Checks that ids are consecutive and below their flag, that every mesh exists, and that one that
/// stands as it is does.
fn check_instances(scene: &FlatScene) -> Result<(), SceneError> {
    let meshes = &scene.meshes;
    let mut next = scene.triangles.len();
    for (index, instance) in scene.instances.iter().enumerate() {
        let (first, count) = (instance.first_triangle as usize, instance.triangle_count as usize);
        if instance.first_id as usize != next
            || count == 0
            || !stands_rightly(instance)
            || first + count > meshes.triangles.len()
        {
            return Err(SceneError::Index { what: "instance", index });
        }
        next += count;
        shorter("triangles of instances", next, SHOWN_TRIANGLES_MAX as usize + 1)?;
    }
    Ok(())
}

/// Returns whether an instance that is walked without its map has one that changes nothing.
fn stands_rightly(instance: &Instance) -> bool {
    const UNMOVED: [[f32; 4]; 3] =
        [[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0]];
    let padding = instance.standing_padding;
    padding == 0.0 || padding > 0.0 && instance.world_from_mesh == UNMOVED
}

fn check_textures(scene: &FlatScene) -> Result<(), SceneError> {
    let bytes = scene.texels.len() as u64;
    all("texture", &scene.textures, |texture| {
        texture.width >= 1
            && texture.height >= 1
            && texture.width <= 1 << 15
            && texture.height <= 1 << 15
            && (1..=Texture::levels_of(texture.width, texture.height))
                .contains(&texture.level_count)
            && texture.offset % 8 == 0
            && texel_bytes(texture)
                .and_then(|size| size.checked_add(texture.offset))
                .is_some_and(|end| end <= bytes)
    })
}

fn texel_bytes(texture: &Texture) -> Option<u64> {
    let size = match texture.format {
        f if f == TexelFormat::Rgba8Srgb as u32 || f == TexelFormat::Rgba8Linear as u32 => 4,
        f if f == TexelFormat::Rgba16Linear as u32 => 8,
        _ => return None,
    };
    Some(Texture::level_texels((texture.width, texture.height), texture.level_count) * size)
}

fn check_lights(scene: &FlatScene) -> Result<(), SceneError> {
    let triangles = scene.triangles.len();
    all("light", &scene.lights, |light| match light.kind {
        k if k == LightKind::Triangle as u32 => (light.triangle as usize) < triangles,
        k => k <= LightKind::Environment as u32,
    })?;
    let (lights, groups) = (scene.lights.len(), scene.light_alias.len());
    all("light_alias", &scene.light_alias, |entry| (entry.alias as usize) < groups)?;
    check_light_tree(scene)?;
    let light = scene.environment.light;
    all("environment", &[light], |light| *light == NONE || (*light as usize) < lights)
}

/// Checks that every node is reached once, that each light with a place is at the end of its trail,
/// and that no trail has more levels than bits.
fn check_light_tree(scene: &FlatScene) -> Result<(), SceneError> {
    let (nodes, placed) = (&scene.light_nodes, scene.placed_lights());
    let wrong = |index: usize| Err(SceneError::Index { what: "light node", index });
    if placed < 2 {
        return equal("light_nodes", 0, nodes.len());
    }
    let (mut reached, mut lights) = (0, 0);
    let mut open = vec![(0, 0, 0)];
    while let Some((index, trail, level)) = open.pop() {
        // Subtrees are consecutive, so each node that is reached in this order is reached once.
        let Some(node) =
            nodes.get(index).filter(|_| index == reached && level < LIGHT_TREE_DEPTH_MAX)
        else {
            return wrong(index);
        };
        reached += 1;
        // Push the last one first, since the top of the stack is reached next.
        for (lane, &child) in
            node.child.iter().enumerate().rev().filter(|(_, child)| **child != NONE)
        {
            let trail = trail | (lane as u32) << (level * LIGHT_TRAIL_BITS);
            let at = (child & light_child_bits::INDEX) as usize;
            if child & light_child_bits::LEAF == 0 {
                open.push((at, trail, level + 1));
                continue;
            }
            if at >= placed || scene.lights[at].trail != trail {
                return wrong(index);
            }
            lights += 1;
        }
    }
    equal("lights in the tree", placed, lights)?;
    equal("light_nodes", reached, nodes.len())
}
