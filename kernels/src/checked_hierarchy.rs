//! Checks that a scene's hierarchies are trees that kernels can walk: the scene's own, and those of
//! instanced meshes. Reads no other array.

use crate::checked_scene::{BOUND_MAX, SceneError, all};
use std::collections::BTreeMap;
use std::sync::Arc;
use tessera_layout::{
    BLOCK_ALPHA_FLAG, BVH_DEPTH_MAX, BvhNode8, CHILD_EMPTY, CHILD_INSTANCE_FLAG, CHILD_LEAF_FLAG,
    FlatScene, Instance, NONE, TriangleBlock,
};

/// Checks that every inner node is reached once, so that no ray can walk in a circle. Leaves must
/// hold existing triangles, and no way down may be longer than a walk's stack, including instances.
/// `known` are the trees of its meshes that were checked before. Returns them with those that are
/// new.
pub(crate) fn check(
    scene: &FlatScene,
    known: Arc<MeshTrees>,
) -> Result<Arc<MeshTrees>, SceneError> {
    let trees = check_meshes(scene, known)?;
    let depths = &trees.by_root;
    let (nodes, blocks) = (&*scene.bvh.nodes, &*scene.bvh.blocks);
    all("triangle block", blocks, |block| holds_only(block, scene.triangles.len()))?;
    let mut reached = vec![false; nodes.len()];
    if nodes.is_empty() {
        return Ok(trees);
    }
    walk(nodes, 0, &mut reached, |leaf, level| {
        if leaf & CHILD_INSTANCE_FLAG == 0 {
            return Ok(leaf < blocks.len() as u32);
        }
        let instance = scene.instances.get((leaf & !CHILD_INSTANCE_FLAG) as usize);
        let Some(depth) = instance.and_then(|instance| depths.get(&instance.root)) else {
            return Ok(false);
        };
        if level + depth.levels > BVH_DEPTH_MAX { Err(too_deep()) } else { Ok(true) }
    })
    .map(drop)?;
    Ok(trees)
}

/// Hierarchies of meshes that were checked, by their roots.
#[derive(Clone, Debug, Default)]
pub(crate) struct MeshTrees {
    by_root: BTreeMap<u32, MeshTree>,
    /// Whether a node is in one of them.
    reached: Vec<bool>,
}

/// Properties of a mesh's hierarchy.
#[derive(Clone, Debug)]
struct MeshTree {
    first_triangle: u32,
    triangle_count: u32,
    levels: u32,
    lower: [f32; 3],
    upper: [f32; 3],
}

/// Checks the hierarchies of meshes that are not known yet, and that instances fit them.
fn check_meshes(
    scene: &FlatScene,
    mut trees: Arc<MeshTrees>,
) -> Result<Arc<MeshTrees>, SceneError> {
    for (index, instance) in scene.instances.iter().enumerate() {
        let wrong = || SceneError::Index { what: "instance", index };
        if instance.root as usize >= scene.meshes.nodes.len() {
            return Err(wrong());
        }
        if !trees.by_root.contains_key(&instance.root) {
            let MeshTrees { by_root, reached } = Arc::make_mut(&mut trees);
            reached.resize(scene.meshes.nodes.len(), false);
            by_root.insert(instance.root, check_mesh(scene, instance, reached)?);
        }
        let Some(tree) = trees.by_root.get(&instance.root) else { return Err(wrong()) };
        let is_same = (tree.first_triangle, tree.triangle_count)
            == (instance.first_triangle, instance.triangle_count);
        if !is_same {
            return Err(wrong());
        }
        // The mesh's boxes in the world must not reach further than those of the scene's own
        // hierarchy may.
        let reach = instance.reach(tree.lower, tree.upper) + f64::from(scene.bvh.padding);
        if reach.is_nan() || reach > f64::from(BOUND_MAX) {
            return Err(SceneError::Extent { index: instance.root as usize });
        }
    }
    Ok(trees)
}

fn check_mesh(
    scene: &FlatScene,
    instance: &Instance,
    reached: &mut [bool],
) -> Result<MeshTree, SceneError> {
    let meshes = &scene.meshes;
    let (nodes, blocks) = (&*meshes.nodes, &*meshes.blocks);
    let levels = walk(nodes, instance.root, reached, |leaf, _| {
        let block = blocks.get(leaf as usize);
        Ok(block.is_some_and(|block| holds_only(block, instance.triangle_count as usize)))
    })?;
    let (mut lower, mut upper) = ([0.0f32; 3], [0.0f32; 3]);
    let mut open = vec![instance.root];
    while let Some(index) = open.pop() {
        let node = &nodes[index as usize];
        for (slot, child) in
            node.child.into_iter().enumerate().filter(|(_, child)| *child != CHILD_EMPTY)
        {
            for axis in 0..3 {
                lower[axis] = lower[axis].min(node.bounds[0][axis][slot]);
                upper[axis] = upper[axis].max(node.bounds[1][axis][slot]);
            }
            if child & CHILD_LEAF_FLAG == 0 {
                open.push(child);
            }
        }
    }
    let (first_triangle, triangle_count) = (instance.first_triangle, instance.triangle_count);
    Ok(MeshTree { first_triangle, triangle_count, levels, lower, upper })
}

fn holds_only(block: &TriangleBlock, triangles: usize) -> bool {
    (0..4).all(|lane| {
        let id = block.triangle[lane];
        let empty = id == NONE && block.corner[0][0][lane].is_nan();
        empty || ((id & !BLOCK_ALPHA_FLAG) as usize) < triangles
    })
}

fn too_deep() -> SceneError {
    SceneError::Hierarchy(BVH_DEPTH_MAX)
}

/// Walks a tree from its root, and returns its number of levels of inner nodes. `is_there` checks
/// every leaf.
fn walk(
    nodes: &[BvhNode8],
    root: u32,
    reached: &mut [bool],
    mut is_there: impl FnMut(u32, u32) -> Result<bool, SceneError>,
) -> Result<u32, SceneError> {
    let mut open = vec![(root, 1)];
    let mut levels = 0;
    while let Some((node, level)) = open.pop() {
        let index = node as usize;
        if std::mem::replace(&mut reached[index], true) || level > BVH_DEPTH_MAX {
            return Err(too_deep());
        }
        levels = levels.max(level);
        let bounds = &nodes[index].bounds;
        for (slot, child) in nodes[index].child.into_iter().enumerate() {
            let wrong = SceneError::Index { what: "bvh node", index };
            if child == CHILD_EMPTY {
                // An inverted box keeps rays from following it.
                if !(0..3).all(|axis| bounds[0][axis][slot] > bounds[1][axis][slot]) {
                    return Err(wrong);
                }
                continue;
            }
            if !(0..6).all(|plane| bounds[plane / 3][plane % 3][slot].abs() <= BOUND_MAX) {
                return Err(SceneError::Extent { index });
            }
            let is_right = if child & CHILD_LEAF_FLAG != 0 {
                is_there(child & !CHILD_LEAF_FLAG, level)?
            } else {
                open.push((child, level + 1));
                (child as usize) < nodes.len()
            };
            if !is_right {
                return Err(wrong);
            }
        }
    }
    Ok(levels)
}
