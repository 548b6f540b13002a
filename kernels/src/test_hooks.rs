//! For this crate's tests: single kernel functions from `source/tests/functions.cpp`, built for the
//! oldest processor of the family. Not a stable interface; it changes with the kernels.

use crate::CheckedScene;
use crate::cuda::{CompressedBvh, CompressedNode, LeafTriangle};
use crate::denoise::{self, DenoiseError};
use crate::host::{RayCounts, RenderError, RenderUnit, render_unit_with};
use crate::rays::{Hit, Ray};
use tessera_layout::{Camera, SceneView, UnitParams};

pub use crate::lane_hooks::{LANE_WORDS_IN, lanes};

unsafe extern "C" {
    fn tessera_test_layout(count: *mut u32) -> *const u32;
    fn tessera_test_sincos(turns: f32, result: *mut f32);
    fn tessera_test_atan2(y: f32, x: f32) -> f32;
    fn tessera_test_floor(value: f32) -> i32;
    fn tessera_test_film_fixed(value: f32) -> i64;
    fn tessera_test_film_add(
        film: *mut i64,
        channels: u32,
        values: *const f32,
        counts: *mut RayCounts,
    );
    fn tessera_test_pixel_key(x: u32, y: u32, seed: u32, frame: u32) -> u32;
    fn tessera_test_draw(key: u32, index: u32, dimension: u32, result: *mut u32);
    fn tessera_test_shape(shape: u32, x: f32, y: f32, result: *mut f32);
    fn tessera_test_bsdf(surface: *const f32, wo: *const f32, wi: *const f32, result: *mut f32);
    fn tessera_test_bsdf_sample(
        surface: *const f32,
        wo: *const f32,
        random: *const f32,
        result: *mut f32,
    );
    fn tessera_test_layered(surface: *const f32, wo: *const f32, wi: *const f32, result: *mut f32);
    fn tessera_test_layered_sample(
        surface: *const f32,
        wo: *const f32,
        random: *const f32,
        result: *mut f32,
    );
    fn tessera_test_visible_normal(
        alpha: f32,
        wo: *const f32,
        random: *const f32,
        result: *mut f32,
    );
    fn tessera_test_environment_sample(scene: *const SceneView, x: u32, y: u32, result: *mut f32);
    fn tessera_test_pick_light(
        scene: *const SceneView,
        vantage: *const f32,
        bits: u32,
        probability: *mut f32,
    ) -> u32;
    fn tessera_test_light_probability(
        scene: *const SceneView,
        vantage: *const f32,
        light: u32,
    ) -> f32;
    fn tessera_test_vantage(normal: *const f32, result: *mut f32);
    fn tessera_test_environment(scene: *const SceneView, direction: *const f32, result: *mut f32);
    fn tessera_test_texture(
        scene: *const SceneView,
        which: u32,
        place: *const f32,
        result: *mut f32,
    );
    fn tessera_test_camera(
        camera: *const Camera,
        x: f32,
        y: f32,
        lens_x: f32,
        lens_y: f32,
        result: *mut f32,
    );
    fn tessera_test_lens(camera: *const Camera, x: f32, y: f32, result: *mut f32);
    fn tessera_test_compressed(
        scene: *const SceneView,
        hierarchy: *const Hierarchy,
        rays: *const Ray,
        count: u64,
        hits: *mut Hit,
        optical_depths: *mut u32,
    );
    fn tessera_test_plane(node: *const CompressedNode, side: u32, axis: u32, slot: u32) -> f32;
    fn tessera_test_alpha(
        scene: *const SceneView,
        sampler: *const u32,
        triangle: u32,
        u: f32,
        v: f32,
    ) -> bool;
}

// SAFETY of this whole file: every entry reads and writes exactly the array sizes of the signatures
// below, and follows indices of checked scenes only; where an index comes from the caller it is
// checked first.

