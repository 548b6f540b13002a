//! Instanced meshes: meshes that are stored once because a scene shows them often, or because they
//! are large and move as they are; their arrays and hierarchies, and their instances. Every other
//! mesh is copied into the world (`flat_geometry.rs`). `kernels/source/geometry/instance.h` defines
//! an instance bit for bit.

use crate::bvh;
use crate::error::SceneError;
use crate::flatten::parts::{Parts, flags_of};
use crate::flatten::pose::{self, Placement, Target};
use crate::flatten::tally::Tally;
use crate::math::{Affine, narrow, scale, widen};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tessera_layout::{Instance, Meshes, ShadingVertex, Triangle};

/// A mesh that is stored once.
#[derive(Clone, Copy, Debug)]
struct Held {
    /// Origin of the mesh's own space, so that geometry far from the file's origin keeps its
    /// precision.
    center: [f64; 3],
    first_triangle: u32,
    triangle_count: u32,
    root: u32,
    lower: [f32; 3],
    upper: [f32; 3],
}

/// Everything that stands still in a film, as an instance of one mesh (see `standing.rs`).
#[derive(Debug)]
pub(crate) struct Standing {
    /// Whether a node's mesh is in it.
    pub(crate) nodes: Vec<bool>,
    /// The instance, without its ids.
    pub(crate) instance: Instance,
    /// Its box, not padded.
    pub(crate) filled: [[f32; 3]; 2],
}

/// A mesh of the file, and the bits of the colour of its instances.
type ColoredMesh = (usize, [u32; 4]);

/// The meshes that are stored once. A mesh is stored once for each colour, because the colour is in
/// its vertices.
#[derive(Debug, Default)]
pub(crate) struct Instancing {
    pub(crate) meshes: Arc<Meshes>,
    held: BTreeMap<ColoredMesh, Held>,
    /// Number of levels of the deepest hierarchy.
    pub(crate) depth: u32,
    /// Counts of the stored meshes, without their places.
    pub(crate) held_tally: Tally,
    /// What stands still for the whole film; None if that is little, or nothing moves.
    pub(crate) standing: Option<Standing>,
}

impl Instancing {
    /// Chooses the meshes that are worth it. They are shown more than once in a colour, their
    /// copies would have at least `from` triangles, and they have no skin, no morph targets, and
    /// only materials that are plain: they never emit, and what they give their triangles does not
    /// change over time. Fails if they exceed the limits.
    pub(crate) fn of(
        parts: &Parts<'_>,
        is_plain: impl Fn(u32) -> bool,
        from: u64,
    ) -> Result<Self, SceneError> {
        let mut made = Self::default();
        // The first place would take as much without.
        let is_worth_it =
            |triangles: u64, places: u64| triangles.saturating_mul(places - 1) >= from.max(1);
        let shown_often = Places::of(parts, |_| true).worthwhile(parts, is_plain, is_worth_it);
        made.hold_all(parts, shown_often)?;
        Ok(made)
    }

    /// Stores meshes of at least `from` triangles that move as they are, so that a frame needs only
    /// their places. `moves` tells of a node whether it is somewhere else in another frame.
    pub(crate) fn hold_movers(
        &mut self,
        parts: &Parts<'_>,
        moves: impl Fn(usize) -> bool,
        is_plain: impl Fn(u32) -> bool,
        from: u64,
    ) -> Result<(), SceneError> {
        let is_worth_it =
            |triangles: u64, places: u64| triangles.saturating_mul(places) >= from.max(1);
        let moving = Places::of(parts, moves).worthwhile(parts, is_plain, is_worth_it);
        let new = moving.into_iter().filter(|mesh| !self.held.contains_key(mesh)).collect();
        self.hold_all(parts, new)
    }

    fn hold_all(&mut self, parts: &Parts<'_>, wanted: Vec<ColoredMesh>) -> Result<(), SceneError> {
        for (mesh, _) in &wanted {
            self.held_tally.hold(&parts.meshes[*mesh]);
            self.held_tally.check(parts.file, parts.limits)?;
        }
        let meshes = Arc::make_mut(&mut self.meshes);
        for mesh in wanted {
            let held = hold(parts, mesh, meshes)?;
            let depth = bvh::depth(&meshes.nodes, held.root);
            // A mesh that leaves too few levels to the hierarchy over instances is copied like any
            // other.
            if depth <= bvh::MESH_LEVELS_MAX {
                self.depth = self.depth.max(depth);
                self.held.insert(mesh, held);
            }
        }
        Ok(())
    }

    /// Returns whether a mesh is stored once in a colour.
    pub(crate) fn holds(&self, (mesh, color): (usize, [f32; 4])) -> bool {
        self.held.contains_key(&(mesh, color.map(f32::to_bits)))
    }

