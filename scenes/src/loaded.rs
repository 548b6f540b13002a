//! A scene in memory, and its flattening for one frame. Owns what frames share; `load` reads it.

use crate::bvh::{self, BuilderKind, LastTree, Placed};
use crate::camera;
use crate::error::SceneError;
use crate::flatten::flat_geometry::FlatGeometry;
use crate::flatten::instancing::Instancing;
use crate::flatten::parts::Parts;
use crate::light::emitter::{self, TriangleEmitter};
use crate::light::environment::LoadedEnvironment;
use crate::math::{Affine, Vec3, add, length, narrow, scale, sub, widen};
use crate::mesh::{Mesh, RestWeights, Skin, turned};
use crate::node::Forest;
use crate::node::animation::{self, Clip};
use crate::node::curve::FrameTime;
use crate::options::{FlattenOptions, Limits};
use crate::report::SceneReport;
use crate::texture::TextureSet;
use crate::values::{Moving, Values};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use tessera_layout::{
    Array, Bvh, EnvironmentCell, FlatScene, Light, LightChoice, LightChoices, Meshes,
    ShadingVertex, Triangle, build_light_choices,
};

/// A scene whose files have been read and checked. Any thread can flatten it for any number of
/// frames.
#[derive(Debug)]
pub struct LoadedScene {
    pub(crate) parts: OwnedParts,
    /// Morph weights of each mesh.
    pub(crate) weights: Vec<RestWeights>,
    pub(crate) clips: Vec<Clip>,
    /// Values that the file gives, in the working space.
    pub(crate) rest: Values,
    /// Values at the start, which are those of every frame if none moves.
    pub(crate) first: Arc<Values>,
    /// What moving values are read from; None if none moves.
    pub(crate) moving: Option<Moving>,
    pub(crate) textures: TextureSet,
    /// Names of the material variants.
    pub(crate) variants: Vec<String>,
    pub(crate) environment: LoadedEnvironment,
    /// Geometry of every frame that has the triangles of the first, if none of them moves.
    pub(crate) still: Option<Arc<Moment>>,
    pub(crate) hierarchy: HierarchyCache,
    /// The tree that was built last over triangles that move.
    pub(crate) moving_tree: LastTree,
    /// Bounds over the animation, computed when they are first needed.
    pub(crate) film_bounds: OnceLock<(Vec3, Vec3)>,
    pub(crate) report: SceneReport,
}

/// The arrays that a loaded scene has for its frames. Whoever has the same elements elsewhere can
/// put them in their place; frames then have those.
#[derive(Debug)]
pub struct SharedArrays<'a> {
    /// Of geometry that does not move, as the next two.
    pub triangles: Option<&'a mut Array<Triangle>>,
    /// Three indices into the vertices per triangle.
    pub triangle_vertices: Option<&'a mut Array<[u32; 3]>>,
    /// Shading vertices.
    pub vertices: Option<&'a mut Array<ShadingVertex>>,
    /// Texel bytes.
    pub texels: &'a mut Array<u8>,
    /// RGB texels of the environment.
    pub environment_texels: &'a mut Array<[f32; 3]>,
    /// Cells of the environment.
    pub environment_cells: &'a mut Array<EnvironmentCell>,
    /// The last hierarchy over geometry that does not move.
    pub bvh: Option<&'a mut Arc<Bvh>>,
    /// The meshes that instances show.
    pub meshes: &'a mut Arc<Meshes>,
}

/// Everything that geometry is made from.
#[derive(Debug)]
pub(crate) struct OwnedParts {
    pub(crate) file: String,
    pub(crate) limits: Limits,
    pub(crate) forest: Forest,
    pub(crate) meshes: Vec<Mesh>,
    /// Materials whose tangents turn over time. Meshes have them as they are before.
    pub(crate) turning: BTreeSet<u32>,
    pub(crate) skins: Vec<Skin>,
    pub(crate) instancing: Instancing,
}

/// What geometry at one moment is made from.
#[derive(Debug)]
pub(crate) struct Stage {
    pub(crate) values: Arc<Values>,
    /// Transform to the world of each node.
    pub(crate) worlds: Vec<Affine>,
    /// Animated morph weights of each node.
    pub(crate) weights: Vec<Option<Vec<f64>>>,
}

/// Geometry at one moment, and its emitters.
#[derive(Debug)]
pub(crate) struct Moment {
    pub(crate) geometry: FlatGeometry,
    pub(crate) emitters: Vec<TriangleEmitter>,
}

/// The last hierarchy over geometry that does not move, with its builder and its bound for ray
/// origins.
#[derive(Debug, Default)]
pub(crate) struct HierarchyCache(Mutex<Option<(HierarchyKey, Arc<Bvh>)>>);

type HierarchyKey = (BuilderKind, u32);

impl LoadedScene {
    /// Returns the report: the content of the scene, what is ignored, and how much memory it needs.
    pub fn report(&self) -> &SceneReport {
        &self.report
    }

