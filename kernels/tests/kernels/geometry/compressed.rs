//! The device's hierarchy: boxes that contain what they must, and the same hits as the host's
//! hierarchy and as brute force.

use crate::builds::same_bits::varied;
use tessera_kernels::cuda::{CompressedBvh, CompressedNode};
use tessera_kernels::host::{available_isas, best_isa};
use tessera_kernels::rays::{Ray, trace_closest, trace_shadow};
use tessera_kernels::{CheckedScene, test_hooks};
use tessera_layout::*;
use tessera_support::builder::*;

/// A counter made random.
pub(crate) struct Random(pub(crate) u32);

impl Random {
    pub(crate) fn bits(&mut self) -> u32 {
        self.0 = self.0.wrapping_add(0x9e37_79b9);
        let mut value = self.0;
        value = (value ^ value >> 16).wrapping_mul(0x7feb_352d);
        value = (value ^ value >> 15).wrapping_mul(0x846c_a68b);
        value ^ value >> 16
    }

    /// In [-1, 1).
    pub(crate) fn signed(&mut self) -> f32 {
        (self.bits() >> 8) as f32 / 8_388_608.0 - 1.0
    }

    pub(crate) fn point(&mut self, scale: f32) -> [f32; 3] {
        std::array::from_fn(|_| self.signed() * scale)
    }
}

/// Triangles of many sizes, flat ones, slivers, twins in one plane, points; moved away from the
/// origin by `offset`.
pub(crate) fn adversarial(offset: f32, count: u32, seed: u32) -> CheckedScene {
    let mut random = Random(seed);
    let mut builder = Builder::default();
    let plain = builder.add_material(material([0.5; 3], 0.0, 0.5));
    for index in 0..count {
        let size = 2.0f32.powi((random.bits() % 12) as i32 - 9);
        let center = random.point(4.0).map(|c| c + offset);
        let mut corners: [[f32; 3]; 4] = std::array::from_fn(|_| {
            std::array::from_fn(|axis| center[axis] + random.signed() * size)
        });
        match index % 5 {
            0 => corners.iter_mut().for_each(|corner| corner[1] = offset), // all in one plane
            1 => corners[2] = corners[1],                                  // a sliver
            // on a lattice
            2 => corners.iter_mut().for_each(|corner| *corner = corner.map(f32::round)),
            _ => {}
        }
        builder.quad(corners, plain);
    }
    builder.finish()
}

/// Rays at corners, at edges, along axes, from inside and from far away, some of which end where
/// they hit.
pub(crate) fn rays(scene: &CheckedScene, count: usize, seed: u32) -> Vec<Ray> {
    let mut random = Random(seed);
    let mut made = Vec::with_capacity(count);
    for index in 0..count {
        let triangle = &scene.triangles[random.bits() as usize % scene.triangles.len()];
        let corners = [triangle.v0, triangle.v1, triangle.v2];
        let target = match index % 4 {
            0 => corners[random.bits() as usize % 3],
            1 => std::array::from_fn(|axis| corners[0][axis] * 0.5 + corners[1][axis] * 0.5),
            _ => std::array::from_fn(|axis| {
                (corners[0][axis] + corners[1][axis] + corners[2][axis]) / 3.0
            }),
        };
        let mut direction = random.point(1.0);
        if index % 3 == 0 {
            direction =
                [[1.0, 0.0, 0.0], [0.0, -1.0, 0.0], [0.0, -0.0, 1.0]][random.bits() as usize % 3];
        }
        let distance = [0.0, 1.0, 30.0][random.bits() as usize % 3];
        let origin = std::array::from_fn(|axis| target[axis] - direction[axis] * distance);
        // Of every length too, since a leaf judges distances before it divides.
        let length = if index % 5 == 0 { 2.0f32.powi(random.bits() as i32 % 70) } else { 1.0 };
        made.push(Ray {
            origin,
            direction: direction.map(|d| d * length),
            t_max: if index % 7 == 0 { distance / length } else { f32::INFINITY },
        });
    }
    made
}

fn same_hits(scene: &CheckedScene, rays: &[Ray]) {
    let (hits, optical_depths) = test_hooks::trace_compressed(scene, rays);
    let bits = |hit: &tessera_kernels::rays::Hit| {
        (hit.t.to_bits(), hit.triangle, hit.u.to_bits(), hit.v.to_bits())
    };
    for isa in available_isas() {
        let want = trace_closest(isa, scene, rays).unwrap();
        for (index, (hit, want)) in hits.iter().zip(&want).enumerate() {
            assert_eq!(bits(hit), bits(want), "{isa:?}, ray {index}: {:?}", rays[index]);
        }
        assert_eq!(optical_depths, trace_shadow(isa, scene, rays).unwrap(), "{isa:?}");
    }
    let share = hits.iter().filter(|hit| hit.triangle != NONE).count() as f64 / hits.len() as f64;
    assert!(share > 0.3, "only {share} of the rays hit");
}

#[test]
fn the_compressed_hierarchy_gives_the_same_hits() {
    for (offset, seed) in [(0.0, 1), (1000.0, 2), (-3e6, 3), (1e-6, 4)] {
        let scene = adversarial(offset, 300, seed);
        same_hits(&scene, &rays(&scene, 15_000, seed));
    }
    let scene = varied();
    same_hits(&scene, &rays(&scene, 15_000, 9));
}

