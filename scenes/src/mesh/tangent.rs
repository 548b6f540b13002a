//! Tangents for meshes that have none, as glTF requires (§3.7.2.1): MikkTSpace, by the
//! `bevy_mikktspace` crate with functions of `libm`. Owns the protection of that crate from input
//! that would take too long or recurse too deeply.
//!
//! Corners of one vertex may get different tangents, on both sides of a seam in the UVs. The vertex
//! is then split.

use crate::math::{Vec3, cross, normalize, scale, sub, widen};
use crate::mesh::geometry::Geometry;
use bevy_mikktspace::{Ops, TangentSpace, generate_tangents};
use std::collections::BTreeMap;

/// Most triangles at one vertex that are averaged. The crate recurses as deep as the number of
/// triangles at a vertex, and takes its square in time. With more triangles, each has the tangent
/// of its own UVs.
const TRIANGLES_AT_VERTEX_MAX: u64 = 1024;

/// A tangent without a direction.
const NONE: [f32; 4] = [0.0, 0.0, 0.0, 1.0];

/// Approximate bytes of a triangle while tangents are made.
pub(crate) const SCRATCH_BYTES: u64 = 768;

/// Tangents, and their vertices.
#[derive(Debug)]
pub(crate) struct Tangents {
    /// Direction and sign of the bitangent of each new vertex; zero if UVs give no direction.
    pub(crate) tangents: Vec<[f32; 4]>,
    /// Old vertex of each new one: first all old vertices, then copies of those that are split.
    pub(crate) sources: Vec<u32>,
    /// The triangles over the new vertices.
    pub(crate) triangles: Vec<[u32; 3]>,
}

/// Makes tangents along growing u of the UV set `set`; None if the set is absent.
pub(crate) fn generate(geometry: &Geometry, set: usize) -> Option<Tangents> {
    if geometry.uvs[set].is_empty() {
        return None;
    }
    let mut surface = Surface::new(geometry, set);
    // The error has no kinds.
    let made = generate_tangents(&mut surface);
    debug_assert!(made.is_ok());
    let corners = surface.corners;
    Some(split(geometry, &corners))
}

/// Square roots and arc cosines with the same bits on every machine.
struct SameBits;

impl Ops for SameBits {
    fn sqrt(x: f32) -> f32 {
        libm::sqrtf(x)
    }

    fn acos(x: f32) -> f32 {
        libm::acos(f64::from(x)) as f32
    }
}

/// A vertex for MikkTSpace: position, normal and UV. Vertices with equal values are the same.
type Values = ([f32; 3], [f32; 3], [f32; 2]);

/// A primitive in the form for the crate.
struct Surface<'a> {
    triangles: &'a [[u32; 3]],
    /// Values of each vertex.
    values: Vec<Values>,
    /// Triangles for the crate.
    faces: Vec<u32>,
    /// Tangent of each corner of each triangle. None if it has none, and the vertex's other corners
    /// decide.
    corners: Vec<[Option<[f32; 4]>; 3]>,
}

impl<'a> Surface<'a> {
    fn new(geometry: &'a Geometry, set: usize) -> Self {
        let triangles = geometry.triangles.as_slice();
        let values = values(geometry, set);
        let mut corners = vec![[None; 3]; triangles.len()];
        let mut faces = Vec::with_capacity(triangles.len());
        let crowded = crowded(triangles, &values);
        for (index, triangle) in triangles.iter().enumerate() {
            let [a, b, c] = triangle.map(|vertex| values[vertex as usize].0);
            if a == b || b == c || c == a {
                // No ray hits it, and the crate would look for its neighbours among all triangles.
            } else if triangle.iter().any(|vertex| crowded[*vertex as usize]) {
                corners[index] = [own_tangent(triangle.map(|vertex| values[vertex as usize])); 3];
            } else {
                faces.push(index as u32);
            }
        }
        Self { triangles, values, faces, corners }
    }

