//! Loads a scene: the order in which its parts are read, and the warnings about them.

use crate::beyond;
use crate::bvh::LastTree;
use crate::document::Document;
use crate::document::extension;
use crate::document::source::Source;
use crate::error::SceneError;
use crate::flatten::instancing::Instancing;
use crate::flatten::motion::Motion;
use crate::flatten::parts::Parts;
use crate::flatten::standing;
use crate::light::environment;
use crate::light::units_hint::Lighting;
use crate::loaded::{HierarchyCache, LoadedScene, Moment, OwnedParts, bounding_sphere};
use crate::material::variant::Variants;
use crate::mesh;
use crate::node;
use crate::node::animation::{self, Sources};
use crate::node::curve::FrameTime;
use crate::options::LoadOptions;
use crate::pointer;
use crate::report::collect;
use crate::report::warning::Warnings;
use crate::report::{MotionReport, SceneReport};
use crate::settle::settle;
use crate::texture::TextureTable;
use crate::values::{Lasting, Moving, Values};
use std::path::Path;
use std::sync::Arc;

/// What stands still in a film, or moves as it is, is kept from this share of the triangles on from
/// which copies of a mesh are: fewer are placed sooner, frame for frame, than walked apart.
const KEPT_SHARE: u64 = 4;

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
    let variants = Variants::read(&document, options.variant.as_deref())?;
    let forest = node::read(&document, options.limits.nodes)?;
    let pointed = pointer::read_all(&document, &mut warnings)?;
    let weights = mesh::rest_weights(&document);
    let targets = &pointed.targets;
    let sources = Sources { document: &document, forest: &forest, weights: &weights, targets };
    let clips = animation::read(&sources, &options.animations, &mut warnings)?;
    let mut table = TextureTable::default();
    let mut rest = Values::read(&document, &forest, (&mut table, options.lights), &mut warnings)?;
    let mut moving = Moving::of(&document, &clips, &pointed.items, options.lights);
    let lasting = match &mut moving {
        Some(moving) => moving.lasting(&forest, (&clips, &mut rest), &mut table, &mut warnings)?,
        None => Lasting::of(&forest),
    };
    let textures = table.decode(&document, &source)?;
    let moving = moving.map(|moving| moving.with_textures(table));
    let frames = lasting.tangent_frames(&rest);
    let surfaces = (frames.as_slice(), rest.uv_sets.as_slice());
    let meshes = mesh::read_all(&document, surfaces, &variants, &options.limits, &mut warnings)?;
    let skins = mesh::read_skins(&document, &meshes)?;
    let mut parts = OwnedParts {
        file: document.file.clone(),
        limits: options.limits.clone(),
        forest,
        meshes,
        turning: moving.as_ref().map(|moving| moving.turning.clone()).unwrap_or_default(),
        skins,
        instancing: Instancing::default(),
    };
    let emits = |material| lasting.emits(material, &rest, &textures);
    let is_plain = |material| !emits(material) && !lasting.changes_triangles(material);
    let shown = Parts { shown: &lasting.shown, ..parts.borrow(&parts.meshes, &rest) };
    let motion = Motion::of(&parts.forest, &parts.meshes, &parts.skins, &clips);
    parts.instancing = Instancing::of(&shown, is_plain, options.instanced_from)?;
    let is_lit = is_lit(&parts, &lasting.shown, emits);
    let environment = environment::read(&options.environment, is_lit, &source, &mut warnings)?;
    let mut scene = LoadedScene {
        parts,
        weights,
        first: Arc::new(rest.clone()),
        rest,
        moving,
        clips,
        textures,
        variants: variants.names,
        environment,
        still: None,
        hierarchy: HierarchyCache::default(),
        moving_tree: LastTree::default(),
        film_bounds: Default::default(),
        report: Default::default(),
    };
    let settled = settle(&mut scene, options.space, &|| document.translations(&source))?;
    beyond::warn((&scene.parts, &lasting.shown), &settled, &mut warnings);
    let first = begin(&mut scene, settled.moment, (&motion, &lasting))?;
    warnings.extend(lighting(&scene, &first).units_hint(options.lights));
    let geometry_animated = scene.still.is_none() || lasting.moves_triangles(&scene.clips);
    let report = collect::report(&scene, &document, &first, extensions, warnings);
    scene.report = SceneReport { light_units: options.lights, geometry_animated, ..report };
    keep_for_film(&mut scene, first, (&motion, &lasting), options.instanced_from / KEPT_SHARE)?;
    Ok(scene)
}

