//! All triangles at one moment, in canonical order: by nodes in the scene's order, then by
//! instance, primitive and triangle. Triangles in the world come first, then those of instanced
//! meshes (`instancing.rs`). Makes neither lights nor hierarchies.

use crate::error::SceneError;
use crate::flatten::instancing::Instancing;
use crate::flatten::parts::{Parts, flags_of};
use crate::flatten::pose::{self, Placement, Target};
use crate::math::Affine;
use crate::mesh::Skin;
use crate::mesh::geometry::Geometry;
use rayon::prelude::*;
use tessera_layout::{Array, Instance, ShadingVertex, Triangle, zeroed_array};

/// Geometry at one moment.
#[derive(Debug)]
pub(crate) struct FlatGeometry {
    pub(crate) triangles: Array<Triangle>,
    pub(crate) triangle_vertices: Array<[u32; 3]>,
    pub(crate) vertices: Array<ShadingVertex>,
    pub(crate) instances: Array<Instance>,
    /// Box of each instance.
    pub(crate) boxes: Vec<[[f32; 3]; 2]>,
    /// Lower and upper corner of everything in metres; both are zero if there is nothing.
    pub(crate) lower: [f32; 3],
    pub(crate) upper: [f32; 3],
}

/// Geometry that is not shared yet.
pub(crate) struct PlacedGeometry {
    pub(crate) triangles: Vec<Triangle>,
    pub(crate) triangle_vertices: Vec<[u32; 3]>,
    pub(crate) vertices: Vec<ShadingVertex>,
    pub(crate) instances: Vec<Instance>,
    pub(crate) boxes: Vec<[[f32; 3]; 2]>,
}

impl FlatGeometry {
    /// Returns whether there is nothing to see.
    pub(crate) fn is_empty(&self) -> bool {
        self.triangles.is_empty() && self.instances.is_empty()
    }

    /// Returns the boxes of triangles and of instances.
    pub(crate) fn boxes_of_things(&self) -> impl Iterator<Item = [[f32; 3]; 2]> {
        let of_triangle = |triangle: &Triangle| {
            let corners = [triangle.v0, triangle.v1, triangle.v2];
            [f32::min, f32::max].map(|pick: fn(f32, f32) -> f32| {
                std::array::from_fn(|k| pick(pick(corners[0][k], corners[1][k]), corners[2][k]))
            })
        };
        self.triangles.iter().map(of_triangle).chain(self.boxes.iter().copied())
    }

    /// Returns the number of triangles, with those of each instance.
    pub(crate) fn shown_triangles(&self) -> u64 {
        let instanced = self.instances.iter().map(|instance| u64::from(instance.triangle_count));
        self.triangles.len() as u64 + instanced.sum::<u64>()
    }
}

impl PlacedGeometry {
    /// Shares the arrays between frames. They do not change from here on.
    pub(crate) fn share(self) -> FlatGeometry {
        let (lower, upper) = bounds(&self.triangles, &self.boxes);
        FlatGeometry {
            triangles: self.triangles.into(),
            triangle_vertices: self.triangle_vertices.into(),
            vertices: self.vertices.into(),
            instances: self.instances.into(),
            boxes: self.boxes,
            lower,
            upper,
        }
    }
}

/// One primitive in one place.
struct Draw<'a> {
    node: usize,
    world: Affine,
    geometry: &'a Geometry,
    material: u32,
    first_vertex: u32,
    color: [f32; 4],
}

/// Items of a moment with their places, and the lengths of the arrays.
#[derive(Default)]
struct Layout<'a> {
    draws: Vec<Draw<'a>>,
    triangle_count: usize,
    vertex_count: usize,
    instances: Vec<Instance>,
    boxes: Vec<[[f32; 3]; 2]>,
}

impl<'a> Parts<'a> {
    /// Places everything. `weights` are the animated morph weights of each node.
    pub(crate) fn build(
        &self,
        instancing: &Instancing,
        worlds: &[Affine],
        weights: &[Option<Vec<f64>>],
    ) -> Result<PlacedGeometry, SceneError> {
        let Layout { draws, triangle_count, vertex_count, instances, boxes } =
            self.lay_out(instancing, worlds)?;
        let mut triangles = zeroed_array::<Triangle>(triangle_count);
        let mut triangle_vertices = zeroed_array::<[u32; 3]>(triangle_count);
        let mut vertices = zeroed_array::<ShadingVertex>(vertex_count);
        let mut targets = Vec::with_capacity(draws.len());
        let mut rest: (&mut [Triangle], &mut [[u32; 3]], &mut [ShadingVertex]) =
            (&mut triangles, &mut triangle_vertices, &mut vertices);
        for draw in &draws {
            let count = draw.geometry.triangles.len();
            let (own, other) = rest.0.split_at_mut(count);
            let (own_corners, other_corners) = rest.1.split_at_mut(count);
            let (own_vertices, other_vertices) = rest.2.split_at_mut(draw.geometry.shading_count());
            rest = (other, other_corners, other_vertices);
            targets.push(Target {
                triangles: own,
                triangle_vertices: own_corners,
                vertices: own_vertices,
            });
        }
        let joints = self.joint_maps(worlds);
        draws.par_iter().zip(targets).try_for_each(|(draw, target)| {
            let placement = self.placement(draw, weights, &joints);
            pose::place(draw.geometry, &placement, target)
                .map_err(|vertex| self.not_finite(draw.node, vertex))
        })?;
        Ok(PlacedGeometry { triangles, triangle_vertices, vertices, instances, boxes })
    }

