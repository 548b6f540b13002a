//! Which triangles emit, and how strongly each light should be picked. Power is an estimate: it
//! steers samples, and a wrong one costs noise, never correctness.
//!
//! - point: 4π I; spot: 2π I (1 - (cos inner + cos outer)/2); directional: E π R²
//! - triangle: π A times the mean radiance over it, twice where it is double sided
//! - environment: π R² ∫ L dω
//!
//! with luminances throughout and R the radius of the scene's bounding sphere.

use crate::math::{cross, length, luminance, normalize, sub, widen};
use crate::texture::TextureSet;
use crate::texture::texel::TexelReader;
use rayon::prelude::*;
use std::f64::consts::PI;
use tessera_layout::{
    Light, LightBounds, LightChoice, LightKind, Material, NONE, ShadingVertex, Triangle,
    material_flags, triangle_flags,
};

/// Points per triangle edge at which the emission of a textured triangle is looked up.
const PROBES_PER_EDGE: u32 = 6;
/// Share of the whole texture's mean that every triangle gets, for bright texels between the
/// points.
const MEAN_SHARE: f64 = 0.01;

/// A triangle that emits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct TriangleEmitter {
    pub(crate) triangle: u32,
    /// Area in m².
    pub(crate) area: f64,
    /// Estimated power (see the beginning of this file), and the directions of its light.
    pub(crate) choice: LightChoice,
}

/// Emission of a material.
struct Emission<'a> {
    factor: [f64; 3],
    sides: f64,
    /// The texture, the luminance of its mean, and its place in UV space.
    texture: Option<(TexelReader<'a>, f64, [f64; 6], usize)>,
}

/// Finds the triangles that emit, in order, marks them, and numbers their lights from `first_light`
/// on.
pub(crate) fn mark(
    triangles: &mut [Triangle],
    triangle_vertices: &[[u32; 3]],
    vertices: &[ShadingVertex],
    materials: &[Material],
    (textures, first_light): (&TextureSet, u32),
) -> Vec<TriangleEmitter> {
    let emissions: Vec<Option<Emission>> =
        materials.iter().map(|material| Emission::of(material, textures)).collect();
    if emissions.iter().all(Option::is_none) {
        return Vec::new();
    }
    let emitters: Vec<TriangleEmitter> = triangles
        .par_iter()
        .enumerate()
        .filter_map(|(id, triangle)| {
            let emission = emissions[triangle.material as usize].as_ref()?;
            let area = area(triangle);
            let corners = triangle_vertices[id].map(|vertex| &vertices[vertex as usize]);
            let power = PI * area * emission.sides * emission.luminance_over(corners);
            // A triangle without area, or with a power that no float can hold, is never chosen.
            let choice =
                LightChoice { power, bounds: Some(bounds_of(triangle, emission.sides > 1.0)) };
            ((power as f32) > 0.0 && (area as f32) > 0.0 && power.is_finite())
                .then_some(TriangleEmitter { triangle: id as u32, area, choice })
        })
        .collect();
    for (number, emitter) in emitters.iter().enumerate() {
        let triangle = &mut triangles[emitter.triangle as usize];
        triangle.flags |= triangle_flags::EMISSIVE;
        triangle.light = first_light + number as u32;
    }
    emitters
}

/// Returns whether any primitive with this material emits.
pub(crate) fn emits(material: &Material, textures: &TextureSet) -> bool {
    Emission::of(material, textures).is_some()
}

/// Returns the lights of triangles.
pub(crate) fn lights(emitters: &[TriangleEmitter]) -> impl Iterator<Item = Light> {
    emitters.iter().map(|emitter| Light {
        kind: LightKind::Triangle as u32,
        triangle: emitter.triangle,
        area: emitter.area as f32,
        ..BLANK
    })
}

/// Returns the environment's light.
pub(crate) fn environment_light() -> Light {
    Light { kind: LightKind::Environment as u32, ..BLANK }
}

const BLANK: Light = Light {
    position: [0.0; 3],
    kind: 0,
    direction: [0.0; 3],
    range: 0.0,
    emission: [0.0; 3],
    triangle: NONE,
    spot_scale: 0.0,
    spot_offset: 0.0,
    pick_probability: 0.0,
    area: 0.0,
    trail: 0,
    reserved: [0; 3],
};

/// Returns the bounds of a triangle's light. It shines from its front, or from both sides, with the
/// cosine.
fn bounds_of(triangle: &Triangle, both_sides: bool) -> LightBounds {
    let corners = [triangle.v0, triangle.v1, triangle.v2].map(widen);
    let normal = cross(sub(corners[1], corners[0]), sub(corners[2], corners[0]));
    let fold = |pick: fn(f64, f64) -> f64| {
        std::array::from_fn(|k| pick(pick(corners[0][k], corners[1][k]), corners[2][k]))
    };
    LightBounds {
        lower: fold(f64::min),
        upper: fold(f64::max),
        axis: normalize(normal).unwrap_or([0.0, 1.0, 0.0]),
        spread: 0.0,
        emission: 0.5 * PI,
        both_sides,
    }
}

fn area(triangle: &Triangle) -> f64 {
    let [a, b, c] = [triangle.v0, triangle.v1, triangle.v2].map(widen);
    0.5 * length(cross(sub(b, a), sub(c, a)))
}

impl<'a> Emission<'a> {
    fn of(material: &Material, textures: &'a TextureSet) -> Option<Self> {
        let factor = widen(material.emission);
        if luminance(factor) <= 0.0 {
            return None;
        }
        let sides = if material.flags & material_flags::DOUBLE_SIDED != 0 { 2.0 } else { 1.0 };
        let texture = &material.emission_texture;
        if texture.texture == NONE {
            return Some(Self { factor, sides, texture: None });
        }
        let reader = TexelReader::new(textures, texture.texture);
        let mean = reader.mean();
        let mean = luminance(std::array::from_fn(|i| mean[i] * factor[i]));
        if mean <= 0.0 {
            return None;
        }
        let map = texture.uv_from_mesh.map(f64::from);
        Some(Self { factor, sides, texture: Some((reader, mean, map, texture.uv_set as usize)) })
    }

    /// Returns the mean luminance over a triangle, from points that are evenly spread over it.
    fn luminance_over(&self, corners: [&ShadingVertex; 3]) -> f64 {
        let Some((reader, mean, map, set)) = &self.texture else { return luminance(self.factor) };
        let uvs = corners.map(|corner| match set {
            0 => [f64::from(corner.u0), f64::from(corner.v0)],
            _ => corner.uv1.map(f64::from),
        });
        let mut sum = 0.0;
        let mut count = 0.0;
        for i in 0..PROBES_PER_EDGE {
            for j in 0..PROBES_PER_EDGE - i {
                let step = |k: u32| (f64::from(k) + 1.0 / 3.0) / f64::from(PROBES_PER_EDGE);
                let (b, c) = (step(i), step(j));
                let uv: [f64; 2] = std::array::from_fn(|k| {
                    uvs[0][k] * (1.0 - b - c) + uvs[1][k] * b + uvs[2][k] * c
                });
                let u = map[0] * uv[0] + map[1] * uv[1] + map[2];
                let v = map[3] * uv[0] + map[4] * uv[1] + map[5];
                let texel = reader.nearest(u, v);
                sum += luminance(std::array::from_fn(|k| texel[k] * self.factor[k]));
                count += 1.0;
            }
        }
        (1.0 - MEAN_SHARE) * sum / count + MEAN_SHARE * mean
    }
}
