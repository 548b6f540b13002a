//! Tangents for meshes that have none, from their UVs. Averages over a vertex by corner angle; vertices whose triangles
//! disagree about the UVs' sense of rotation are split. Not MikkTSpace: seams inside one sense are smoothed over.

use crate::geometry::Geometry;
use crate::math::{Vec3, add, cross, dot, normalize, scale, sub, widen};
use std::collections::BTreeMap;

/// Gives `geometry` tangents along growing u of the UV set `set`; leaves it without where the set is absent.
pub(crate) fn generate(geometry: &mut Geometry, set: usize) {
    if geometry.uvs[set].is_empty() {
        return;
    }
    let mirrored = split_mirrored(geometry, set);
    let mut sums = vec![[0.0f64; 3]; geometry.positions.len()];
    for triangle in &geometry.triangles {
        let corners = triangle.map(|v| widen(geometry.positions[v as usize]));
        let Some((tangent, _)) = frame(geometry, *triangle, set) else { continue };
        for (corner, vertex) in triangle.iter().enumerate() {
            let along = sub(corners[(corner + 1) % 3], corners[corner]);
            let back = sub(corners[(corner + 2) % 3], corners[corner]);
            let (Some(along), Some(back)) = (normalize(along), normalize(back)) else { continue };
            let angle = libm::acos(dot(along, back).clamp(-1.0, 1.0));
            let sum = &mut sums[*vertex as usize];
            *sum = add(*sum, scale(tangent, angle));
        }
    }
    geometry.tangents = sums
        .iter()
        .enumerate()
        .map(|(vertex, sum)| {
            let normal = geometry.normals.get(vertex).and_then(|n| normalize(widen(*n)));
            let flat = normal.map_or(*sum, |n| sub(*sum, scale(n, dot(n, *sum))));
            let [x, y, z] = normalize(flat).unwrap_or([0.0; 3]).map(|c| c as f32);
            // v grows downwards in glTF and the bitangent points up the texture: unmirrored is +1.
            [x, y, z, if mirrored[vertex] { -1.0 } else { 1.0 }]
        })
        .collect();
}

/// The unit tangent of a triangle, and whether its UVs are mirrored; None where UVs or corners span no area.
fn frame(geometry: &Geometry, triangle: [u32; 3], set: usize) -> Option<(Vec3, bool)> {
    let [a, b, c] = triangle.map(|v| widen(geometry.positions[v as usize]));
    let [ta, tb, tc] = triangle.map(|v| geometry.uvs[set][v as usize].map(f64::from));
    let (e1, e2) = (sub(b, a), sub(c, a));
    let (d1, d2) = ([tb[0] - ta[0], tb[1] - ta[1]], [tc[0] - ta[0], tc[1] - ta[1]]);
    let area = d1[0] * d2[1] - d2[0] * d1[1];
    if area == 0.0 || normalize(cross(e1, e2)).is_none() {
        return None;
    }
    let tangent = sub(scale(e1, d2[1]), scale(e2, d1[1]));
    Some((normalize(scale(tangent, 1.0 / area))?, area > 0.0))
}

/// Splits vertices that mirrored and unmirrored triangles share; says of each vertex whether it is mirrored.
fn split_mirrored(geometry: &mut Geometry, set: usize) -> Vec<bool> {
    let mut sides: Vec<Option<bool>> = vec![None; geometry.positions.len()];
    let mut sources: Vec<u32> = (0..geometry.positions.len() as u32).collect();
    let mut twins: BTreeMap<u32, u32> = BTreeMap::new();
    let frames: Vec<Option<bool>> =
        geometry.triangles.iter().map(|t| frame(geometry, *t, set).map(|(_, mirrored)| mirrored)).collect();
    for (triangle, mirrored) in geometry.triangles.iter_mut().zip(frames) {
        let Some(mirrored) = mirrored else { continue };
        for vertex in triangle {
            match sides[*vertex as usize] {
                None => sides[*vertex as usize] = Some(mirrored),
                Some(side) if side == mirrored => {}
                Some(_) => {
                    let twin = *twins.entry(*vertex).or_insert_with(|| {
                        sources.push(*vertex);
                        sides.push(Some(mirrored));
                        sources.len() as u32 - 1
                    });
                    *vertex = twin;
                }
            }
        }
    }
    if !twins.is_empty() {
        geometry.gather(&sources);
    }
    sides.into_iter().map(|side| side.unwrap_or(false)).collect()
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

    #[test]
    fn an_upright_texture_has_its_bitangent_pointing_up() {
        let mut upright = quad([[0.0, 1.0], [1.0, 1.0], [1.0, 0.0], [0.0, 0.0]]);
        generate(&mut upright, 0);
        assert_eq!(upright.tangents, vec![[1.0, 0.0, 0.0, 1.0]; 4]);
        let mut mirrored = quad([[1.0, 1.0], [0.0, 1.0], [0.0, 0.0], [1.0, 0.0]]);
        generate(&mut mirrored, 0);
        assert_eq!(mirrored.tangents, vec![[-1.0, 0.0, 0.0, -1.0]; 4]);
    }

    #[test]
    fn vertices_between_mirrored_halves_are_split() {
        let mut halves = quad([[0.0, 1.0], [1.0, 1.0], [1.0, 0.0], [1.0, 1.0]]);
        generate(&mut halves, 0);
        assert_eq!(halves.positions.len(), 6);
        assert_eq!(halves.tangents[0][3], 1.0);
        assert_eq!(halves.tangents[halves.triangles[1][0] as usize][3], -1.0);
    }
}
