//! A scene's twin with instances: everything that does not shine as one mesh in several places.

use crate::builder::*;
use std::sync::Arc;
use tessera_layout::*;

/// World from mesh: turned, stretched along its own axes, and moved.
fn map(turn: f32, stretch: [f32; 3], offset: [f32; 3]) -> [[f32; 4]; 3] {
    let (sine, cosine) = turn.sin_cos();
    let rows =
        [[cosine, -0.6 * sine, 0.8 * sine], [sine, 0.6 * cosine, -0.8 * cosine], [0.0, 0.8, 0.6]];
    std::array::from_fn(|row| {
        let [x, y, z] = rows[row];
        [x * stretch[0], y * stretch[1], z * stretch[2], offset[row]]
    })
}

/// As it stands; the same once more; along the axes with zeros in the map; turned; small and skewed
/// by its scale.
pub fn places() -> Vec<[[f32; 4]; 3]> {
    let plain = [[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0]];
    let turned = [[0.0, 0.0, -1.0, 0.3], [0.0, 1.0, 0.0, 0.1], [1.0, 0.0, -0.0, -0.7]];
    let skewed = map(2.5, [0.3, 0.7, 0.2], [1.1, -0.4, 0.9]);
    vec![
        plain,
        plain,
        turned,
        map(0.7, [0.8; 3], [-0.5, 0.2, 0.4]),
        skewed,
        map(-1.9, [1.3; 3], [0.2, 0.6, -1.0]),
    ]
}

fn rows_of_three(map: &[[f32; 4]; 3], change: impl Fn(usize, usize, f32) -> f32) -> [[f32; 3]; 3] {
    std::array::from_fn(|row| std::array::from_fn(|column| change(row, column, map[row][column])))
}

/// The scene with all that does not emit as one mesh in these places.
pub fn instanced(scene: &FlatScene, places: &[[[f32; 4]; 3]]) -> FlatScene {
    let mut made = scene.clone();
    let is_lamp = |id: &usize| scene.triangles[*id].light != NONE;
    let pick = |ids: &[usize]| -> (Vec<Triangle>, Vec<[u32; 3]>) {
        ids.iter().map(|id| (scene.triangles[*id], scene.triangle_vertices[*id])).unzip()
    };
    let (lamps, others): (Vec<usize>, Vec<usize>) = (0..scene.triangles.len()).partition(is_lamp);
    for light in made.lights.make_mut().iter_mut().filter(|light| light.triangle != NONE) {
        light.triangle =
            lamps.iter().position(|lamp| *lamp == light.triangle as usize).expect("a lamp's")
                as u32;
    }
    let (triangles, triangle_vertices) = pick(&others);
    let mesh = plain_bvh(&triangles);
    let (own, own_vertices) = pick(&lamps);
    let instances: Vec<Instance> = (0u32..)
        .zip(places)
        .map(|(index, map)| Instance {
            world_from_mesh: *map,
            normal_from_mesh: rows_of_three(map, |row, column, value| {
                value + 0.01 * (row * column) as f32
            }),
            tangent_from_mesh: rows_of_three(map, |_, _, value| value * 1.5),
            first_id: own.len() as u32 + index * triangles.len() as u32,
            first_triangle: 0,
            triangle_count: triangles.len() as u32,
            root: 0,
            standing_padding: 0.0,
            reserved: 0,
        })
        .collect();
    made.bvh = Arc::new(top(&own, &mesh, &instances, scene.bvh.padding));
    (made.triangles, made.triangle_vertices) = (own.into(), own_vertices.into());
    made.instances = instances.into();
    let vertices = scene.vertices.clone();
    made.meshes = Arc::new(Meshes {
        triangles: triangles.into(),
        triangle_vertices: triangle_vertices.into(),
        vertices,
        nodes: mesh.nodes,
        blocks: mesh.blocks,
    });
    made
}

/// One node over the scene's own triangles and the instances.
fn top(own: &[Triangle], mesh: &Bvh, instances: &[Instance], padding: f32) -> Bvh {
    let mut bvh = plain_bvh(own);
    bvh.padding = padding;
    let mut root = BvhNode8 {
        bounds: [[[f32::INFINITY; 8]; 3], [[f32::NEG_INFINITY; 8]; 3]],
        child: [CHILD_EMPTY; 8],
        reserved: [0; 8],
    };
    let nodes = bvh.nodes.make_mut();
    for node in nodes.iter_mut() {
        for child in node.child.iter_mut().filter(|child| **child & CHILD_LEAF_FLAG == 0) {
            *child += 1;
        }
    }
    let mut slots = 0..8;
    if !own.is_empty() {
        let slot = slots.next().expect("eight slots");
        root.child[slot] = 1;
        let [lower, upper] = box_of(&nodes[0]);
        set_box(&mut root, slot, lower, upper);
    }
    for (index, (instance, slot)) in instances.iter().zip(slots).enumerate() {
        root.child[slot] = CHILD_LEAF_FLAG | CHILD_INSTANCE_FLAG | index as u32;
        let [lower, upper] = box_of(&mesh.nodes[0]);
        let [lower, upper] = instance.place_box(lower, upper);
        set_box(&mut root, slot, lower.map(|c| c - padding), upper.map(|c| c + padding));
    }
    nodes.insert(0, root);
    bvh
}

fn box_of(node: &BvhNode8) -> [[f32; 3]; 2] {
    [
        std::array::from_fn(|axis| {
            node.bounds[0][axis].iter().copied().fold(f32::INFINITY, f32::min)
        }),
        std::array::from_fn(|axis| {
            node.bounds[1][axis].iter().copied().fold(f32::NEG_INFINITY, f32::max)
        }),
    ]
}

/// Sets the bounds of one child of a hierarchy node.
pub fn set_box(node: &mut BvhNode8, slot: usize, lower: [f32; 3], upper: [f32; 3]) {
    for axis in 0..3 {
        (node.bounds[0][axis][slot], node.bounds[1][axis][slot]) = (lower[axis], upper[axis]);
    }
}
