//! What stands still for a whole film: its triangles in the world and their hierarchy, made once.
//! Every frame shows them as one instance whose map changes nothing.

use crate::bvh;
use crate::error::SceneError;
use crate::flatten::flat_geometry::PlacedGeometry;
use crate::flatten::instancing::{Instancing, Standing};
use crate::flatten::motion::Motion;
use crate::flatten::parts::Parts;
use crate::math::Affine;
use std::sync::Arc;
use tessera_layout::{Instance, Triangle};

/// Padding of the boxes here, in units of the padding that these triangles alone ask for. A frame
/// in which something is that much farther away walks them with more tests.
const PADDING_FACTOR: f32 = 4.0;

/// Returns the nodes of a scene that stand still, in its order: visible in every frame, in one
/// place and shape, with plain materials only (see [`Instancing::of`]), and not stored once as
/// something that is shown often.
pub(crate) fn standing_nodes(
    parts: &Parts<'_>,
    motion: &Motion,
    instancing: &Instancing,
    is_plain: impl Fn(u32) -> bool,
) -> Vec<usize> {
    let stands = |index: &usize| {
        let node = &parts.forest.nodes[*index];
        let Some(mesh) = node.mesh else { return false };
        let is_held = |number| instancing.holds((mesh, node.instance_color(number)));
        !motion.changes[*index]
            && !motion.comes_and_goes[*index]
            && !(0..node.instances.len()).any(is_held)
            && parts.meshes[mesh].surfaces.iter().all(|surface| is_plain(surface.material))
    };
    parts.shown.iter().copied().filter(stands).collect()
}

/// Places what stands still, which is all that `parts` show, beside the stored meshes. Changes
/// nothing if it is fewer than `from` triangles.
pub(crate) fn stand(
    parts: &Parts<'_>,
    (worlds, weights): (&[Affine], &[Option<Vec<f64>>]),
    from: u64,
    instancing: &mut Instancing,
) -> Result<(), SceneError> {
    let mut tally = instancing.held_tally;
    let mut nodes = vec![false; parts.forest.nodes.len()];
    let mut count = 0;
    for &index in parts.shown {
        let node = &parts.forest.nodes[index];
        let Some(mesh) = node.mesh else { continue };
        nodes[index] = true;
        let surfaces = parts.meshes[mesh].surfaces.iter();
        let triangles: u64 = surfaces.map(|surface| surface.geometry.triangles.len() as u64).sum();
        count += node.instances.len() as u64 * triangles;
        tally.copy(&parts.meshes[mesh], node.instances.len() as u64);
    }
    if count < from.max(1) {
        return Ok(());
    }
    let placed = parts.build(instancing, worlds, weights)?;
    if let Some((instance, filled)) = append(placed, instancing) {
        instancing.held_tally = tally;
        instancing.standing = Some(Standing { nodes, instance, filled });
    }
    Ok(())
}

/// Appends triangles and their hierarchy to the stored meshes. None, and nothing is appended, if
/// the hierarchy has too many levels.
fn append(
    mut placed: PlacedGeometry,
    instancing: &mut Instancing,
) -> Option<(Instance, [[f32; 3]; 2])> {
    placed.triangles.iter_mut().for_each(without_negative_zeros);
    let meshes = Arc::make_mut(&mut instancing.meshes);
    let (nodes, blocks) = (meshes.nodes.len(), meshes.blocks.len());
    let filled = bounds(&placed.triangles);
    let reach = filled.iter().flatten().fold(0.0f32, |most, at| most.max(at.abs()));
    let padding = (PADDING_FACTOR * reach * bvh::PADDING_SCALE).max(f32::MIN_POSITIVE);
    let hierarchy = (meshes.nodes.make_mut(), meshes.blocks.make_mut());
    let (root, _) = bvh::append_mesh(&placed.triangles, padding, hierarchy);
    let depth = bvh::depth(&meshes.nodes, root);
    if depth > bvh::MESH_LEVELS_MAX {
        meshes.nodes.make_mut().truncate(nodes);
        meshes.blocks.make_mut().truncate(blocks);
        return None;
    }
    instancing.depth = instancing.depth.max(depth);
    let instance = Instance {
        world_from_mesh: [[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0]],
        normal_from_mesh: IDENTITY,
        tangent_from_mesh: IDENTITY,
        first_id: 0,
        first_triangle: meshes.triangles.len() as u32,
        triangle_count: placed.triangles.len() as u32,
        root,
        standing_padding: padding,
        reserved: 0,
    };
    let first_vertex = meshes.vertices.len() as u32;
    meshes.vertices.make_mut().append(&mut placed.vertices);
    let corners = placed.triangle_vertices.iter();
    let corners = corners.map(|corners| corners.map(|at| at + first_vertex));
    meshes.triangle_vertices.make_mut().extend(corners);
    meshes.triangles.make_mut().append(&mut placed.triangles);
    Some((instance, filled))
}

const IDENTITY: [[f32; 3]; 3] = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]];

/// An instance's map makes positive zeros of negative ones. Corners that are not mapped must be the
/// same.
fn without_negative_zeros(triangle: &mut Triangle) {
    for corner in [&mut triangle.v0, &mut triangle.v1, &mut triangle.v2] {
        corner.iter_mut().for_each(|coordinate| *coordinate += 0.0);
    }
}

fn bounds(triangles: &[Triangle]) -> [[f32; 3]; 2] {
    let mut bounds = [[f32::INFINITY; 3], [f32::NEG_INFINITY; 3]];
    for corner in triangles.iter().flat_map(|triangle| [triangle.v0, triangle.v1, triangle.v2]) {
        bounds[0] = std::array::from_fn(|axis| bounds[0][axis].min(corner[axis]));
        bounds[1] = std::array::from_fn(|axis| bounds[1][axis].max(corner[axis]));
    }
    bounds
}
