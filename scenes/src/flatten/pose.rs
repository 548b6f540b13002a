//! Places one primitive: morphing, skinning and the transform to the world, into triangles and
//! vertices. Owns no order.

use crate::math::{
    Affine, Vec3, any_perpendicular, cross, dot, narrow, normalize, scale, sub, widen,
};
use crate::mesh::geometry::Geometry;
use tessera_layout::{NONE, ShadingVertex, Triangle, triangle_flags};

/// Place of a primitive.
pub(crate) struct Placement<'a> {
    /// World from mesh, for primitives without a skin.
    pub(crate) world: Affine,
    /// Map from mesh to world for each joint.
    pub(crate) joints: Option<&'a [Affine]>,
    /// Map from mesh to world for vertices with a skin and without any weight.
    pub(crate) unmoved: Affine,
    /// Weight of each morph target; missing ones are 0.
    pub(crate) weights: &'a [f64],
    /// Index of the material, and the flags that it gives to every triangle.
    pub(crate) material: u32,
    pub(crate) material_flags: u32,
    /// Index of this primitive's first vertex in the scene.
    pub(crate) first_vertex: u32,
    /// Factor on the vertex colours.
    pub(crate) color: [f32; 4],
}

/// Place for the results, which has exactly the length that the geometry needs.
pub(crate) struct Target<'a> {
    pub(crate) triangles: &'a mut [Triangle],
    pub(crate) triangle_vertices: &'a mut [[u32; 3]],
    pub(crate) vertices: &'a mut [ShadingVertex],
}

/// Fills `target`. The error is the number of a vertex whose position is not finite.
pub(crate) fn place(
    geometry: &Geometry,
    placement: &Placement,
    target: Target,
) -> Result<(), usize> {
    let mut positions = Vec::with_capacity(geometry.positions.len());
    let mut mirrored = Vec::new();
    let rigid = Frame::new(&placement.world);
    for (vertex, shading) in target.vertices.iter_mut().enumerate() {
        let own;
        let frame = match placement.joints.filter(|_| !geometry.influences.is_empty()) {
            Some(joints) => {
                own = Frame::new(&blend(geometry, joints, vertex, &placement.unmoved));
                mirrored.push(own.is_mirrored);
                &own
            }
            None => &rigid,
        };
        let position = narrow(frame.map.point(morphed(geometry, placement.weights, vertex)));
        if !position.iter().all(|coordinate| coordinate.is_finite()) {
            return Err(vertex);
        }
        positions.push(position);
        *shading = shade(geometry, placement.weights, vertex, frame);
        shading.color =
            std::array::from_fn(|channel| shading.color[channel] * placement.color[channel]);
    }
    for (number, corners) in geometry.triangles.iter().enumerate() {
        let is_mirrored = mirrored.get(corners[0] as usize).copied().unwrap_or(rigid.is_mirrored);
        let [a, mut b, mut c] = *corners;
        if is_mirrored {
            std::mem::swap(&mut b, &mut c);
        }
        let at = |corner: u32| positions[corner as usize];
        let mirrored_flag = if is_mirrored { triangle_flags::MIRRORED } else { 0 };
        target.triangles[number] = Triangle {
            v0: at(a),
            material: placement.material,
            v1: at(b),
            flags: placement.material_flags | mirrored_flag,
            v2: at(c),
            light: NONE,
        };
        target.triangle_vertices[number] = [a, b, c].map(|corner| corner + placement.first_vertex);
        if geometry.normals.is_empty() {
            let normal = geometric_normal(&target.triangles[number]).unwrap_or([0.0, 1.0, 0.0]);
            for corner in [a, b, c] {
                let shading = &mut target.vertices[corner as usize];
                shading.normal = narrow(normal);
                shading.tangent = narrow(upright(widen(shading.tangent), normal));
            }
        }
    }
    Ok(())
}

/// Returns the unit normal of a triangle's front; None if it has no area.
pub(crate) fn geometric_normal(triangle: &Triangle) -> Option<Vec3> {
    let [a, b, c] = [triangle.v0, triangle.v1, triangle.v2].map(widen);
    normalize(cross(sub(b, a), sub(c, a)))
}

/// A map, and its map of normals.
struct Frame {
    map: Affine,
    normal_map: [Vec3; 3],
    is_mirrored: bool,
}

impl Frame {
    fn new(map: &Affine) -> Self {
        Self { map: *map, normal_map: map.normal_map(), is_mirrored: map.determinant() < 0.0 }
    }

    fn normal(&self, normal: Vec3) -> Option<Vec3> {
        normalize(self.normal_map.map(|row| dot(row, normal)))
    }
}