pub fn layout() -> Vec<u32> {
    let mut count = 0;
    unsafe {
        let first = tessera_test_layout(&mut count);
        std::slice::from_raw_parts(first, count as usize).to_vec()
    }
}

pub fn sincos(turns: f32) -> [f32; 2] {
    let mut result = [0.0; 2];
    unsafe { tessera_test_sincos(turns, result.as_mut_ptr()) };
    result
}

pub fn atan2(y: f32, x: f32) -> f32 {
    unsafe { tessera_test_atan2(y, x) }
}

pub fn floor(value: f32) -> i32 {
    unsafe { tessera_test_floor(value) }
}

pub fn film_fixed(value: f32) -> i64 {
    unsafe { tessera_test_film_fixed(value) }
}

pub fn film_add(film: &mut [i64], values: &[f32], counts: &mut RayCounts) {
    assert!(film.len() == values.len() && values.len() <= tessera_layout::CHANNELS_MAX as usize);
    unsafe { tessera_test_film_add(film.as_mut_ptr(), film.len() as u32, values.as_ptr(), counts) };
}

pub fn pixel_key(place: [u32; 2], seed: u32, frame: u32) -> u32 {
    unsafe { tessera_test_pixel_key(place[0], place[1], seed, frame) }
}

pub fn draw(key: u32, index: u32, dimension: u32) -> [u32; 2] {
    let mut result = [0; 2];
    unsafe { tessera_test_draw(key, index, dimension, result.as_mut_ptr()) };
    result
}

#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(u32)]
pub enum Shape {
    Disk = 0,
    Cosine = 1,
    Triangle = 2,
    Tent = 3,
    BoxFilter = 4,
    Gaussian = 5,
    BlackmanHarris = 6,
}

pub fn shape(shape: Shape, random: [f32; 2]) -> [f32; 3] {
    let mut result = [0.0; 3];
    unsafe { tessera_test_shape(shape as u32, random[0], random[1], result.as_mut_ptr()) };
    result
}

/// Base colour, metallic, roughness, F0 of the dielectric.
pub type Surface = [f32; 6];

/// Returns value times cosine (three) and pdf.
pub fn bsdf(surface: &Surface, wo: [f32; 3], wi: [f32; 3]) -> [f32; 4] {
    let mut result = [0.0; 4];
    unsafe { tessera_test_bsdf(surface.as_ptr(), wo.as_ptr(), wi.as_ptr(), result.as_mut_ptr()) };
    result
}

/// Returns direction (three), weight (three) and pdf (0: none).
pub fn bsdf_sample(surface: &Surface, wo: [f32; 3], random: [f32; 3]) -> [f32; 7] {
    let mut result = [0.0; 7];
    unsafe {
        tessera_test_bsdf_sample(
            surface.as_ptr(),
            wo.as_ptr(),
            random.as_ptr(),
            result.as_mut_ptr(),
        )
    };
    result
}

/// A surface with extensions: numbers in the order of `tests/functions.cpp`.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(C)]
pub struct LayeredSurface {
    pub base_color: [f32; 3],
    pub metallic: f32,
    pub roughness: f32,
    pub f0: [f32; 3],
    pub f90: f32,
    pub clearcoat: f32,
    pub clearcoat_roughness: f32,
    pub sheen_color: [f32; 3],
    pub sheen_roughness: f32,
    pub transmission: f32,
    pub diffuse_transmission: f32,
    pub diffuse_transmission_color: [f32; 3],
    pub anisotropy: f32,
    pub iridescence: f32,
    pub film_ior: f32,
    pub film_thickness: f32,
    pub eta: f32,
    /// 1 if the surface bounds a volume.
    pub refracts: f32,
}

const _: () = assert!(size_of::<LayeredSurface>() == 26 * 4);