    /// Decides the place of everything: instanced meshes as instances, if possible, and all others
    /// as their primitives. Fails if the limits are exceeded.
    fn lay_out(
        &self,
        instancing: &Instancing,
        worlds: &[Affine],
    ) -> Result<Layout<'a>, SceneError> {
        let mut made = Layout::default();
        let mut tally = instancing.held_tally;
        tally.check(self.file, self.limits)?;
        if let Some(standing) = &instancing.standing {
            made.instances.push(standing.instance);
            made.boxes.push(standing.filled);
        }
        let stands =
            |node: usize| instancing.standing.as_ref().is_some_and(|standing| standing.nodes[node]);
        for &index in self.shown.iter().filter(|index| !stands(**index)) {
            let node = &self.forest.nodes[index];
            let Some(mesh) = node.mesh else { continue };
            for (number, place) in node.instances.iter().enumerate() {
                let world = worlds[index].after(place);
                let color = node.instance_color(number);
                let found = instancing.place((mesh, color), &world);
                match found {
                    Some(_) => tally.show(&self.meshes[mesh], 1),
                    None => tally.copy(&self.meshes[mesh], 1),
                }
                tally.check(self.file, self.limits)?;
                if let Some((instance, filled)) = found {
                    made.instances.push(instance);
                    made.boxes.push(filled);
                    continue;
                }
                for surface in &self.meshes[mesh].surfaces {
                    let geometry = &*surface.geometry;
                    // The limit on vertices makes the sum fit.
                    let first_vertex = made.vertex_count as u32;
                    made.draws.push(Draw {
                        node: index,
                        world,
                        geometry,
                        material: surface.material,
                        first_vertex,
                        color,
                    });
                    made.triangle_count += geometry.triangles.len();
                    made.vertex_count += geometry.shading_count();
                }
            }
        }
        let mut next = made.triangle_count as u32;
        for instance in &mut made.instances {
            instance.first_id = next;
            next += instance.triangle_count;
        }
        Ok(made)
    }

    /// Returns the map from mesh to world for each joint of every skin.
    fn joint_maps(&self, worlds: &[Affine]) -> Vec<Vec<Affine>> {
        let map = |skin: &Skin| {
            let pairs = skin.joints.iter().zip(&skin.inverse_binds);
            pairs.map(|(joint, inverse)| worlds[*joint].after(inverse)).collect()
        };
        self.skins.iter().map(map).collect()
    }

    fn placement<'b>(
        &self,
        draw: &Draw,
        weights: &'b [Option<Vec<f64>>],
        joints: &'b [Vec<Affine>],
    ) -> Placement<'b>
    where
        'a: 'b,
    {
        let node = &self.forest.nodes[draw.node];
        let mesh_weights =
            node.mesh.map_or(&[][..], |mesh| self.meshes[mesh].default_weights.as_slice());
        Placement {
            world: draw.world,
            joints: node.skin.map(|skin| joints[skin].as_slice()),
            unmoved: self.forest.space.place(&Affine::IDENTITY),
            weights: weights[draw.node]
                .as_deref()
                .or(node.weights.as_deref())
                .unwrap_or(mesh_weights),
            material: draw.material,
            material_flags: flags_of(&self.materials[draw.material as usize]),
            first_vertex: draw.first_vertex,
            color: draw.color,
        }
    }

    fn not_finite(&self, node: usize, vertex: usize) -> SceneError {
        let name = &self.forest.nodes[node].name;
        SceneError::Invalid {
            file: self.file.into(),
            path: format!("nodes[{node}]"),
            problem: format!(
                "vertex {vertex} of {name:?} is placed beyond every float; check the transforms"
            ),
        }
    }
}

fn bounds(triangles: &[Triangle], boxes: &[[[f32; 3]; 2]]) -> ([f32; 3], [f32; 3]) {
    const NOTHING: ([f32; 3], [f32; 3]) = ([f32::INFINITY; 3], [f32::NEG_INFINITY; 3]);
    let around = |(lower, upper): ([f32; 3], [f32; 3]), (low, high): ([f32; 3], [f32; 3])| {
        (
            std::array::from_fn(|axis| f32::min(lower[axis], low[axis])),
            std::array::from_fn(|axis| f32::max(upper[axis], high[axis])),
        )
    };
    let corners = |bounds, triangle: &Triangle| {
        let corners = [triangle.v0, triangle.v1, triangle.v2];
        corners.into_iter().fold(bounds, |bounds, corner| around(bounds, (corner, corner)))
    };
    let of_triangles = triangles.par_iter().fold(|| NOTHING, corners).reduce(|| NOTHING, around);
    let bounds =
        boxes.iter().fold(of_triangles, |bounds, [low, high]| around(bounds, (*low, *high)));
    if bounds == NOTHING { ([0.0; 3], [0.0; 3]) } else { bounds }
}
