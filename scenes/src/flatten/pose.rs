//! Places one primitive: morphing, skinning and the transform to the world, into triangles and
//! vertices. Owns no order.

use crate::math::{
    Affine, Vec3, any_perpendicular, cross, dot, narrow, normalize, scale, sub, widen,
};
use crate::mesh::geometry::Geometry;
use rayon::prelude::*;
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

/// Vertices or triangles below which their pieces are not shared out between threads.
const PIECE_MIN: usize = 2048;

/// Fills `target`. The error is the number of a vertex whose position is not finite.
pub(crate) fn place(
    geometry: &Geometry,
    placement: &Placement,
    target: Target,
) -> Result<(), usize> {
    let pose = Pose { geometry, placement, rigid: Frame::new(&placement.world) };
    let has_facets = geometry.has_facets();
    let mut posed = vec![PosedVertex::default(); geometry.positions.len()];
    let count = posed.len();
    let posing = posed.par_iter_mut().enumerate().with_min_len(PIECE_MIN);
    let far = if has_facets {
        posing.map(|(vertex, posed)| pose.vertex(vertex, posed, None)).min()
    } else {
        let vertices = target.vertices.par_iter_mut();
        let posing = posing.zip(vertices);
        posing.map(|((vertex, posed), shading)| pose.vertex(vertex, posed, Some(shading))).min()
    };
    if let Some(vertex) = far.filter(|vertex| *vertex < count) {
        return Err(vertex);
    }
    let placed = target.triangles.par_iter_mut().zip(&mut *target.triangle_vertices);
    let placing = placed.zip(&geometry.triangles).with_min_len(PIECE_MIN);
    placing.for_each(|((triangle, vertices), corners)| {
        (*triangle, *vertices) = pose.triangle(&posed, *corners);
    });
    drop(posed);
    if has_facets {
        pose.shade_facets(target);
    } else if geometry.normals.is_empty() {
        flatten_normals(target, placement.first_vertex);
    }
    Ok(())
}

/// A vertex in the world, and whether the map to there mirrors.
#[derive(Clone, Copy, Debug, Default)]
struct PosedVertex {
    position: [f32; 3],
    is_mirrored: bool,
}

/// A primitive on its way into the world.
struct Pose<'a> {
    geometry: &'a Geometry,
    placement: &'a Placement<'a>,
    /// Map of vertices without joints.
    rigid: Frame,
}

impl Pose<'_> {
    /// Poses a vertex, and shades it unless triangles do that. Returns its number if its position
    /// is not finite, and a greater one than any if it is.
    fn vertex(
        &self,
        vertex: usize,
        posed: &mut PosedVertex,
        shading: Option<&mut ShadingVertex>,
    ) -> usize {
        let (geometry, placement) = (self.geometry, self.placement);
        let own;
        let frame = match placement.joints.filter(|_| !geometry.influences.is_empty()) {
            Some(joints) => {
                own = Frame::new(&blend(geometry, joints, vertex, &placement.unmoved));
                &own
            }
            None => &self.rigid,
        };
        let position = narrow(frame.map.point(morphed(geometry, placement.weights, vertex)));
        *posed = PosedVertex { position, is_mirrored: frame.is_mirrored };
        if let Some(shading) = shading {
            *shading = self.shade(vertex, frame);
        }
        if position.iter().all(|coordinate| coordinate.is_finite()) { usize::MAX } else { vertex }
    }

    fn shade(&self, vertex: usize, frame: &Frame) -> ShadingVertex {
        let mut shading = shade(self.geometry, self.placement.weights, vertex, frame);
        let factor = self.placement.color;
        shading.color = std::array::from_fn(|channel| shading.color[channel] * factor[channel]);
        shading
    }

    /// Returns a triangle with the numbers of its vertices.
    fn triangle(&self, posed: &[PosedVertex], corners: [u32; 3]) -> (Triangle, [u32; 3]) {
        let placement = self.placement;
        let [a, mut b, mut c] = corners;
        let is_mirrored = posed[a as usize].is_mirrored;
        if is_mirrored {
            std::mem::swap(&mut b, &mut c);
        }
        let at = |corner: u32| posed[corner as usize].position;
        let mirrored_flag = if is_mirrored { triangle_flags::MIRRORED } else { 0 };
        let triangle = Triangle {
            v0: at(a),
            material: placement.material,
            v1: at(b),
            flags: placement.material_flags | mirrored_flag,
            v2: at(c),
            light: NONE,
        };
        (triangle, [a, b, c].map(|corner| corner + placement.first_vertex))
    }

    /// Gives each triangle the one vertex that its corners are shaded with.
    fn shade_facets(&self, target: Target) {
        // No vertex differs from another but by its normal.
        let alike = self.shade(0, &self.rigid);
        let facets = target.vertices.par_iter_mut().zip(&mut *target.triangle_vertices);
        let facets = facets.zip(&*target.triangles).enumerate().with_min_len(PIECE_MIN);
        facets.for_each(|(number, ((shading, corners), triangle))| {
            let normal = narrow(front_normal(triangle));
            *shading = ShadingVertex { normal, ..alike };
            // The limit on vertices makes the sum fit.
            *corners = [self.placement.first_vertex + number as u32; 3];
        });
    }
}