/// Returns value times cosine (three) and pdf.
pub fn layered(surface: &LayeredSurface, wo: [f32; 3], wi: [f32; 3]) -> [f32; 4] {
    let mut result = [0.0; 4];
    let numbers = std::ptr::from_ref(surface).cast();
    unsafe { tessera_test_layered(numbers, wo.as_ptr(), wi.as_ptr(), result.as_mut_ptr()) };
    result
}

/// Returns direction (three), weight (three) and pdf (0: none).
pub fn layered_sample(surface: &LayeredSurface, wo: [f32; 3], random: [f32; 3]) -> [f32; 7] {
    let mut result = [0.0; 7];
    let numbers = std::ptr::from_ref(surface).cast();
    unsafe {
        tessera_test_layered_sample(numbers, wo.as_ptr(), random.as_ptr(), result.as_mut_ptr())
    };
    result
}

pub fn visible_normal(alpha: f32, wo: [f32; 3], random: [f32; 2]) -> [f32; 3] {
    let mut result = [0.0; 3];
    unsafe {
        tessera_test_visible_normal(alpha, wo.as_ptr(), random.as_ptr(), result.as_mut_ptr())
    };
    result
}

/// Returns direction (three), radiance (three) and pdf. The scene must have an environment map.
pub fn environment_sample(scene: &CheckedScene, [x, y]: [u32; 2]) -> [f32; 7] {
    assert!(scene.environment.width > 0);
    let mut result = [0.0; 7];
    let view = scene.view();
    unsafe { tessera_test_environment_sample(&view, x, y, result.as_mut_ptr()) };
    result
}

/// Returns the light that a random number chooses for a surface, by its place and unit normal, and
/// the probability of that. The scene must have lights.
pub fn pick_light(scene: &CheckedScene, vantage: [[f32; 3]; 2], bits: u32) -> (u32, f32) {
    assert!(!scene.lights.is_empty());
    let mut probability = 0.0;
    let view = scene.view();
    let light = unsafe {
        tessera_test_pick_light(&view, vantage.as_flattened().as_ptr(), bits, &mut probability)
    };
    (light, probability)
}

/// Returns the probability with which a light is chosen for a surface.
pub fn light_probability(scene: &CheckedScene, vantage: [[f32; 3]; 2], light: u32) -> f32 {
    assert!((light as usize) < scene.lights.len());
    unsafe { tessera_test_light_probability(&scene.view(), vantage.as_flattened().as_ptr(), light) }
}

/// Returns a unit normal after packing.
pub fn packed_normal(normal: [f32; 3]) -> [f32; 3] {
    let mut result = [0.0; 3];
    unsafe { tessera_test_vantage(normal.as_ptr(), result.as_mut_ptr()) };
    result
}

/// Returns radiance (three) and pdf. The scene must have an environment map.
pub fn environment(scene: &CheckedScene, direction: [f32; 3]) -> [f32; 4] {
    assert!(scene.environment.width > 0);
    let mut result = [0.0; 4];
    unsafe { tessera_test_environment(&scene.view(), direction.as_ptr(), result.as_mut_ptr()) };
    result
}

/// Looks up a texture. `place` is u, v and footprint.
pub fn texture(scene: &CheckedScene, which: u32, place: [f32; 3]) -> [f32; 4] {
    assert!((which as usize) < scene.textures.len());
    let mut result = [0.0; 4];
    unsafe { tessera_test_texture(&scene.view(), which, place.as_ptr(), result.as_mut_ptr()) };
    result
}

/// Returns origin (three), direction (three) and t_max.
pub fn camera(camera: &Camera, at: [f32; 2], lens: [f32; 2]) -> [f32; 7] {
    let mut result = [0.0; 7];
    unsafe { tessera_test_camera(camera, at[0], at[1], lens[0], lens[1], result.as_mut_ptr()) };
    result
}

/// Returns the point on a lens for two random numbers, in the unit disk.
pub fn lens(camera: &Camera, random: [f32; 2]) -> [f32; 2] {
    let mut result = [0.0; 2];
    unsafe { tessera_test_lens(camera, random[0], random[1], result.as_mut_ptr()) };
    result
}

