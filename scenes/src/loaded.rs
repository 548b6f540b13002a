//! A scene in memory, and its flattening for one frame. Owns what frames share; `load` reads it.

use crate::bvh::{self, BuilderKind, Placed};
use crate::camera::{self, ShownCamera};
use crate::error::SceneError;
use crate::flatten::flat_geometry::FlatGeometry;
use crate::flatten::instancing::Instancing;
use crate::flatten::parts::Parts;
use crate::light::emitter::{self, TriangleEmitter};
use crate::light::environment::LoadedEnvironment;
use crate::light::punctual::Punctual;
use crate::math::{Affine, Vec3, add, length, narrow, scale, sub, widen};
use crate::mesh::{Mesh, Skin};
use crate::node::Forest;
use crate::node::animation::{self, Clip, FrameTime};
use crate::options::{FlattenOptions, Limits};
use crate::report::SceneReport;
use crate::texture::TextureSet;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use tessera_layout::{
    Bvh, FlatScene, Layers, Light, LightChoice, LightChoices, Material, Medium, build_light_choices,
};

/// A scene whose files have been read and checked. Any thread can flatten it for any number of
/// frames.
#[derive(Debug)]
pub struct LoadedScene {
    pub(crate) parts: OwnedParts,
    pub(crate) clips: Vec<Clip>,
    pub(crate) cameras: Vec<ShownCamera>,
    pub(crate) punctual: Vec<Punctual>,
    /// Node and index into `punctual`, in canonical order.
    pub(crate) shown_lights: Vec<(usize, usize)>,
    pub(crate) textures: TextureSet,
    /// Layers that extensions add to materials.
    pub(crate) layers: Arc<Vec<Layers>>,
    /// Media that closed surfaces enclose.
    pub(crate) media: Arc<Vec<Medium>>,
    /// Names of the material variants.
    pub(crate) variants: Vec<String>,
    pub(crate) environment: LoadedEnvironment,
    /// Geometry of every frame, if it does not move.
    pub(crate) still: Option<Arc<Moment>>,
    pub(crate) hierarchy: HierarchyCache,
    /// Bounds over the animation, computed when they are first needed.
    pub(crate) film_bounds: OnceLock<(Vec3, Vec3)>,
    pub(crate) report: SceneReport,
}