/// Gives the vertices of each triangle, which no other has, its normal.
fn flatten_normals(target: Target, first_vertex: u32) {
    for (triangle, corners) in target.triangles.iter().zip(&*target.triangle_vertices) {
        let normal = front_normal(triangle);
        for corner in corners {
            let shading = &mut target.vertices[(corner - first_vertex) as usize];
            shading.normal = narrow(normal);
            shading.tangent = narrow(upright(widen(shading.tangent), normal));
        }
    }
}

fn front_normal(triangle: &Triangle) -> Vec3 {
    geometric_normal(triangle).unwrap_or([0.0, 1.0, 0.0])
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A sheet with a fold, and a vertex that no triangle has.
    fn sheet() -> Geometry {
        let side = 70;
        let point = |at: u32| {
            let (x, y) = ((at % side) as f32, (at / side) as f32);
            [x, y, (0.7 * x).sin() + (x - y).abs()]
        };
        let quads = (0..side * (side - 1)).filter(|at| at % side != side - 1);
        let corners = |at: u32| [[at, at + 1, at + side], [at + 1, at + side + 1, at + side]];
        let mut geometry = Geometry {
            triangles: quads.flat_map(corners).collect(),
            positions: (0..side * side).map(point).collect(),
            ..Geometry::default()
        };
        geometry.positions.insert(0, [1e30; 3]);
        geometry.triangles.iter_mut().flatten().for_each(|vertex| *vertex += 1);
        geometry
    }

    fn placed(geometry: &Geometry, mirror: f64) -> (Vec<Triangle>, Vec<[ShadingVertex; 3]>) {
        let mut world = Affine { offset: [5.0, -7.0, 0.25], ..Affine::IDENTITY };
        world.linear[1] = [0.3, mirror, -0.2];
        let placement = Placement {
            world,
            joints: None,
            unmoved: Affine::IDENTITY,
            weights: &[],
            material: 3,
            material_flags: triangle_flags::DOUBLE_SIDED,
            first_vertex: 11,
            color: [0.5, 0.25, 1.0, 0.75],
        };
        let count = geometry.triangles.len();
        let mut triangles = vec![Triangle::default(); count];
        let mut triangle_vertices = vec![[0; 3]; count];
        let mut vertices = vec![ShadingVertex::default(); geometry.shading_count()];
        let target = Target {
            triangles: &mut triangles,
            triangle_vertices: &mut triangle_vertices,
            vertices: &mut vertices,
        };
        place(geometry, &placement, target).unwrap();
        let vertex = |number: u32| vertices[number as usize - 11];
        (triangles, triangle_vertices.iter().map(|corners| corners.map(vertex)).collect())
    }

    #[test]
    fn facets_are_shaded_like_vertices_of_their_own() {
        for mirror in [1.5, -1.5] {
            let mut facets = sheet();
            facets.remove_unused();
            assert_eq!((facets.positions.len(), facets.triangles[0]), (4900, [0, 1, 70]));
            assert_eq!(facets.shading_count(), facets.triangles.len());
            // White vertices are no other than those without a colour.
            let mut apart = sheet();
            apart.colors = vec![[1.0; 4]; apart.positions.len()];
            apart.unshare();
            assert_eq!(apart.shading_count(), 3 * apart.triangles.len());
            assert!(placed(&facets, mirror) == placed(&apart, mirror), "{mirror}");
        }
    }

    #[test]
    fn a_vertex_beyond_every_float_is_named() {
        let mut geometry = sheet();
        geometry.positions[4000] = [3e38; 3];
        geometry.positions[4500] = [3e38; 3];
        let placement = Placement {
            world: Affine {
                linear: Affine::IDENTITY.linear.map(|row| scale(row, 2.0)),
                ..Affine::IDENTITY
            },
            joints: None,
            unmoved: Affine::IDENTITY,
            weights: &[],
            material: 0,
            material_flags: 0,
            first_vertex: 0,
            color: [1.0; 4],
        };
        let target = Target {
            triangles: &mut vec![Triangle::default(); geometry.triangles.len()],
            triangle_vertices: &mut vec![[0; 3]; geometry.triangles.len()],
            vertices: &mut vec![ShadingVertex::default(); geometry.shading_count()],
        };
        assert_eq!(place(&geometry, &placement, target), Err(4000));
    }
}
