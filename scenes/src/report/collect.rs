//! Makes the report about a loaded scene. Does not load.

use crate::camera::Projection;
use crate::document::Document;
use crate::loaded::{LoadedScene, Moment};
use crate::math::{narrow, widen};
use crate::node::animation::Clip;
use crate::report::warning::{Warnings, shortened};
use crate::report::{AnimationReport, CameraReport, ExtensionReport, SceneReport};
use tessera_layout::{
    AliasEntry, BvhNode8, Instance, Layers, Light, LightNode, Material, Medium, ShadingVertex,
    Texture, Triangle, TriangleBlock,
};

/// Longest name in a report, in characters.
const NAME_CHARS_MAX: usize = 120;
/// Most entries of a list in a report, because reports are sent to other processes.
const LISTED_MAX: usize = 2048;

fn short(name: &str) -> String {
    shortened(name, NAME_CHARS_MAX)
}

/// Returns everything that a report contains. `first` is the scene's geometry at time 0. Long lists
/// are cut.
pub(crate) fn report(
    scene: &LoadedScene,
    document: &Document,
    first: &Moment,
    mut extensions: Vec<ExtensionReport>,
    warnings: Warnings,
) -> SceneReport {
    extensions.truncate(LISTED_MAX);
    extensions.iter_mut().for_each(|extension| extension.name = short(&extension.name));
    let mut textures: Vec<_> = scene.textures.reports.iter().take(LISTED_MAX).cloned().collect();
    textures.iter_mut().for_each(|texture| texture.name = short(&texture.name));
    let root = &document.root;
    let geometry = &first.geometry;
    let space = scene.parts.forest.space;
    let in_file = |corner: [f32; 3]| narrow(space.file_point(widen(corner)));
    SceneReport {
        file: document.file.clone(),
        generator: short(root.asset.generator.as_deref().unwrap_or_default()),
        scenes: root.scenes.iter().take(LISTED_MAX).map(scene_name).collect(),
        shown_scene: root.scene.map_or(0, |scene| scene.value() as u32),
        nodes: scene.parts.forest.in_scene.len() as u64,
        meshes: root.meshes.len() as u64,
        triangles_stored: stored_triangles(scene),
        triangles: geometry.shown_triangles(),
        instances: geometry.instances.len() as u64,
        vertices: (geometry.vertices.len() + scene.parts.instancing.meshes.vertices.len()) as u64,
        materials: root.materials.len() as u64,
        skins: root.skins.len() as u64,
        textures,
        cameras: scene
            .first
            .cameras
            .iter()
            .zip(0..)
            .take(LISTED_MAX)
            .map(|(camera, index)| CameraReport {
                index,
                name: short(&camera.name),
                kind: match camera.projection {
                    Projection::Perspective { .. } => "perspective".into(),
                    Projection::Orthographic { .. } => "orthographic".into(),
                },
                aspect: camera.aspect,
            })
            .collect(),
        variants: scene.variants.iter().take(LISTED_MAX).map(|name| short(name)).collect(),
        punctual_lights: scene.first.shown_lights.len() as u64,
        light_units: Default::default(),
        emissive_triangles: first.emitters.len() as u64,
        environment: scene.environment.description.clone(),
        bounds_lower: in_file(geometry.lower),
        bounds_upper: in_file(geometry.upper),
        space,
        animations: scene.clips.iter().take(LISTED_MAX).map(animation).collect(),
        geometry_animated: false,
        motion: None,
        extensions,
        arrays_bytes: memory(scene, first),
        warnings: warnings.into_list(),
    }
}

fn scene_name(scene: &gltf::json::Scene) -> String {
    short(scene.name.as_deref().unwrap_or_default())
}

fn animation(clip: &Clip) -> AnimationReport {
    AnimationReport {
        name: short(&clip.name),
        length_secs: clip.length,
        channels: clip.channels.len() as u32,
        rates: clip.likely_rates(),
        played: clip.played,
    }
}

/// Returns the number of triangles that the file stores, with each mesh once.
fn stored_triangles(scene: &LoadedScene) -> u64 {
    let surfaces = scene.parts.meshes.iter().flat_map(|mesh| &mesh.surfaces);
    surfaces.map(|surface| surface.geometry.triangles.len() as u64).sum()
}

/// Approximate bytes of a triangle and of an instance in the scene's hierarchy.
const HIERARCHY_BYTES: (usize, usize) = (80, 100);

/// Returns the bytes of all arrays of a flat scene. The hierarchy is not made yet, so its size is
/// an estimate.
fn memory(scene: &LoadedScene, first: &Moment) -> u64 {
    let bytes = |count: usize, size: usize| count as u64 * size as u64;
    let (triangles, meshes) = (first.geometry.triangles.len(), &scene.parts.instancing.meshes);
    let lights = scene.first.shown_lights.len() + first.emitters.len() + 1;
    bytes(triangles, size_of::<Triangle>() + size_of::<[u32; 3]>() + HIERARCHY_BYTES.0)
        + bytes(first.geometry.vertices.len(), size_of::<ShadingVertex>())
        + bytes(first.geometry.instances.len(), size_of::<Instance>() + HIERARCHY_BYTES.1)
        + bytes(meshes.triangles.len(), size_of::<Triangle>() + size_of::<[u32; 3]>())
        + bytes(meshes.vertices.len(), size_of::<ShadingVertex>())
        + bytes(meshes.nodes.len(), size_of::<BvhNode8>())
        + bytes(meshes.blocks.len(), size_of::<TriangleBlock>())
        + bytes(scene.first.materials.len(), size_of::<Material>())
        + bytes(scene.first.layers.len(), size_of::<Layers>())
        + bytes(scene.first.media.len(), size_of::<Medium>())
        + bytes(scene.textures.textures.len(), size_of::<Texture>())
        + scene.textures.texels.len() as u64
        + bytes(lights, size_of::<Light>() + size_of::<LightNode>() / 6)
        + bytes(scene.environment.texels.len(), size_of::<[f32; 3]>() + size_of::<AliasEntry>())
}
