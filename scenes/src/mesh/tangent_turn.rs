//! Tangents of a texture whose UVs are transformed (KHR_texture_transform). A normal map's x axis
//! runs along growing u of the texture as it lies on the surface. A rotated or mirrored texture
//! so has rotated or mirrored tangents. Makes no tangents; see `tangent`.

use crate::math::{Vec3, add, cross, narrow, normalize, scale, sub, widen};
use crate::mesh::geometry::Geometry;

/// Linear part of a transform from the mesh's UVs to the texture's: u' = m0 u + m1 v, v' = m2 u +
/// m3 v.
pub(crate) type UvMap = [f32; 4];

/// Returns the linear part of a texture's transform where it turns or mirrors tangents; None where
/// it leaves their direction and their sign as they are, and where it has no inverse.
pub(crate) fn turning(uv_from_mesh: [f32; 6]) -> Option<UvMap> {
    let [a, b, _, c, d, _] = uv_from_mesh;
    let is_upright = b == 0.0 && c == 0.0 && a > 0.0 && d > 0.0;
    let determinant = f64::from(a) * f64::from(d) - f64::from(b) * f64::from(c);
    (!is_upright && determinant.is_finite() && determinant != 0.0).then_some([a, b, c, d])
}

/// Turns every tangent of a geometry, and what morph targets add to it.
///
/// With the tangent T = dP/du and the bitangent B = -dP/dv (v grows downwards), the chain rule over
/// the inverse of the map gives T' = (m3 T + m2 B) / det. The sign of the bitangent changes with
/// that of the determinant.
pub(crate) fn turn(geometry: &mut Geometry, map: UvMap) {
    let [a, b, c, d] = map.map(f64::from);
    let determinant = a * d - b * c;
    let (along, across) = (d / determinant, c / determinant);
    let flat = if geometry.normals.is_empty() { flat_normals(geometry) } else { Vec::new() };
    let normals = if geometry.normals.is_empty() { &flat } else { &geometry.normals };
    let turned = |vertex: usize, tangent: Vec3, sign: f64| {
        let bitangent = scale(cross(widen(normals[vertex]), tangent), sign);
        add(scale(tangent, along), scale(bitangent, across))
    };
    for target in &mut geometry.targets {
        for (vertex, delta) in target.tangents.iter_mut().enumerate() {
            let Some([x, y, z, sign]) = geometry.tangents.get(vertex).copied() else { continue };
            let length = crate::math::length(turned(vertex, widen([x, y, z]), sign.into()));
            if length > 0.0 {
                let delta_turned = turned(vertex, widen(*delta), sign.into());
                *delta = narrow(scale(delta_turned, 1.0 / length));
            }
        }
    }
    for (vertex, tangent) in geometry.tangents.iter_mut().enumerate() {
        let [x, y, z, sign] = *tangent;
        // A tangent without direction keeps having none.
        if let Some(turned) = normalize(turned(vertex, widen([x, y, z]), sign.into())) {
            let [x, y, z] = narrow(turned);
            *tangent = [x, y, z, if determinant < 0.0 { -sign } else { sign }];
        }
    }
}

/// Returns the normal of the triangle of each vertex, for geometry whose triangles share none.
fn flat_normals(geometry: &Geometry) -> Vec<[f32; 3]> {
    let mut normals = vec![[0.0; 3]; geometry.positions.len()];
    for triangle in &geometry.triangles {
        let [a, b, c] = triangle.map(|vertex| widen(geometry.positions[vertex as usize]));
        let normal = normalize(cross(sub(b, a), sub(c, a))).map_or([0.0; 3], narrow);
        triangle.iter().for_each(|vertex| normals[*vertex as usize] = normal);
    }
    normals
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the tangent that a texture with this transform has on an upright square, where the
    /// plain one is +x with the bitangent +y.
    fn turned(map: [f32; 4]) -> [f32; 4] {
        let mut geometry = Geometry {
            positions: vec![[0.0; 3]],
            normals: vec![[0.0, 0.0, 1.0]],
            tangents: vec![[1.0, 0.0, 0.0, 1.0]],
            ..Geometry::default()
        };
        let [a, b, c, d] = map;
        match turning([a, b, 7.0, c, d, 9.0]) {
            Some(map) => turn(&mut geometry, map),
            None => assert!(a > 0.0 && d > 0.0 && b == 0.0 && c == 0.0),
        }
        geometry.tangents[0]
    }

    #[test]
    fn tangents_turn_with_their_texture() {
        for (map, tangent) in [
            ([2.0, 0.0, 0.0, 3.0], [1.0, 0.0, 0.0, 1.0]),
            // A quarter turn: u of the texture runs down.
            ([0.0, 1.0, -1.0, 0.0], [0.0, -1.0, 0.0, 1.0]),
            ([0.0, -1.0, 1.0, 0.0], [0.0, 1.0, 0.0, 1.0]),
            ([-1.0, 0.0, 0.0, -1.0], [-1.0, 0.0, 0.0, 1.0]),
            // Mirrored along u, and along v.
            ([-1.0, 0.0, 0.0, 1.0], [-1.0, 0.0, 0.0, -1.0]),
            ([1.0, 0.0, 0.0, -1.0], [1.0, 0.0, 0.0, -1.0]),
        ] {
            assert_eq!(turned(map), tangent, "{map:?}");
        }
        assert_eq!(turning([0.0; 6]), None, "a map without an inverse");
    }
}