/// Returns the weighted sum of a vertex's joints. The weights are scaled to sum to one. A vertex
/// without any weight stays where the file has it.
fn blend(geometry: &Geometry, joints: &[Affine], vertex: usize, unmoved: &Affine) -> Affine {
    let mut sum = Affine::ZERO;
    let mut total = 0.0;
    for (indices, weights) in &geometry.influences {
        for (joint, weight) in indices[vertex].iter().zip(weights[vertex]) {
            let weight = f64::from(weight);
            if weight > 0.0
                && let Some(map) = joints.get(*joint as usize)
            {
                sum.accumulate(map, weight);
                total += weight;
            }
        }
    }
    if total <= 0.0 {
        return *unmoved;
    }
    let mut blended = Affine::ZERO;
    blended.accumulate(&sum, 1.0 / total);
    blended
}

fn morph<const N: usize>(
    base: [f64; N],
    geometry: &Geometry,
    weights: &[f64],
    delta: impl Fn(usize) -> Option<[f32; N]>,
) -> [f64; N] {
    let mut sum = base;
    for (target, weight) in weights.iter().enumerate().take(geometry.targets.len()) {
        if *weight != 0.0
            && let Some(delta) = delta(target)
        {
            sum = std::array::from_fn(|axis| sum[axis] + f64::from(delta[axis]) * weight);
        }
    }
    sum
}

fn morphed_uv(geometry: &Geometry, weights: &[f64], vertex: usize, slot: usize) -> [f32; 2] {
    let uv = geometry.uvs[slot].get(vertex).copied().unwrap_or_default();
    let delta = |target: usize| geometry.targets[target].uvs[slot].get(vertex).copied();
    morph(uv.map(f64::from), geometry, weights, delta).map(|coordinate| coordinate as f32)
}

/// Returns the colour of a vertex. Colours that are morphed stay in [0, 1] (glTF 2.0, §3.7.2.2).
fn morphed_color(geometry: &Geometry, weights: &[f64], vertex: usize) -> [f32; 4] {
    let color = geometry.colors.get(vertex).copied().unwrap_or([1.0; 4]);
    if geometry.targets.iter().all(|target| target.colors.is_empty()) {
        return color;
    }
    let delta = |target: usize| geometry.targets[target].colors.get(vertex).copied();
    let color = morph(color.map(f64::from), geometry, weights, delta);
    color.map(|channel| channel.clamp(0.0, 1.0) as f32)
}

fn morphed(geometry: &Geometry, weights: &[f64], vertex: usize) -> Vec3 {
    let delta = |target: usize| geometry.targets[target].positions.get(vertex).copied();
    morph(widen(geometry.positions[vertex]), geometry, weights, delta)
}

fn shade(geometry: &Geometry, weights: &[f64], vertex: usize, frame: &Frame) -> ShadingVertex {
    let normal = geometry.normals.get(vertex).map(|normal| {
        let delta = |target: usize| geometry.targets[target].normals.get(vertex).copied();
        morph(widen(*normal), geometry, weights, delta)
    });
    // A normal without length, as in broken files, becomes +Y instead of NaN.
    let normal = normal.and_then(|normal| frame.normal(normal)).unwrap_or([0.0, 1.0, 0.0]);
    let (tangent, sign) = match geometry.tangents.get(vertex) {
        None => ([0.0; 3], 1.0),
        Some([x, y, z, sign]) => {
            let delta = |target: usize| geometry.targets[target].tangents.get(vertex).copied();
            let tangent = frame.map.vector(morph(widen([*x, *y, *z]), geometry, weights, delta));
            let tangent =
                if geometry.normals.is_empty() { tangent } else { upright(tangent, normal) };
            (tangent, if (*sign < 0.0) != frame.is_mirrored { -1.0 } else { 1.0 })
        }
    };
    let [u0, v0] = morphed_uv(geometry, weights, vertex, 0);
    ShadingVertex {
        normal: narrow(normal),
        u0,
        tangent: narrow(tangent),
        tangent_sign: sign,
        color: morphed_color(geometry, weights, vertex),
        v0,
        uv1: morphed_uv(geometry, weights, vertex, 1),
        reserved: 0.0,
    }
}

/// Returns the unit vector along `tangent` that is perpendicular to `normal`; zero if there was no
/// tangent.
fn upright(tangent: Vec3, normal: Vec3) -> Vec3 {
    if tangent == [0.0; 3] {
        return tangent;
    }
    normalize(sub(tangent, scale(normal, dot(normal, tangent))))
        .unwrap_or_else(|| any_perpendicular(normal))
}
