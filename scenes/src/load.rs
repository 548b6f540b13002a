//! Loads a scene: the order in which its parts are read, and the warnings about them.

use crate::camera;
use crate::document::Document;
use crate::document::extension;
use crate::document::source::Source;
use crate::error::SceneError;
use crate::flatten::instancing::Instancing;
use crate::light::environment;
use crate::light::units_hint::Lighting;
use crate::light::{emitter, punctual};
use crate::loaded::{HierarchyCache, LoadedScene, OwnedParts, bounding_sphere};
use crate::material::medium;
use crate::material::variant::Variants;
use crate::node::animation::{self, Clip, FrameTime};
use crate::node::{self, Forest, Node};
use crate::options::LoadOptions;
use crate::report::SceneReport;
use crate::report::collect;
use crate::report::warning::Warnings;
use crate::settle::settle;
use crate::texture::TextureTable;
use crate::{beyond, material, mesh};
use std::path::Path;
use std::sync::Arc;
use tessera_layout::Material;

/// Reads the scene `main`, a path within `dir`, and every file that it names, all inside `dir`.
///
/// # Errors
/// See [`SceneError`]; every one names the file and the place in it.
pub fn load(dir: &Path, main: &str, options: &LoadOptions) -> Result<LoadedScene, SceneError> {
    let source = Source::new(dir, main, &options.limits)?;
    let mut warnings = Warnings::default();
    let mut document = Document::open(&source)?;
    let extensions = extension::check(&document)?;
    warnings.extend(extension::warnings(&extensions));
    document.read_buffers(&source)?;
    document.choose_scene(options.scene.as_ref())?;
    let document = document;
    let variants = Variants::read(&document, options.variant.as_deref())?;
    let forest = node::read(&document, options.limits.nodes)?;
    let mut table = TextureTable::default();
    let (materials, layered) = material::read_all(&document, &mut table, &mut warnings)?;
    let materials = Arc::new(materials);
    let textures = table.decode(&document, &source)?;
    let surfaces = (materials.as_slice(), &layered);
    let meshes = mesh::read_all(&document, surfaces, &variants, &options.limits, &mut warnings)?;
    let skins = mesh::read_skins(&document, &meshes)?;
    let target_count = |node: &Node| node.mesh.map_or(0, |mesh| meshes[mesh].target_count);
    let targets: Vec<usize> = forest.nodes.iter().map(target_count).collect();
    let clips = animation::read(&document, &targets, &options.animations, &mut warnings)?;
    let lights = punctual::read_all(&document, options.lights)?;
    let shown_lights = shown_lights(&document, &forest, lights.len())?;
    let cameras = camera::shown(&document, &forest)?;
    let (file, limits) = (document.file.clone(), options.limits.clone());
    let instancing = Instancing::default();
    let mut parts = OwnedParts { file, limits, forest, meshes, skins, materials, instancing };
    let emits = |material: &Material| emitter::emits(material, &textures);
    parts.instancing = Instancing::of(&parts.borrow(), emits, options.instanced_from)?;
    let is_lit = has_emitters(&parts, emits) || !shown_lights.is_empty();
    let environment = environment::read(&options.environment, is_lit, &source, &mut warnings)?;
    let placed_lights =
        shown_lights.iter().filter(|(_, light)| lights[*light].is_placed()).count() as u32;
    let moment = |parts: &OwnedParts| {
        let pose = animation::pose(&parts.forest, &clips, FrameTime::START);
        let worlds = parts.forest.worlds(&pose.locals);
        let moment = parts.moment(&worlds, &pose.weights, &textures, placed_lights)?;
        Ok((moment, cameras.iter().map(|camera| worlds[camera.node].offset).collect()))
    };
    let precise = || document.translations(&source);
    let settled = settle(&mut parts, options.space, &precise, &moment)?;
    beyond::warn(&parts, &settled, &mut warnings);
    let first = Arc::new(settled.moment);
    let punctual = shown_lights.iter().map(|(_, light)| &lights[*light]).collect();
    let radius = f64::from(bounding_sphere(&first.geometry).1) / parts.forest.space.factor();
    let lighting =
        Lighting { punctual, emitters: &first.emitters, environment: &environment, radius };
    warnings.extend(lighting.units_hint(options.lights));
    let is_animated = is_geometry_animated(&parts, &clips);
    let media = medium::all_within(layered.media, &parts.forest.space);
    let mut scene = LoadedScene {
        parts,
        clips,
        cameras,
        punctual: lights,
        shown_lights,
        textures,
        layers: Arc::new(layered.layers),
        media: Arc::new(media),
        variants: variants.names,
        environment,
        still: (!is_animated).then(|| Arc::clone(&first)),
        hierarchy: HierarchyCache::default(),
        film_bounds: Default::default(),
        report: Default::default(),
    };
    let report = collect::report(&scene, &document, &first, extensions, warnings);
    scene.report = SceneReport { light_units: options.lights, ..report };
    Ok(scene)
}

/// Returns whether the scene shows a surface that emits.
fn has_emitters(parts: &OwnedParts, emits: impl Fn(&Material) -> bool) -> bool {
    let meshes = parts.forest.shown.iter().filter_map(|node| parts.forest.nodes[*node].mesh);
    meshes.into_iter().any(|mesh| {
        let mut surfaces = parts.meshes[mesh].surfaces.iter();
        surfaces.any(|surface| emits(&parts.materials[surface.material as usize]))
    })
}

fn shown_lights(
    document: &Document,
    forest: &Forest,
    light_count: usize,
) -> Result<Vec<(usize, usize)>, SceneError> {
    let mut shown = Vec::new();
    for &node in &forest.shown {
        let Some(light) = forest.nodes[node].light else { continue };
        if light >= light_count {
            let path = format!("nodes[{node}].extensions.KHR_lights_punctual.light");
            return Err(
                document.invalid(path, format!("names light {light}, but there are {light_count}"))
            );
        }
        shown.push((node, light));
    }
    Ok(shown)
}

/// Returns whether any frame shows other triangles than the first: a node with triangles moves, or
/// a joint of its skin, or its morph weights.
fn is_geometry_animated(parts: &OwnedParts, clips: &[Clip]) -> bool {
    let mut moved = vec![false; parts.forest.nodes.len()];
    let mut morphed = vec![false; parts.forest.nodes.len()];
    for channel in animation::played(clips) {
        match channel.target {
            animation::Target::Weights => morphed[channel.node] = true,
            _ => moved[channel.node] = true,
        }
    }
    let moved = parts.forest.spread(moved);
    let joints_move: Vec<bool> =
        parts.skins.iter().map(|skin| skin.joints.iter().any(|joint| moved[*joint])).collect();
    parts.forest.shown.iter().any(|&index| {
        let node = &parts.forest.nodes[index];
        node.mesh.is_some()
            && (moved[index] || morphed[index] || node.skin.is_some_and(|skin| joints_move[skin]))
    })
}
