//! Instances show what copies in their places would show, to the last bit: hits, optical depths and films, on hosts and on a device. And what
//! is no scene with instances is refused.

use crate::compressed::{Random, adversarial, rays};
use crate::same_bits::{everything, varied};
use crate::support::*;
use std::sync::Arc;
use tessera_kernels::CheckedScene;
use tessera_kernels::cuda::without_instances;
use tessera_kernels::host::{available_isas, best_isa};
use tessera_kernels::rays::{Hit, trace_closest, trace_shadow};
use tessera_layout::*;

/// World from mesh: turned, stretched along its own axes, and moved.
fn map(turn: f32, stretch: [f32; 3], offset: [f32; 3]) -> [[f32; 4]; 3] {
    let (sine, cosine) = turn.sin_cos();
    let rows = [[cosine, -0.6 * sine, 0.8 * sine], [sine, 0.6 * cosine, -0.8 * cosine], [0.0, 0.8, 0.6]];
    std::array::from_fn(|row| {
        let [x, y, z] = rows[row];
        [x * stretch[0], y * stretch[1], z * stretch[2], offset[row]]
    })
}

/// As it stands; the same once more; along the axes with zeros in the map; turned; small and skewed by its scale.
fn places() -> Vec<[[f32; 4]; 3]> {
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
fn instanced(scene: &FlatScene, places: &[[[f32; 4]; 3]]) -> FlatScene {
    let mut made = scene.clone();
    let is_lamp = |id: &usize| scene.triangles[*id].light != NONE;
    let pick = |ids: &[usize]| -> (Vec<Triangle>, Vec<[u32; 3]>) {
        ids.iter().map(|id| (scene.triangles[*id], scene.triangle_vertices[*id])).unzip()
    };
    let (lamps, others): (Vec<usize>, Vec<usize>) = (0..scene.triangles.len()).partition(is_lamp);
    for light in Arc::make_mut(&mut made.lights).iter_mut().filter(|light| light.triangle != NONE) {
        light.triangle = lamps.iter().position(|lamp| *lamp == light.triangle as usize).unwrap() as u32;
    }
    let (triangles, triangle_vertices) = pick(&others);
    let mesh = plain_bvh(&triangles);
    let (own, own_vertices) = pick(&lamps);
    let instances: Vec<Instance> = (0u32..)
        .zip(places)
        .map(|(index, map)| Instance {
            world_from_mesh: *map,
            normal_from_mesh: rows_of_three(map, |row, column, value| value + 0.01 * (row * column) as f32),
            tangent_from_mesh: rows_of_three(map, |_, _, value| value * 1.5),
            first_id: own.len() as u32 + index * triangles.len() as u32,
            first_triangle: 0,
            triangle_count: triangles.len() as u32,
            root: 0,
            reserved: [0; 2],
        })
        .collect();
    made.bvh = Arc::new(top(&own, &mesh, &instances, scene.bvh.padding));
    (made.triangles, made.triangle_vertices) = (own.into(), own_vertices.into());
    made.instances = instances.into();
    let vertices = scene.vertices.to_vec();
    made.meshes =
        Arc::new(Meshes { triangles, triangle_vertices, vertices, nodes: mesh.nodes, blocks: mesh.blocks });
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
    for node in &mut bvh.nodes {
        for child in node.child.iter_mut().filter(|child| **child & CHILD_LEAF_FLAG == 0) {
            *child += 1;
        }
    }
    let mut slots = 0..8;
    if !own.is_empty() {
        let slot = slots.next().unwrap();
        root.child[slot] = 1;
        let [lower, upper] = box_of(&bvh.nodes[0]);
        set_box(&mut root, slot, lower, upper);
    }
    for (index, (instance, slot)) in instances.iter().zip(slots).enumerate() {
        root.child[slot] = CHILD_LEAF_FLAG | CHILD_INSTANCE_FLAG | index as u32;
        let [lower, upper] = box_of(&mesh.nodes[0]);
        let [lower, upper] = instance.place_box(lower, upper);
        set_box(&mut root, slot, lower.map(|c| c - padding), upper.map(|c| c + padding));
    }
    bvh.nodes.insert(0, root);
    bvh
}

fn box_of(node: &BvhNode8) -> [[f32; 3]; 2] {
    [
        std::array::from_fn(|axis| node.bounds[0][axis].iter().copied().fold(f32::INFINITY, f32::min)),
        std::array::from_fn(|axis| node.bounds[1][axis].iter().copied().fold(f32::NEG_INFINITY, f32::max)),
    ]
}

fn set_box(node: &mut BvhNode8, slot: usize, lower: [f32; 3], upper: [f32; 3]) {
    for axis in 0..3 {
        (node.bounds[0][axis][slot], node.bounds[1][axis][slot]) = (lower[axis], upper[axis]);
    }
}

fn checked(scene: FlatScene) -> CheckedScene {
    CheckedScene::new(Arc::new(scene)).unwrap()
}

#[test]
fn rays_find_what_they_would_find_of_copies() {
    let mut through_instances = 0;
    for (seed, offset) in [(1, 0.0), (2, 0.0), (3, 300.0)] {
        let soup = adversarial(offset, 250, seed);
        let mut scene = instanced(&soup, &places());
        Arc::make_mut(&mut scene.bvh).padding = 400.0 / 2_097_152.0;
        let scene = checked(scene);
        let copies = without_instances(&scene);
        assert_eq!((copies.instances.len(), copies.triangles.len()), (0, 3000));
        let rays = rays(&copies, 40_000, seed);
        for isa in available_isas() {
            let found = trace_closest(isa, &scene, &rays).unwrap();
            assert_eq!(found, trace_closest(isa, &copies, &rays).unwrap(), "{isa:?} {seed}");
            assert_eq!(
                trace_shadow(isa, &scene, &rays).unwrap(),
                trace_shadow(isa, &copies, &rays).unwrap(),
                "{isa:?} {seed}"
            );
            through_instances += found.iter().filter(|hit| **hit != Hit::MISS && hit.triangle >= 500).count();
        }
    }
    assert!(through_instances > 100_000, "{through_instances} hits are no proof");
}

/// All of `varied` but its lamp, in six places.
pub(crate) fn with_instances() -> CheckedScene {
    checked(instanced(&varied(), &places()))
}

#[test]
fn films_of_instances_are_those_of_copies() {
    let scene = with_instances();
    let copies = without_instances(&scene);
    assert!(!scene.triangles.is_empty() && scene.shown_triangles() == copies.triangles.len() as u64);
    let unit = UnitParams { frame_width: 40, frame_height: 40, width: 40, height: 40, ..everything() };
    let wanted = sums(best_isa(), &copies, &unit);
    assert_ne!(wanted.0, sums(best_isa(), &varied(), &unit).0, "the places show");
    for isa in available_isas() {
        let found = sums(isa, &scene, &unit);
        assert!(found == wanted, "{isa:?}: another film");
    }
}

#[test]
fn what_is_no_scene_with_instances_is_refused() {
    type Break = fn(&mut FlatScene);
    let breaks: [(&str, Break); 14] = [
        ("id", |scene| Arc::make_mut(&mut scene.instances)[1].first_id += 1),
        ("count", |scene| Arc::make_mut(&mut scene.instances)[0].triangle_count -= 1),
        ("no triangle", |scene| Arc::make_mut(&mut scene.instances)[5].triangle_count = 0),
        ("first", |scene| Arc::make_mut(&mut scene.instances)[0].first_triangle = 1),
        ("root", |scene| Arc::make_mut(&mut scene.instances)[0].root = 1 << 20),
        ("not finite", |scene| Arc::make_mut(&mut scene.instances)[2].world_from_mesh[1][2] = f32::NAN),
        ("too far", |scene| Arc::make_mut(&mut scene.instances)[2].world_from_mesh[1][3] = 1e36),
        ("material", |scene| Arc::make_mut(&mut scene.meshes).triangles[3].material = 99),
        ("light", |scene| Arc::make_mut(&mut scene.meshes).triangles[3].light = 0),
        ("vertex", |scene| Arc::make_mut(&mut scene.meshes).triangle_vertices[3][1] = 1 << 20),
        ("circle", |scene| Arc::make_mut(&mut scene.meshes).nodes[0].child[0] = 0),
        ("block", |scene| Arc::make_mut(&mut scene.meshes).blocks[0].triangle[0] = 1 << 20),
        ("instance", |scene| {
            let children = &mut Arc::make_mut(&mut scene.bvh).nodes[0].child;
            children[1] = CHILD_LEAF_FLAG | CHILD_INSTANCE_FLAG | 6;
        }),
        ("deep", |scene| {
            // A line of nodes above, as long as may be without a mesh below it.
            let bvh = Arc::make_mut(&mut scene.bvh);
            let root = bvh.nodes[0];
            for _ in 1..BVH_DEPTH_MAX {
                let (next, mut node) = (bvh.nodes.len() as u32, root);
                node.child = [CHILD_EMPTY; 8];
                for slot in 1..8 {
                    set_box(&mut node, slot, [1.0; 3], [-1.0; 3]);
                }
                node.child[0] = next;
                let last = bvh.nodes.len() - 1;
                if last > 2 {
                    bvh.nodes[last].child[0] = next;
                } else {
                    bvh.nodes[0].child[0] = next;
                }
                bvh.nodes.push(node);
            }
            let last = bvh.nodes.len() - 1;
            bvh.nodes[last] = root;
        }),
    ];
    let good = instanced(&varied(), &places());
    assert!(CheckedScene::new(Arc::new(good.clone())).is_ok());
    for (what, break_it) in breaks {
        let mut scene = good.clone();
        break_it(&mut scene);
        assert!(CheckedScene::new(Arc::new(scene)).is_err(), "{what}");
    }
}

#[test]
fn an_empty_child_of_a_mesh_is_never_followed() {
    // Maps of zeros and turns make anything of infinite bounds.
    let mut random = Random(5);
    let mut builder = Builder::default();
    let plain = builder.add_material(material([0.5; 3], 0.0, 0.5));
    builder.quad([[-1.0, -1.0, 0.0], [1.0, -1.0, 0.0], [1.0, 1.0, 0.0], [-1.0, 1.0, 0.0]], plain);
    let scene = checked(instanced(&builder.flat(), &places()));
    let copies = without_instances(&scene);
    let made: Vec<_> = (0..2000)
        .map(|_| tessera_kernels::rays::Ray {
            origin: random.point(2.0),
            direction: random.point(1.0),
            t_max: f32::INFINITY,
        })
        .collect();
    for isa in available_isas() {
        assert_eq!(trace_closest(isa, &scene, &made).unwrap(), trace_closest(isa, &copies, &made).unwrap());
    }
}
