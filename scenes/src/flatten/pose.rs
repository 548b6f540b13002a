//! One placed primitive: morphing, skinning and the way into the world, into triangles and
//! vertices. Owns no order.

use crate::math::{
    Affine, Vec3, add, any_perpendicular, cross, dot, narrow, normalize, scale, sub, widen,
};
use crate::mesh::geometry::Geometry;
use tessera_layout::{NONE, ShadingVertex, Triangle, triangle_flags};

/// Where a primitive goes.
pub(crate) struct Placement<'a> {
    /// World from mesh, for primitives without a skin.
    pub(crate) world: Affine,
    /// World from mesh per joint.
    pub(crate) joints: Option<&'a [Affine]>,
    /// One per morph target; missing ones are 0.
    pub(crate) weights: &'a [f64],
    /// Index of the material, and the flags that it gives to every triangle.
    pub(crate) material: u32,
    pub(crate) material_flags: u32,
    /// Where this primitive's vertices begin in the scene's.
    pub(crate) first_vertex: u32,
}

/// Where the results go: exactly as long as the geometry says.
pub(crate) struct Target<'a> {
    pub(crate) triangles: &'a mut [Triangle],
    pub(crate) triangle_vertices: &'a mut [[u32; 3]],
    pub(crate) vertices: &'a mut [ShadingVertex],
}

/// Fills `target`. The error is the number of a vertex whose place is not finite.
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
                own = Frame::new(&blend(geometry, joints, vertex));
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

/// The unit normal of a triangle's front; None where it has no area.
pub(crate) fn geometric_normal(triangle: &Triangle) -> Option<Vec3> {
    let [a, b, c] = [triangle.v0, triangle.v1, triangle.v2].map(widen);
    normalize(cross(sub(b, a), sub(c, a)))
}

/// A map with its map of normals.
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

/// The weighted sum of a vertex's joints; weights are scaled to sum to one.
fn blend(geometry: &Geometry, joints: &[Affine], vertex: usize) -> Affine {
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
        return joints.first().copied().unwrap_or(Affine::IDENTITY);
    }
    let mut blended = Affine::ZERO;
    blended.accumulate(&sum, 1.0 / total);
    blended
}

fn morph(
    base: Vec3,
    geometry: &Geometry,
    weights: &[f64],
    delta: impl Fn(usize) -> Option<[f32; 3]>,
) -> Vec3 {
    let mut sum = base;
    for (target, weight) in weights.iter().enumerate().take(geometry.targets.len()) {
        if *weight != 0.0
            && let Some(delta) = delta(target)
        {
            sum = add(sum, scale(widen(delta), *weight));
        }
    }
    sum
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
    // A normal of no length, as broken files have them, becomes +Y rather than something that is no
    // number.
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
    let uv = |set: usize| geometry.uvs[set].get(vertex).copied().unwrap_or_default();
    let [u0, v0] = uv(0);
    ShadingVertex {
        normal: narrow(normal),
        u0,
        tangent: narrow(tangent),
        tangent_sign: sign,
        color: geometry.colors.get(vertex).copied().unwrap_or([1.0; 4]),
        v0,
        uv1: uv(1),
        reserved: 0.0,
    }
}

/// The unit vector along `tangent` at a right angle to `normal`; zero where there was no tangent at
/// all.
fn upright(tangent: Vec3, normal: Vec3) -> Vec3 {
    if tangent == [0.0; 3] {
        return tangent;
    }
    normalize(sub(tangent, scale(normal, dot(normal, tangent))))
        .unwrap_or_else(|| any_perpendicular(normal))
}