    /// One frame's scene. Textures and environment are shared between frames; so are geometry and
    /// its hierarchy where no node that carries geometry moves.
    ///
    /// # Errors
    /// If the camera does not exist, an option is no number, or an animation moves something
    /// beyond every float.
    pub fn flatten(&self, options: &FlattenOptions) -> Result<FlatScene, SceneError> {
        check(options)?;
        let time = FrameTime { secs: options.time_secs, frame_secs: options.frame_secs };
        let stage = self.stage(time)?;
        let (values, worlds) = (&stage.values, &stage.worlds);
        let (moment, is_still) = match self.still_moment(values) {
            Some(still) => (Arc::clone(still), true),
            None => (Arc::new(self.parts.moment(&stage, &self.textures)?), false),
        };
        let geometry = &moment.geometry;
        let bounds = self.framed_bounds(geometry, &options.camera)?;
        let space = &self.parts.forest.space;
        let camera = camera::resolve((&values.cameras, worlds), options, bounds, space)?;
        let (center, radius) = bounding_sphere(geometry);
        let (lights, light_choices) =
            self.lights(&stage, &moment.emitters, options, f64::from(radius))?;
        let environment = self.environment.place(
            options.environment_intensity,
            options.environment_rotation_degrees,
            (lights.len() as u32).saturating_sub(1),
            (center, radius),
        );
        let origin_bound = camera::origin_bound(&camera);
        let placed = Placed { boxes: &geometry.boxes, depth: self.parts.instancing.depth };
        let (triangles, kind) = (&geometry.triangles, options.builder);
        let bvh = if is_still {
            let build = || Arc::new(bvh::build_with(triangles, placed, kind, origin_bound));
            self.hierarchy.get((kind, origin_bound.to_bits()), build)
        } else {
            let last = (&self.moving_tree, options.samples);
            Arc::new(bvh::build_after(last, triangles, placed, (kind, origin_bound)))
        };
        Ok(FlatScene {
            triangles: geometry.triangles.clone(),
            triangle_vertices: geometry.triangle_vertices.clone(),
            vertices: geometry.vertices.clone(),
            materials: values.materials.clone(),
            layers: values.layers.clone(),
            media: values.media.clone(),
            textures: self.textures.textures.clone(),
            texels: self.textures.texels.clone(),
            lights: lights.into(),
            light_alias: light_choices.alias.into(),
            light_nodes: light_choices.nodes.into(),
            environment,
            environment_texels: self.environment.texels.clone(),
            environment_cells: self.environment.cells.clone(),
            camera,
            bvh,
            instances: geometry.instances.clone(),
            meshes: Arc::clone(&self.parts.instancing.meshes),
        })
    }

    /// Returns the arrays that frames share, apart from small ones.
    pub fn shared_arrays(&mut self) -> SharedArrays<'_> {
        // No frame is being made, so nobody else has the moment.
        let still = self.still.as_mut().and_then(Arc::get_mut).map(|still| &mut still.geometry);
        let (triangles, corners, vertices) = match still {
            Some(it) => {
                (Some(&mut it.triangles), Some(&mut it.triangle_vertices), Some(&mut it.vertices))
            }
            None => (None, None, None),
        };
        SharedArrays {
            triangles,
            triangle_vertices: corners,
            vertices,
            texels: &mut self.textures.texels,
            environment_texels: &mut self.environment.texels,
            environment_cells: &mut self.environment.cells,
            bvh: self.hierarchy.last(),
            meshes: &mut self.parts.instancing.meshes,
        }
    }

    /// Returns what the geometry of a time is made from.
    pub(crate) fn stage(&self, time: FrameTime) -> Result<Stage, SceneError> {
        let forest = &self.parts.forest;
        let pose = animation::pose(forest, &self.weights, &self.clips, time);
        let values = match &self.moving {
            Some(moving) => Arc::new(moving.at(forest, &self.clips, &self.rest, time)?),
            None => Arc::clone(&self.first),
        };
        Ok(Stage { values, worlds: forest.worlds(&pose.locals), weights: pose.weights })
    }

    /// Returns the geometry that is shared between frames, if frames with these values have it.
    pub(crate) fn still_moment(&self, values: &Arc<Values>) -> Option<&Arc<Moment>> {
        let is_first = || {
            Arc::ptr_eq(values, &self.first)
                || values.has_triangles_of(&self.first, &self.parts.turning)
        };
        self.still.as_ref().filter(|_| is_first())
    }

    /// Returns the lights and the table for choosing one. The order is points and spots, triangles
    /// in id order, directional lights, the environment.
    fn lights(
        &self,
        stage: &Stage,
        emitters: &[TriangleEmitter],
        options: &FlattenOptions,
        scene_radius: f64,
    ) -> Result<(Vec<Light>, LightChoices), SceneError> {
        let mut lights = Vec::with_capacity(stage.values.shown_lights.len() + emitters.len() + 1);
        let mut choices = Vec::with_capacity(lights.capacity());
        self.place_punctual(stage, scene_radius, true, (&mut lights, &mut choices))?;
        lights.extend(emitter::lights(emitters));
        choices.extend(emitters.iter().map(|emitter| emitter.choice));
        self.place_punctual(stage, scene_radius, false, (&mut lights, &mut choices))?;
        if self.environment.shines(options.environment_intensity) {
            lights.push(emitter::environment_light());
            let power = self.environment.power(options.environment_intensity, scene_radius);
            choices.push(LightChoice { power, bounds: None });
        }
        let made = build_light_choices(&mut lights, &choices);
        Ok((lights, made))
    }

    /// Adds the file's lights that have a place, or those that have none.
    fn place_punctual(
        &self,
        stage: &Stage,
        scene_radius: f64,
        placed: bool,
        (lights, choices): (&mut Vec<Light>, &mut Vec<LightChoice>),
    ) -> Result<(), SceneError> {
        for &(node, light) in &stage.values.shown_lights {
            let light = &stage.values.punctual[light];
            if light.is_placed() != placed {
                continue;
            }
            let shown = light.place(&stage.worlds[node], &self.parts.forest.space);
            let numbers = shown.position.iter().chain(&shown.emission).chain([&shown.range]);
            if !numbers.copied().all(f32::is_finite) {
                return Err(self.parts.invalid_node(node, "its light is beyond every float"));
            }
            choices.push(light.choice(&shown, scene_radius));
            lights.push(shown);
        }
        Ok(())
    }
}