/// Everything that geometry is made from.
#[derive(Debug)]
pub(crate) struct OwnedParts {
    pub(crate) file: String,
    pub(crate) limits: Limits,
    pub(crate) forest: Forest,
    pub(crate) meshes: Vec<Mesh>,
    pub(crate) skins: Vec<Skin>,
    pub(crate) materials: Arc<Vec<Material>>,
    pub(crate) instancing: Instancing,
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
        let pose = animation::pose(&self.parts.forest, &self.clips, time);
        let worlds = self.parts.forest.worlds(&pose.locals);
        let moment = match &self.still {
            Some(still) => Arc::clone(still),
            None => Arc::new(self.moment(&worlds, &pose.weights)?),
        };
        let geometry = &moment.geometry;
        let bounds = self.framed_bounds(geometry, &options.camera)?;
        let space = &self.parts.forest.space;
        let camera = camera::resolve((&self.cameras, &worlds), options, bounds, space)?;
        let (center, radius) = bounding_sphere(geometry);
        let (lights, light_choices) =
            self.lights(&worlds, &moment.emitters, options, f64::from(radius))?;
        let environment = self.environment.place(
            options.environment_intensity,
            options.environment_rotation_degrees,
            (lights.len() as u32).saturating_sub(1),
            (center, radius),
        );
        let origin_bound = camera::origin_bound(&camera);
        let build = || {
            let placed = Placed { boxes: &geometry.boxes, depth: self.parts.instancing.depth };
            Arc::new(bvh::build_with(&geometry.triangles, placed, options.builder, origin_bound))
        };
        let bvh = match &self.still {
            Some(_) => self.hierarchy.get((options.builder, origin_bound.to_bits()), build),
            None => build(),
        };
        Ok(FlatScene {
            triangles: Arc::clone(&geometry.triangles),
            triangle_vertices: Arc::clone(&geometry.triangle_vertices),
            vertices: Arc::clone(&geometry.vertices),
            materials: Arc::clone(&self.parts.materials),
            layers: Arc::clone(&self.layers),
            media: Arc::clone(&self.media),
            textures: Arc::clone(&self.textures.textures),
            texels: Arc::clone(&self.textures.texels),
            lights: Arc::new(lights),
            light_alias: Arc::new(light_choices.alias),
            light_nodes: Arc::new(light_choices.nodes),
            environment,
            environment_texels: Arc::clone(&self.environment.texels),
            environment_cells: Arc::clone(&self.environment.cells),
            camera,
            bvh,
            instances: Arc::clone(&geometry.instances),
            meshes: Arc::clone(&self.parts.instancing.meshes),
        })
    }

    /// Returns the geometry at one moment.
    pub(crate) fn moment(
        &self,
        worlds: &[Affine],
        weights: &[Option<Vec<f64>>],
    ) -> Result<Moment, SceneError> {
        self.parts.moment(worlds, weights, &self.textures, self.placed_punctual())
    }

    /// Returns the lights and the table for choosing one. The order is points and spots, triangles
    /// in id order, directional lights, the environment.
    fn lights(
        &self,
        worlds: &[Affine],
        emitters: &[TriangleEmitter],
        options: &FlattenOptions,
        scene_radius: f64,
    ) -> Result<(Vec<Light>, LightChoices), SceneError> {
        let mut lights = Vec::with_capacity(self.shown_lights.len() + emitters.len() + 1);
        let mut choices = Vec::with_capacity(lights.capacity());
        self.place_punctual(worlds, scene_radius, true, (&mut lights, &mut choices))?;
        lights.extend(emitter::lights(emitters));
        choices.extend(emitters.iter().map(|emitter| emitter.choice));
        self.place_punctual(worlds, scene_radius, false, (&mut lights, &mut choices))?;
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
        worlds: &[Affine],
        scene_radius: f64,
        placed: bool,
        (lights, choices): (&mut Vec<Light>, &mut Vec<LightChoice>),
    ) -> Result<(), SceneError> {
        for &(node, light) in &self.shown_lights {
            let light = &self.punctual[light];
            if light.is_placed() != placed {
                continue;
            }
            let shown = light.place(&worlds[node], &self.parts.forest.space);
            let numbers = shown.position.iter().chain(&shown.emission).chain([&shown.range]);
            if !numbers.copied().all(f32::is_finite) {
                return Err(self.parts.invalid_node(node, "its light is beyond every float"));
            }
            choices.push(light.choice(&shown, scene_radius));
            lights.push(shown);
        }
        Ok(())
    }

    /// Returns the number of the file's lights with a place, which are the first ones.
    fn placed_punctual(&self) -> u32 {
        self.shown_lights.iter().filter(|(_, light)| self.punctual[*light].is_placed()).count()
            as u32
    }
}

impl OwnedParts {
    pub(crate) fn borrow(&self) -> Parts<'_> {
        Parts {
            file: &self.file,
            forest: &self.forest,
            meshes: &self.meshes,
            skins: &self.skins,
            materials: &self.materials,
            limits: &self.limits,
        }
    }

    pub(crate) fn moment(
        &self,
        worlds: &[Affine],
        weights: &[Option<Vec<f64>>],
        textures: &TextureSet,
        first_light: u32,
    ) -> Result<Moment, SceneError> {
        let mut geometry = self.borrow().build(&self.instancing, worlds, weights)?;
        let emitters = emitter::mark(
            &mut geometry.triangles,
            &geometry.triangle_vertices,
            &geometry.vertices,
            &self.materials,
            (textures, first_light),
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
