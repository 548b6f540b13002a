//! Copies instances into the world: their triangles, vertices and nodes, by the same operations
//! that a walk does in an instance (`source/geometry/instance.h`). The result gives the same bits.
//! Devices get the triangles of what stands still this way, processors the hierarchies of large
//! meshes that move, and tests everything.

use crate::CheckedScene;
use std::collections::BTreeMap;
use std::sync::Arc;
use tessera_layout::{
    Array, BLOCK_ALPHA_FLAG, Bvh, BvhNode8, CHILD_EMPTY, CHILD_INSTANCE_FLAG, CHILD_LEAF_FLAG,
    FlatScene, Instance, NONE, ShadingVertex, Triangle, TriangleBlock,
};

/// The scene with copies in the place of instances, for tests; itself where it has none. Ids stay
/// what they are.
///
/// # Panics
/// Where the copies are more than a scene may have.
#[must_use]
pub fn without_instances(scene: &CheckedScene) -> CheckedScene {
    if scene.instances.is_empty() {
        return scene.clone();
    }
    let (instances, meshes) = (Array::default(), Arc::default());
    let mut copied = FlatScene { instances, meshes, ..FlatScene::clone(scene) };
    copy_triangles(scene, &mut copied);
    copied.bvh = Arc::new(copy_hierarchy(scene, |_| true));
    CheckedScene::new(Arc::new(copied))
        .expect("copies of what has been checked are right, if they are few enough")
}

/// The scene with copies of the hierarchies of instances that are the only ones of their mesh, in
/// the order of the instances, up to `most` triangles. A processor walks such a copy as it walks
/// the world, with the same hits. Devices have no use for it.
#[must_use]
pub fn with_world_trees(scene: CheckedScene, most: u64) -> CheckedScene {
    let mut shown: BTreeMap<u32, u32> = BTreeMap::new();
    scene.instances.iter().for_each(|it| *shown.entry(it.root).or_default() += 1);
    let mut left = most;
    let mut is_chosen = |instance: &Instance| {
        let triangles = u64::from(instance.triangle_count);
        let is_chosen =
            instance.standing_padding == 0.0 && shown[&instance.root] == 1 && triangles <= left;
        left -= if is_chosen { triangles } else { 0 };
        is_chosen
    };
    let chosen: Vec<bool> = scene.instances.iter().map(&mut is_chosen).collect();
    if !chosen.contains(&true) {
        return scene;
    }
    scene.with_bvh(copy_hierarchy(&scene, |instance| chosen[instance]))
}

/// Returns the index of the instance that a child of a node is.
pub(crate) fn instance_in(child: u32) -> Option<usize> {
    let flags = CHILD_LEAF_FLAG | CHILD_INSTANCE_FLAG;
    let is_instance = child != CHILD_EMPTY && child & flags == flags;
    is_instance.then_some((child & !flags) as usize)
}

/// Returns the range of vertices that an instance's triangles use.
fn vertices_of(scene: &FlatScene, instance: &Instance) -> std::ops::Range<usize> {
    let first = instance.first_triangle as usize;
    let used = scene.meshes.triangle_vertices[first..first + instance.triangle_count as usize]
        .as_flattened();
    let (least, most) = (used.iter().min(), used.iter().max());
    least.zip(most).map_or(0..0, |(least, most)| *least as usize..*most as usize + 1)
}

/// An instance's triangles in the world, with the indices that they have in a scene's arrays.
#[derive(Debug)]
pub(crate) struct Placed {
    pub(crate) triangles: Vec<Triangle>,
    pub(crate) triangle_vertices: Vec<[u32; 3]>,
    pub(crate) vertices: Vec<ShadingVertex>,
}

/// Places an instance's triangles behind `first_vertex` vertices.
pub(crate) fn place(scene: &FlatScene, instance: &Instance, first_vertex: usize) -> Placed {
    let first = instance.first_triangle as usize;
    let range = first..first + instance.triangle_count as usize;
    let used = vertices_of(scene, instance);
    let moved = |vertex: u32| (vertex as usize - used.start + first_vertex) as u32;
    let meshes = &scene.meshes;
    let corners = meshes.triangle_vertices[range.clone()].iter();
    Placed {
        triangles: meshes.triangles[range].iter().map(|it| instance.place_triangle(it)).collect(),
        triangle_vertices: corners.map(|corners| corners.map(moved)).collect(),
        vertices: meshes.vertices[used.clone()]
            .iter()
            .map(|vertex| instance.place_vertex(vertex))
            .collect(),
    }
}