    fn value(&self, face: usize, corner: usize) -> &Values {
        &self.values[self.triangles[self.faces[face] as usize][corner] as usize]
    }
}

/// Returns the values of every vertex, with flat normals if there are no others. Both zeros become
/// one value.
fn values(geometry: &Geometry, set: usize) -> Vec<Values> {
    let mut normals: Vec<Option<Vec3>> =
        geometry.normals.iter().map(|n| normalize(widen(*n))).collect();
    if normals.is_empty() {
        normals = vec![None; geometry.positions.len()];
        for triangle in &geometry.triangles {
            let [a, b, c] = triangle.map(|vertex| widen(geometry.positions[vertex as usize]));
            let normal = normalize(cross(sub(b, a), sub(c, a)));
            triangle.iter().for_each(|vertex| normals[*vertex as usize] = normal);
        }
    }
    let vertices = geometry.positions.iter().zip(normals).zip(&geometry.uvs[set]);
    vertices
        .map(|((position, normal), uv)| {
            let normal = normal.unwrap_or([0.0; 3]).map(|c| c as f32 + 0.0);
            (position.map(|c| c + 0.0), normal, uv.map(|c| c + 0.0))
        })
        .collect()
}

/// Returns which vertices are shared by too many triangles, together with other vertices of the
/// same values.
fn crowded(triangles: &[[u32; 3]], values: &[Values]) -> Vec<bool> {
    let mut counts = vec![0u32; values.len()];
    triangles.iter().flatten().for_each(|vertex| counts[*vertex as usize] += 1);
    let bits = |vertex: &u32| {
        let (position, normal, uv) = values[*vertex as usize];
        (position.map(f32::to_bits), normal.map(f32::to_bits), uv.map(f32::to_bits))
    };
    let mut order: Vec<u32> = (0..values.len() as u32).collect();
    order.sort_unstable_by_key(bits);
    let mut crowded = vec![false; values.len()];
    for same in order.chunk_by(|a, b| bits(a) == bits(b)) {
        let count: u64 = same.iter().map(|vertex| u64::from(counts[*vertex as usize])).sum();
        if count > TRIANGLES_AT_VERTEX_MAX {
            same.iter().for_each(|vertex| crowded[*vertex as usize] = true);
        }
    }
    crowded
}

/// Returns the tangent of a triangle's own UVs, in its plane; None if they span no area.
fn own_tangent(corners: [Values; 3]) -> Option<[f32; 4]> {
    let [a, b, c] = corners.map(|(position, ..)| widen(position));
    let [ta, tb, tc] = corners.map(|(.., uv)| uv.map(f64::from));
    let (e1, e2) = (sub(b, a), sub(c, a));
    let (d1, d2) = ([tb[0] - ta[0], tb[1] - ta[1]], [tc[0] - ta[0], tc[1] - ta[1]]);
    let area = d1[0] * d2[1] - d2[0] * d1[1];
    let sense = if area > 0.0 { 1.0 } else { -1.0 };
    encoded(scale(sub(scale(e1, d2[1]), scale(e2, d1[1])), sense), area > 0.0)
}

/// Returns a tangent with its sign, if it has a direction. v grows downwards in glTF, and the
/// bitangent points up the texture. If the UVs keep the orientation, the sign is -1.
fn encoded(tangent: Vec3, keeps_sense: bool) -> Option<[f32; 4]> {
    let [x, y, z] = normalize(tangent)?.map(|c| c as f32);
    Some([x, y, z, if keeps_sense { -1.0 } else { 1.0 }])
}