/// Places once, for all frames of a film whose geometry moves, what stands still in it, stores
/// meshes once that only change their place, and reports both. `from` is the number of triangles
/// that are worth it.
fn keep_for_film(
    scene: &mut LoadedScene,
    first: Arc<Moment>,
    (motion, lasting): (&Motion, &Lasting),
    from: u64,
) -> Result<(), SceneError> {
    if !scene.report.geometry_animated {
        return Ok(());
    }
    // Both would be in memory at a time.
    drop(first);
    let stage = scene.stage(FrameTime::START)?;
    let mut instancing = std::mem::take(&mut scene.parts.instancing);
    let emits = |material| lasting.emits(material, &scene.rest, &scene.textures);
    let is_plain = |material| !emits(material) && !lasting.changes_triangles(material);
    let all = scene.parts.borrow(&scene.parts.meshes, &scene.first);
    let all = Parts { shown: &lasting.shown, ..all };
    let shown = standing::standing_nodes(&all, motion, &instancing, is_plain);
    let parts = Parts { shown: &shown, ..all };
    let placed = (stage.worlds.as_slice(), stage.weights.as_slice());
    standing::stand(&parts, placed, from, &mut instancing)?;
    instancing.hold_movers(&all, |node| motion.changes[node], is_plain, from)?;
    scene.report.motion = Some(MotionReport::of(&all, (motion, &instancing), emits, is_plain));
    if instancing.standing.is_some() {
        scene.still = None;
    }
    scene.parts.instancing = instancing;
    Ok(())
}

/// Gives the scene its values in the working space, and keeps its first moment for all frames with
/// the same triangles if none of them moves.
fn begin(
    scene: &mut LoadedScene,
    moment: Moment,
    (motion, lasting): (&Motion, &Lasting),
) -> Result<Arc<Moment>, SceneError> {
    scene.rest.enter(&scene.parts.forest.space);
    scene.first = Arc::new(scene.rest.clone());
    scene.first = scene.stage(FrameTime::START)?.values;
    let first = Arc::new(moment);
    if !motion.moves_geometry(&scene.parts.forest, &lasting.shown) {
        scene.still = Some(Arc::clone(&first));
    }
    Ok(first)
}

/// Returns everything that lights a scene at its start.
fn lighting<'a>(scene: &'a LoadedScene, first: &'a Moment) -> Lighting<'a> {
    let values = &scene.first;
    Lighting {
        punctual: values.shown_lights.iter().map(|(_, light)| &values.punctual[*light]).collect(),
        emitters: &first.emitters,
        environment: &scene.environment,
        radius: f64::from(bounding_sphere(&first.geometry).1) / scene.parts.forest.space.factor(),
    }
}

/// Returns whether a frame has light from a lamp or from a surface, or may have it. `shown` are the
/// nodes that may be visible.
fn is_lit(parts: &OwnedParts, shown: &[usize], emits: impl Fn(u32) -> bool) -> bool {
    let mut nodes = shown.iter().map(|node| &parts.forest.nodes[*node]);
    nodes.any(|node| {
        let surfaces = node.mesh.map_or(&[][..], |mesh| &parts.meshes[mesh].surfaces);
        node.light.is_some() || surfaces.iter().any(|surface| emits(surface.material))
    })
}
