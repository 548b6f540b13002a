//! Instances: meshes that a scene holds once and shows in several places, and the formula that
//! brings them into the world.

use crate::{Array, BvhNode8, ShadingVertex, Triangle, TriangleBlock};
use bytemuck::{Pod, Zeroable};

/// A mesh in one place: 144 bytes. The ids of its triangles follow each other from `first_id`.
///
/// What it shows has the same bits as if its corners, by [`Instance::place`], stood among the
/// scene's own triangles: see `kernels/source/geometry/instance.h`, whose operations these are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
#[repr(C, align(16))]
pub struct Instance {
    /// Rows of a 3 × 4 matrix, to metres. Its determinant is positive; a mesh that is shown
    /// mirrored too is held twice.
    pub world_from_mesh: [[f32; 4]; 3],
    /// Rows of the inverse transpose, times what gives normals about their length. Vertices'
    /// normals are not normalised after it.
    pub normal_from_mesh: [[f32; 3]; 3],
    /// Rows of the matrix itself, times what gives tangents about their length.
    pub tangent_from_mesh: [[f32; 3]; 3],
    /// Id of its first triangle. Those of the scene's own triangles and of the instances before it
    /// lie below.
    pub first_id: u32,
    /// The mesh's first triangle in [`Meshes::triangles`].
    pub first_triangle: u32,
    /// How many triangles the mesh has.
    pub triangle_count: u32,
    /// The mesh's root in [`Meshes::nodes`].
    pub root: u32,
    /// Above zero, the mesh stands in the world as it is: the matrix changes nothing, no corner has
    /// a negative zero, and the boxes of its hierarchy are padded by so much already. Zero
    /// otherwise.
    pub standing_padding: f32,
    /// Zero.
    pub reserved: u32,
}

const _: () = assert!(size_of::<Instance>() == 144);

/// Meshes that instances show, each once, in their own space: what does not change from frame to
/// frame.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Meshes {
    /// Those of one mesh follow each other. None emits.
    pub triangles: Array<Triangle>,
    /// Three indices into `vertices` per triangle.
    pub triangle_vertices: Array<[u32; 3]>,
    /// Shading vertices.
    pub vertices: Array<ShadingVertex>,
    /// A hierarchy a mesh, whose boxes are not padded.
    pub nodes: Array<BvhNode8>,
    /// Their leaves, which count a mesh's triangles from 0.
    pub blocks: Array<TriangleBlock>,
}

impl Instance {
    /// A point of the mesh in the world.
    pub fn place(&self, point: [f32; 3]) -> [f32; 3] {
        self.world_from_mesh.map(|row| coordinate([row[0], row[1], row[2]], point, row[3]))
    }

    /// A normal in the world, not normalised.
    pub fn place_normal(&self, normal: [f32; 3]) -> [f32; 3] {
        self.normal_from_mesh.map(|row| coordinate(row, normal, 0.0))
    }

    /// A tangent in the world, not normalised.
    pub fn place_tangent(&self, tangent: [f32; 3]) -> [f32; 3] {
        self.tangent_from_mesh.map(|row| coordinate(row, tangent, 0.0))
    }

    /// A box of the world that holds, as floats compare, every point of a box of the mesh after
    /// [`Instance::place`].
    pub fn place_box(&self, lower: [f32; 3], upper: [f32; 3]) -> [[f32; 3]; 2] {
        let side = |[least, greatest]: [[f32; 3]; 2]| {
            self.world_from_mesh.map(|row| {
                let point =
                    std::array::from_fn(|k| if row[k] < 0.0 { greatest[k] } else { least[k] });
                coordinate([row[0], row[1], row[2]], point, row[3])
            })
        };
        [side([lower, upper]), side([upper, lower])]
    }

    /// The largest magnitude that any step of [`Instance::place_box`] of this box can come to.
    pub fn reach(&self, lower: [f32; 3], upper: [f32; 3]) -> f64 {
        let rows = self.world_from_mesh.iter().map(|row| {
            let terms = (0..3)
                .map(|k| f64::from(row[k].abs()) * f64::from(lower[k].abs().max(upper[k].abs())));
            terms.sum::<f64>() + f64::from(row[3].abs())
        });
        // A number that is none is the largest.
        rows.fold(0.0, |reach: f64, row| if reach.is_nan() || row <= reach { reach } else { row })
    }

    /// A triangle of the mesh in the world.
    pub fn place_triangle(&self, triangle: &Triangle) -> Triangle {
        let [v0, v1, v2] = [triangle.v0, triangle.v1, triangle.v2].map(|corner| self.place(corner));
        Triangle { v0, v1, v2, ..*triangle }
    }

    /// A vertex of the mesh in the world.
    pub fn place_vertex(&self, vertex: &ShadingVertex) -> ShadingVertex {
        let (normal, tangent) =
            (self.place_normal(vertex.normal), self.place_tangent(vertex.tangent));
        ShadingVertex { normal, tangent, ..*vertex }
    }
}

/// `placed_coordinate` of `instance.h`.
fn coordinate(row: [f32; 3], [x, y, z]: [f32; 3], offset: f32) -> f32 {
    row[0].mul_add(x, row[1].mul_add(y, row[2].mul_add(z, offset)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_placed_box_holds_every_placed_point_of_the_box() {
        let mut state = 1u32;
        let mut next = || {
            state = state.wrapping_mul(747_796_405).wrapping_add(2_891_336_453);
            (state >> 8) as f32 / 8_388_608.0 - 1.0
        };
        for _ in 0..2000 {
            let instance = Instance {
                world_from_mesh: std::array::from_fn(|_| [next(), next(), next(), 100.0 * next()]),
                ..Instance::default()
            };
            let (a, b): ([f32; 3], [f32; 3]) =
                (std::array::from_fn(|_| next()), std::array::from_fn(|_| next()));
            let (lower, upper) = (
                std::array::from_fn(|k| f32::min(a[k], b[k])),
                std::array::from_fn(|k| f32::max(a[k], b[k])),
            );
            let [low, high] = instance.place_box(lower, upper);
            for corner in 0..16 {
                // The corners, and what lies between them.
                let point = std::array::from_fn(|k| match corner {
                    0..8 if corner >> k & 1 == 0 => lower[k],
                    0..8 => upper[k],
                    _ => (lower[k] + 0.5 * (next() + 1.0) * (upper[k] - lower[k]))
                        .clamp(lower[k], upper[k]),
                });
                let placed = instance.place(point);
                assert!(
                    (0..3).all(|k| low[k] <= placed[k] && placed[k] <= high[k]),
                    "{instance:?} {point:?}"
                );
            }
        }
    }

    #[test]
    fn nan_placements_have_a_nan_reach() {
        let mut instance = Instance::default();
        assert_eq!(instance.reach([1.0; 3], [2.0; 3]), 0.0);
        instance.world_from_mesh[1] = [2.0, 0.0, 0.0, -3.0];
        assert_eq!(instance.reach([-4.0; 3], [2.0; 3]), 11.0);
        for row in 0..3 {
            let mut instance = instance;
            instance.world_from_mesh[row][3] = f32::NAN;
            assert!(instance.reach([1.0; 3], [2.0; 3]).is_nan());
        }
    }
}