impl bevy_mikktspace::Geometry<SameBits> for Surface<'_> {
    fn num_faces(&self) -> usize {
        self.faces.len()
    }

    fn num_vertices_of_face(&self, _face: usize) -> usize {
        3
    }

    fn position(&self, face: usize, corner: usize) -> [f32; 3] {
        self.value(face, corner).0
    }

    fn normal(&self, face: usize, corner: usize) -> [f32; 3] {
        self.value(face, corner).1
    }

    fn tex_coord(&self, face: usize, corner: usize) -> [f32; 2] {
        self.value(face, corner).2
    }

    fn set_tangent(&mut self, space: Option<TangentSpace>, face: usize, corner: usize) {
        if let Some(space) = space {
            let triangle = self.faces[face] as usize;
            self.corners[triangle][corner] =
                encoded(widen(space.tangent()), space.is_orientation_preserving());
        }
    }
}

/// Gives each vertex the tangent of its corners, and makes a copy for corners with another tangent
/// than the first.
fn split(geometry: &Geometry, corners: &[[Option<[f32; 4]>; 3]]) -> Tangents {
    let count = geometry.positions.len();
    let mut made: Vec<Option<[f32; 4]>> = vec![None; count];
    let mut sources: Vec<u32> = (0..count as u32).collect();
    let mut copies: BTreeMap<(u32, [u32; 4]), u32> = BTreeMap::new();
    let mut triangles = geometry.triangles.clone();
    for (triangle, tangents) in triangles.iter_mut().zip(corners) {
        for (vertex, tangent) in triangle.iter_mut().zip(tangents) {
            let Some(tangent) = tangent else { continue };
            let first = &mut made[*vertex as usize];
            match first {
                Some(first) if first.map(f32::to_bits) == tangent.map(f32::to_bits) => {}
                None => *first = Some(*tangent),
                Some(_) => {
                    let key = (*vertex, tangent.map(f32::to_bits));
                    *vertex = *copies.entry(key).or_insert_with(|| {
                        sources.push(*vertex);
                        made.push(Some(*tangent));
                        sources.len() as u32 - 1
                    });
                }
            }
        }
    }
    let tangents = made.into_iter().map(|tangent| tangent.unwrap_or(NONE)).collect();
    Tangents { tangents, sources, triangles }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quad(uvs: [[f32; 2]; 4]) -> Geometry {
        Geometry {
            triangles: vec![[0, 1, 2], [0, 2, 3]],
            positions: vec![[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [1.0, 1.0, 0.0], [0.0, 1.0, 0.0]],
            normals: vec![[0.0, 0.0, 1.0]; 4],
            uvs: [uvs.to_vec(), Vec::new()],
            ..Geometry::default()
        }
    }

    const UPRIGHT: [[f32; 2]; 4] = [[0.0, 1.0], [1.0, 1.0], [1.0, 0.0], [0.0, 0.0]];

    /// Returns `count` triangles around the origin, with UVs as seen from above.
    fn fan(count: u32) -> Geometry {
        let rim = (0..count).map(|index| {
            let angle = std::f64::consts::TAU * f64::from(index) / f64::from(count);
            [libm::cos(angle) as f32, libm::sin(angle) as f32, 0.0]
        });
        let positions: Vec<[f32; 3]> = std::iter::once([0.0; 3]).chain(rim).collect();
        let uvs = positions.iter().map(|p| [p[0], -p[1]]).collect();
        Geometry {
            triangles: (0..count).map(|index| [0, 1 + index, 1 + (index + 1) % count]).collect(),
            normals: vec![[0.0, 0.0, 1.0]; positions.len()],
            uvs: [uvs, Vec::new()],
            positions,
            ..Geometry::default()
        }
    }

    #[test]
    fn an_upright_texture_has_its_bitangent_pointing_up() {
        let upright = generate(&quad(UPRIGHT), 0).unwrap();
        assert_eq!(upright.tangents, vec![[1.0, 0.0, 0.0, 1.0]; 4]);
        let mirrored =
            generate(&quad([[1.0, 1.0], [0.0, 1.0], [0.0, 0.0], [1.0, 0.0]]), 0).unwrap();
        assert_eq!(mirrored.tangents, vec![[-1.0, 0.0, 0.0, -1.0]; 4]);
        assert!(generate(&quad(UPRIGHT), 1).is_none());
    }

    #[test]
    fn vertices_between_mirrored_halves_are_split() {
        let halves = generate(&quad([[0.0, 1.0], [1.0, 1.0], [1.0, 0.0], [1.0, 1.0]]), 0).unwrap();
        assert_eq!(
            (halves.sources.as_slice(), halves.triangles[0]),
            (&[0, 1, 2, 3, 0, 2][..], [0, 1, 2])
        );
        assert_eq!((halves.triangles[1], halves.tangents[0][3]), ([4, 5, 3], 1.0));
        assert_eq!(halves.tangents[4][3], -1.0);
    }

    #[test]
    fn vertices_of_equal_values_are_averaged_as_one() {
        // The same fold, once with shared vertices along its edge and once without.
        let mut shared = quad(UPRIGHT);
        shared.positions[3] = [0.0, 0.5, 0.5];
        let mut apart = shared.clone();
        apart.gather(&[0, 1, 2, 0, 2, 3]);
        apart.triangles = vec![[0, 1, 2], [3, 4, 5]];
        // Both zeros are the same value.
        apart.positions[3] = [-0.0, 0.0, -0.0];
        let (shared, apart) = (generate(&shared, 0).unwrap(), generate(&apart, 0).unwrap());
        let of = |made: &Tangents| -> Vec<[f32; 4]> {
            made.triangles.iter().flatten().map(|vertex| made.tangents[*vertex as usize]).collect()
        };
        assert_eq!(of(&shared), of(&apart));
    }

    #[test]
    fn a_triangle_without_uv_area_takes_its_neighbours_tangents() {
        let flat = generate(&quad([[0.0, 1.0], [1.0, 1.0], [1.0, 0.0], [1.0, 0.0]]), 0).unwrap();
        let [_, _, last] = flat.triangles[1];
        assert_eq!(flat.tangents[flat.triangles[1][0] as usize], [1.0, 0.0, 0.0, 1.0]);
        assert_eq!(flat.tangents[last as usize], NONE);
        let none = generate(&quad([[0.5; 2]; 4]), 0).unwrap();
        assert_eq!(none.tangents, vec![NONE; 4]);
    }

    #[test]
    fn crowded_vertices_and_flat_triangles_cost_little() {
        let most = TRIANGLES_AT_VERTEX_MAX as u32;
        for count in [3, 100, most, most + 1, 200_000] {
            let made = generate(&fan(count), 0).unwrap();
            for vertex in made.triangles.iter().flatten() {
                let [x, y, z, w] = made.tangents[*vertex as usize];
                assert!(
                    x > 0.999 && y.abs() < 0.04 && z == 0.0 && w == 1.0,
                    "{count}: {x} {y} {z} {w}"
                );
            }
        }
        let mut flat = fan(200_000);
        flat.triangles.iter_mut().skip(1).for_each(|triangle| triangle[2] = triangle[1]);
        assert_eq!(generate(&flat, 0).unwrap().tangents.len(), 200_001);
    }

    #[test]
    fn numbers_beyond_bounds_give_units_or_nothing() {
        for size in [1.0e-30f32, 1.0e-12, 1.0e12, 3.0e38] {
            let mut geometry = quad(UPRIGHT);
            geometry.positions.iter_mut().flatten().for_each(|c| *c *= size);
            geometry.uvs[0].iter_mut().flatten().for_each(|c| *c *= size);
            geometry.normals[1] = [0.0; 3];
            for [x, y, z, w] in generate(&geometry, 0).unwrap().tangents {
                let length = (x * x + y * y + z * z).sqrt();
                assert!(length == 0.0 || (length - 1.0).abs() < 1e-6, "{size}: {length}");
                assert_eq!(w.abs(), 1.0);
            }
        }
    }
}