    /// Returns an instance of a mesh, without its ids, and its box in the world. None if the mesh
    /// must be copied: it is not stored once, or the place mirrors or flattens it or is out of
    /// range.
    pub(crate) fn place(
        &self,
        (mesh, color): (usize, [f32; 4]),
        world: &Affine,
    ) -> Option<(Instance, [[f32; 3]; 2])> {
        let held = self.held.get(&(mesh, color.map(f32::to_bits)))?;
        let centered = Affine { linear: Affine::IDENTITY.linear, offset: held.center };
        let map = world.after(&centered);
        let size = libm::cbrt(map.determinant());
        if !(size > 0.0 && size.is_finite()) {
            return None;
        }
        let row = |row: usize| {
            let [x, y, z] = narrow(map.linear[row]);
            [x, y, z, map.offset[row] as f32]
        };
        let instance = Instance {
            world_from_mesh: [row(0), row(1), row(2)],
            normal_from_mesh: map.normal_map().map(|row| narrow(scale(row, 1.0 / (size * size)))),
            tangent_from_mesh: map.linear.map(|row| narrow(scale(row, 1.0 / size))),
            first_id: 0,
            first_triangle: held.first_triangle,
            triangle_count: held.triangle_count,
            root: held.root,
            standing_padding: 0.0,
            reserved: 0,
        };
        let directions =
            instance.normal_from_mesh.iter().chain(&instance.tangent_from_mesh).flatten();
        let is_finite = directions.copied().all(f32::is_finite)
            && instance.reach(held.lower, held.upper) < f64::from(bvh::EXTENT_MAX);
        is_finite.then(|| (instance, instance.place_box(held.lower, held.upper)))
    }
}

/// How often some nodes show each mesh in each colour.
struct Places {
    counts: BTreeMap<ColoredMesh, u64>,
    /// Meshes that a node shows with a skin.
    bent: BTreeSet<usize>,
}

impl Places {
    /// Counts the places that the `counted` nodes have.
    fn of(parts: &Parts<'_>, counted: impl Fn(usize) -> bool) -> Self {
        let mut made = Self { counts: BTreeMap::new(), bent: BTreeSet::new() };
        for &index in parts.shown {
            let node = &parts.forest.nodes[index];
            let Some(mesh) = node.mesh else { continue };
            for number in (0..node.instances.len()).filter(|_| counted(index)) {
                let color = node.instance_color(number).map(f32::to_bits);
                *made.counts.entry((mesh, color)).or_default() += 1;
            }
            if node.skin.is_some() {
                made.bent.insert(mesh);
            }
        }
        made
    }

    /// Returns the meshes that can be stored once and are worth it, by the numbers of their
    /// triangles and of their places.
    fn worthwhile(
        self,
        parts: &Parts<'_>,
        is_plain: impl Fn(u32) -> bool,
        is_worth_it: impl Fn(u64, u64) -> bool,
    ) -> Vec<ColoredMesh> {
        let is_held = |mesh: usize, places: u64| {
            let surfaces = &parts.meshes[mesh].surfaces;
            let triangles: u64 =
                surfaces.iter().map(|surface| surface.geometry.triangles.len() as u64).sum();
            is_worth_it(triangles, places)
                && !self.bent.contains(&mesh)
                && parts.meshes[mesh].target_count == 0
                && surfaces.iter().all(|surface| is_plain(surface.material))
        };
        let counts = self.counts.iter();
        let worthy = counts.filter(|(mesh, places)| is_held(mesh.0, **places));
        worthy.map(|(mesh, _)| *mesh).collect()
    }
}

/// Appends a mesh's arrays and hierarchy.
fn hold(
    parts: &Parts<'_>,
    (mesh, color): ColoredMesh,
    meshes: &mut Meshes,
) -> Result<Held, SceneError> {
    let surfaces = &parts.meshes[mesh].surfaces;
    let positions = || surfaces.iter().flat_map(|surface| &surface.geometry.positions);
    let (mut lower, mut upper) = ([f64::INFINITY; 3], [f64::NEG_INFINITY; 3]);
    for point in positions().map(|point| widen(*point)) {
        lower = std::array::from_fn(|axis| lower[axis].min(point[axis]));
        upper = std::array::from_fn(|axis| upper[axis].max(point[axis]));
    }
    let center = std::array::from_fn(|axis| 0.5 * (lower[axis] + upper[axis]));
    let triangles = meshes.triangles.make_mut();
    let triangle_vertices = meshes.triangle_vertices.make_mut();
    let vertices = meshes.vertices.make_mut();
    let first_triangle = triangles.len();
    for surface in surfaces {
        let geometry = &*surface.geometry;
        let (first, first_vertex) = (triangles.len(), vertices.len());
        triangles.resize(first + geometry.triangles.len(), Triangle::default());
        triangle_vertices.resize(first + geometry.triangles.len(), [0; 3]);
        vertices.resize(first_vertex + geometry.shading_count(), ShadingVertex::default());
        let placement = Placement {
            world: Affine { linear: Affine::IDENTITY.linear, offset: scale(center, -1.0) },
            joints: None,
            unmoved: Affine::IDENTITY,
            weights: &[],
            material: surface.material,
            material_flags: flags_of(&parts.materials[surface.material as usize]),
            first_vertex: first_vertex as u32,
            color: color.map(f32::from_bits),
        };
        let target = Target {
            triangles: &mut triangles[first..],
            triangle_vertices: &mut triangle_vertices[first..],
            vertices: &mut vertices[first_vertex..],
        };
        pose::place(geometry, &placement, target).map_err(|vertex| SceneError::Invalid {
            file: parts.file.into(),
            path: format!("meshes[{mesh}]"),
            problem: format!("vertex {vertex} lies beyond every float"),
        })?;
    }
    let hierarchy = (meshes.nodes.make_mut(), meshes.blocks.make_mut());
    let (root, [lower, upper]) = bvh::append_mesh(&triangles[first_triangle..], 0.0, hierarchy);
    Ok(Held {
        center,
        first_triangle: first_triangle as u32,
        triangle_count: (triangles.len() - first_triangle) as u32,
        root,
        lower,
        upper,
    })
}