impl OwnedParts {
    /// Returns the parts with these values. `meshes` are their own meshes, or turned ones.
    pub(crate) fn borrow<'a>(&'a self, meshes: &'a [Mesh], values: &'a Values) -> Parts<'a> {
        Parts {
            file: &self.file,
            forest: &self.forest,
            shown: &values.shown,
            meshes,
            skins: &self.skins,
            materials: &values.materials,
            limits: &self.limits,
        }
    }

    pub(crate) fn moment(
        &self,
        stage: &Stage,
        textures: &TextureSet,
    ) -> Result<Moment, SceneError> {
        let values = &stage.values;
        let frame = |material: &u32| (*material, values.tangent_frame(*material as usize));
        let meshes = match self.turning.is_empty() {
            true => Cow::Borrowed(&self.meshes),
            false => Cow::Owned(turned(&self.meshes, &self.turning.iter().map(frame).collect())),
        };
        let parts = self.borrow(&meshes, values);
        let mut geometry = parts.build(&self.instancing, &stage.worlds, &stage.weights)?;
        let emitters = emitter::mark(
            &mut geometry.triangles,
            &geometry.triangle_vertices,
            &geometry.vertices,
            &values.materials,
            (textures, values.placed_lights()),
        );
        Ok(Moment { geometry: geometry.share(), emitters })
    }

    pub(crate) fn invalid_node(&self, node: usize, problem: &str) -> SceneError {
        let name = &self.forest.nodes[node].name;
        SceneError::Invalid {
            file: self.file.clone(),
            path: format!("nodes[{node}]"),
            problem: format!("{problem} (node {name:?}); check the transforms"),
        }
    }
}

impl HierarchyCache {
    fn last(&mut self) -> Option<&mut Arc<Bvh>> {
        let cached = self.0.get_mut().unwrap_or_else(PoisonError::into_inner);
        cached.as_mut().map(|(_, bvh)| bvh)
    }

    fn get(&self, key: HierarchyKey, build: impl FnOnce() -> Arc<Bvh>) -> Arc<Bvh> {
        // If a thread panicked while it held the lock, at worst an old entry is left.
        let mut cached = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match &*cached {
            Some((known, bvh)) if *known == key => Arc::clone(bvh),
            _ => {
                let bvh = build();
                *cached = Some((key, Arc::clone(&bvh)));
                bvh
            }
        }
    }
}

fn check(options: &FlattenOptions) -> Result<(), SceneError> {
    let wrong = |what: &str, value: f64| {
        Err(SceneError::Option {
            problem: format!("{what} {value} is out of range; give a finite number"),
        })
    };
    if !options.time_secs.is_finite() {
        return wrong("time", options.time_secs);
    }
    if !(options.frame_secs.is_finite() && options.frame_secs >= 0.0) {
        return wrong("length of a frame", options.frame_secs);
    }
    let intensity = options.environment_intensity;
    if !(intensity.is_finite() && intensity >= 0.0) {
        return wrong("environment intensity", intensity.into());
    }
    if !options.environment_rotation_degrees.is_finite() {
        return wrong("environment rotation", options.environment_rotation_degrees.into());
    }
    Ok(())
}

/// Returns the centre and radius in metres of a sphere around all triangles. Without triangles the
/// radius is 1.
pub(crate) fn bounding_sphere(geometry: &FlatGeometry) -> ([f32; 3], f32) {
    let (lower, upper) = (widen(geometry.lower), widen(geometry.upper));
    let center = narrow(scale(add(lower, upper), 0.5));
    // Measure from the centre as rounded to floats, and add a little for the rounding of the radius
    // itself.
    let farthest = |corner: [f64; 3]| length(sub(corner, widen(center)));
    let radius = (farthest(lower).max(farthest(upper)) * 1.000_001) as f32;
    (center, if radius > 0.0 { radius } else { 1.0 })
}