/// All triangles of a scene in one leaf chain: a hierarchy in which nothing is ever culled, since
/// all boxes are huge.
#[test]
fn both_hierarchies_agree_with_brute_force() {
    let scene = adversarial(5.0, 60, 11);
    let rays = rays(&scene, 4000, 12);
    let mut flat = FlatScene::clone(&scene);
    let mut bvh = Bvh::clone(&flat.bvh);
    for node in bvh.nodes.make_mut() {
        for slot in (0..8).filter(|slot| node.child[*slot] != CHILD_EMPTY) {
            for axis in 0..3 {
                (node.bounds[0][axis][slot], node.bounds[1][axis][slot]) = (-1e30, 1e30);
            }
        }
    }
    flat.bvh = bvh.into();
    let open = CheckedScene::new(flat.into()).unwrap();
    let want = trace_closest(best_isa(), &open, &rays).unwrap();
    assert_eq!(test_hooks::trace_compressed(&open, &rays).0, want);
    assert_eq!(test_hooks::trace_compressed(&scene, &rays).0, want);
}

#[test]
fn an_empty_scene_is_missed() {
    let scene = Builder::default().finish();
    let ray = Ray { origin: [0.0; 3], direction: [0.0, 0.0, 1.0], t_max: f32::INFINITY };
    assert_eq!(test_hooks::trace_compressed(&scene, &[ray]).0, [tessera_kernels::rays::Hit::MISS]);
}

/// Boxes of one node with all kinds of extents: wide, flat, far from the origin, denormal, huge.
fn node_of_boxes(random: &mut Random) -> BvhNode8 {
    let mut node = BvhNode8 {
        bounds: [[[f32::INFINITY; 8]; 3], [[f32::NEG_INFINITY; 8]; 3]],
        child: [CHILD_EMPTY; 8],
        reserved: [0; 8],
    };
    let magnitude = 2.0f32.powi((random.bits() % 140) as i32 - 70);
    let offset = random.signed() * 2.0f32.powi((random.bits() % 200) as i32 - 100);
    for slot in 0..8 {
        if random.bits().is_multiple_of(5) {
            continue;
        }
        node.child[slot] = CHILD_LEAF_FLAG | slot as u32;
        for axis in 0..3 {
            let (a, b) =
                (offset + random.signed() * magnitude, offset + random.signed() * magnitude);
            let flat = random.bits().is_multiple_of(4);
            node.bounds[0][axis][slot] = a.min(b);
            node.bounds[1][axis][slot] = if flat { a.min(b) } else { a.max(b) };
        }
    }
    node
}

#[test]
fn a_box_of_planes_contains_the_box_it_stands_for() {
    let mut random = Random(77);
    let block = |id| TriangleBlock { corner: [[[0.0; 4]; 3]; 3], triangle: [id, NONE, NONE, NONE] };
    let mut loosest = 0.0f64;
    for _ in 0..20_000 {
        let node = node_of_boxes(&mut random);
        let nodes = vec![node].into();
        let bvh = Bvh { nodes, blocks: (0..8).map(block).collect(), padding: 0.0 };
        let compressed = CompressedBvh::of(&bvh, &[], &Meshes::default());
        let (made, leaves) = (compressed.nodes()[0], compressed.triangles());
        let mut found = 0;
        for slot in (0..8).filter(|slot| made.leaf[*slot] != 0) {
            let first = made.first_triangle + u32::from(made.leaf[slot] & 31);
            let child = leaves[first as usize].triangle as usize;
            assert!(contains(&made, slot, &node, child), "child {child} of {node:?} in {made:?}");
            found += 1;
        }
        assert_eq!(found, node.child.iter().filter(|child| **child != CHILD_EMPTY).count());
        loosest = loosest.max(looseness(&made, &node));
    }
    assert!(loosest < 0.02, "a box is wider by {loosest} of its node");
}

fn contains(made: &CompressedNode, slot: usize, node: &BvhNode8, k: usize) -> bool {
    (0..3).all(|axis| {
        let (low, high) = (made.plane(0, axis, slot), made.plane(1, axis, slot));
        assert_eq!(low.to_bits(), test_hooks::plane(made, 0, axis, slot).to_bits());
        assert_eq!(high.to_bits(), test_hooks::plane(made, 1, axis, slot).to_bits());
        low <= node.bounds[0][axis][k] && high >= node.bounds[1][axis][k]
    })
}

/// By how much the node's whole extent grew, in units of itself, where floats resolve it at all.
fn looseness(made: &CompressedNode, node: &BvhNode8) -> f64 {
    let slots = || (0..8).filter(|slot| made.leaf[*slot] != 0);
    let children = || (0..8).filter(|k| node.child[*k] != CHILD_EMPTY);
    (0..3)
        .map(|axis| {
            let fold =
                |values: &mut dyn Iterator<Item = f32>, start: f32, pick: fn(f32, f32) -> f32| {
                    f64::from(values.fold(start, pick))
                };
            let low =
                fold(&mut children().map(|k| node.bounds[0][axis][k]), f32::INFINITY, f32::min);
            let high =
                fold(&mut children().map(|k| node.bounds[1][axis][k]), f32::NEG_INFINITY, f32::max);
            let made_low =
                fold(&mut slots().map(|s| made.plane(0, axis, s)), f32::INFINITY, f32::min);
            let made_high =
                fold(&mut slots().map(|s| made.plane(1, axis, s)), f32::NEG_INFINITY, f32::max);
            let resolved = high - low > 1e-4 * low.abs().max(high.abs()) && high - low > 1e-30;
            if resolved { ((made_high - made_low) / (high - low) - 1.0).max(0.0) } else { 0.0 }
        })
        .fold(0.0, f64::max)
}