fn copy_triangles(scene: &FlatScene, copied: &mut FlatScene) {
    let triangles = copied.triangles.make_mut();
    let triangle_vertices = copied.triangle_vertices.make_mut();
    let vertices = copied.vertices.make_mut();
    for instance in scene.instances.iter() {
        let mut placed = place(scene, instance, vertices.len());
        triangles.append(&mut placed.triangles);
        triangle_vertices.append(&mut placed.triangle_vertices);
        vertices.append(&mut placed.vertices);
    }
}

/// Copies the hierarchy, and that of each chosen instance into it. The scene's own nodes stay in
/// place, and those of each copy follow.
fn copy_hierarchy(scene: &FlatScene, is_chosen: impl Fn(usize) -> bool) -> Bvh {
    let padding = scene.bvh.padding;
    let (mut nodes, mut blocks) = (scene.bvh.nodes.to_vec(), scene.bvh.blocks.to_vec());
    for index in 0..nodes.len() {
        for slot in 0..8 {
            let instance = instance_in(nodes[index].child[slot]);
            if let Some(instance) = instance.filter(|instance| is_chosen(*instance)) {
                let instance = &scene.instances[instance];
                nodes[index].child[slot] =
                    copy_mesh((scene, instance), padding, &mut nodes, &mut blocks);
            }
        }
    }
    Bvh { nodes: nodes.into(), blocks: blocks.into(), padding }
}

/// Appends an instance's nodes and blocks, and returns its root.
fn copy_mesh(
    (scene, instance): (&FlatScene, &Instance),
    padding: f32,
    nodes: &mut Vec<BvhNode8>,
    blocks: &mut Vec<TriangleBlock>,
) -> u32 {
    let first = nodes.len() as u32;
    nodes.push(scene.meshes.nodes[instance.root as usize]);
    let mut open = vec![first];
    while let Some(index) = open.pop() {
        let mut node = nodes[index as usize];
        for slot in 0..8 {
            let child = node.child[slot];
            if child == CHILD_EMPTY {
                continue;
            }
            place_child(instance, &mut node, slot, padding);
            node.child[slot] = if child & CHILD_LEAF_FLAG != 0 {
                let block = &scene.meshes.blocks[(child & !CHILD_LEAF_FLAG) as usize];
                blocks.push(place_block(instance, block));
                CHILD_LEAF_FLAG | (blocks.len() as u32 - 1)
            } else {
                open.push(nodes.len() as u32);
                nodes.push(scene.meshes.nodes[child as usize]);
                nodes.len() as u32 - 1
            };
        }
        nodes[index as usize] = node;
    }
    first
}

/// Returns a child's box in the world, padded like the boxes of triangles.
fn place_child(instance: &Instance, node: &mut BvhNode8, slot: usize, padding: f32) {
    let side = |side: usize| std::array::from_fn(|axis| node.bounds[side][axis][slot]);
    let [lower, upper] = instance.place_box(side(0), side(1));
    for axis in 0..3 {
        node.bounds[0][axis][slot] = lower[axis] - padding;
        node.bounds[1][axis][slot] = upper[axis] + padding;
    }
}

fn place_block(instance: &Instance, block: &TriangleBlock) -> TriangleBlock {
    let mut placed = *block;
    for lane in (0..4).filter(|lane| block.triangle[*lane] != NONE) {
        for corner in 0..3 {
            let point =
                instance.place(std::array::from_fn(|axis| block.corner[corner][axis][lane]));
            for (axis, coordinate) in point.into_iter().enumerate() {
                placed.corner[corner][axis][lane] = coordinate;
            }
        }
        let id = block.triangle[lane];
        placed.triangle[lane] =
            (instance.first_id + (id & !BLOCK_ALPHA_FLAG)) | id & BLOCK_ALPHA_FLAG;
    }
    placed
}