/// Returns whether alpha accepts a hit. `sampler` is the key and the index of a sample.
pub fn alpha_accepts(scene: &CheckedScene, sampler: [u32; 2], triangle: u32, at: [f32; 2]) -> bool {
    assert!((triangle as usize) < scene.triangles.len());
    unsafe { tessera_test_alpha(&scene.view(), sampler.as_ptr(), triangle, at[0], at[1]) }
}

/// Twin of `CompressedHierarchy`.
#[repr(C)]
pub(crate) struct Hierarchy {
    nodes: *const CompressedNode,
    triangles: *const LeafTriangle,
}

impl Hierarchy {
    /// Points to nodes and triangles, which must live as long.
    pub(crate) fn of(nodes: &[CompressedNode], triangles: &[LeafTriangle]) -> Self {
        Self { nodes: nodes.as_ptr(), triangles: triangles.as_ptr() }
    }
}

/// Returns the closest hit of each ray and the optical depth along it, by the device's hierarchy;
/// as in [`crate::rays`].
pub fn trace_compressed(scene: &CheckedScene, rays: &[Ray]) -> (Vec<Hit>, Vec<u32>) {
    let bvh = CompressedBvh::of(&scene.bvh, &scene.instances, &scene.meshes);
    let mut hits = vec![Hit::MISS; rays.len()];
    let mut optical_depths = vec![0; rays.len()];
    let (nodes, triangles) = (bvh.nodes(), bvh.triangles());
    let (view, hierarchy) = (scene.view(), Hierarchy::of(&nodes, &triangles));
    let (to, depths) = (hits.as_mut_ptr(), optical_depths.as_mut_ptr());
    unsafe {
        tessera_test_compressed(&view, &hierarchy, rays.as_ptr(), rays.len() as u64, to, depths)
    };
    (hits, optical_depths)
}

/// Returns a plane of a compressed node, as the kernels compute it.
pub fn plane(node: &CompressedNode, side: usize, axis: usize, slot: usize) -> f32 {
    assert!(side < 2 && axis < 3 && slot < 8);
    unsafe { tessera_test_plane(node, side as u32, axis as u32, slot as u32) }
}

/// Flags that host builds are compiled with, and the folder of their source.
pub const COMPILER_FLAGS: &str = env!("TESSERA_KERNEL_FLAGS");
pub const SOURCE_FOLDER: &str = env!("TESSERA_KERNEL_SOURCE");

/// [`crate::host::render_unit`] through an entry that a test has loaded.
///
/// # Safety
/// `entry` must be `tessera_render_unit` of `entry/host.cpp` as another compiler built it for this
/// processor.
pub unsafe fn render_with(
    entry: *mut std::ffi::c_void,
    scene: &CheckedScene,
    unit: &UnitParams,
    film: &mut [i64],
) -> Result<RayCounts, RenderError> {
    let mut counts = RayCounts::default();
    unsafe {
        let entry: RenderUnit = std::mem::transmute(entry);
        render_unit_with(entry, scene, unit, film, &mut counts)?;
    }
    Ok(counts)
}

/// A tile denoised by an entry that a test has built.
///
/// # Safety
/// As of [`render_with`], for `tessera_denoise` of `entry/denoise.cpp`.
pub unsafe fn denoise_with<'s>(
    entry: *mut std::ffi::c_void,
    rows: &denoise::Rows<'_>,
    corner: (usize, usize),
    scratch: &'s mut denoise::Scratch,
) -> Result<&'s [Vec<f32>], DenoiseError> {
    // SAFETY: a function pointer is as wide as any other; the caller vouches for what it points to.
    unsafe {
        let entry = std::mem::transmute::<*mut std::ffi::c_void, denoise::Entry>(entry);
        denoise::tile_with(entry, rows, corner, scratch)
    }
}
