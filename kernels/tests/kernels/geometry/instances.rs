//! Instances show what copies in their places would show, to the last bit: hits, optical depths and
//! films, on hosts and on a device. And what is no scene with instances is refused.

use crate::builds::same_bits::{everything, varied};
use crate::geometry::compressed::{Random, adversarial, rays};
use std::sync::Arc;
use tessera_kernels::copies::without_instances;
use tessera_kernels::host::{available_isas, best_isa};
use tessera_kernels::rays::{Hit, trace_closest, trace_shadow};
use tessera_kernels::{CheckedScene, test_hooks};
use tessera_layout::*;
use tessera_support::builder::*;
use tessera_support::instanced::{instanced, places, set_box};

fn meshes(scene: &mut FlatScene) -> &mut Meshes {
    Arc::make_mut(&mut scene.meshes)
}

fn checked(scene: FlatScene) -> CheckedScene {
    CheckedScene::new(Arc::new(scene)).unwrap()
}

#[test]
fn rays_find_what_they_would_find_of_copies() {
    let mut through_instances = 0;
    let count = 3_000;
    for (seed, offset) in [(1, 0.0), (2, 0.0), (3, 300.0)] {
        let soup = adversarial(offset, 250, seed);
        let mut scene = instanced(&soup, &places());
        Arc::make_mut(&mut scene.bvh).padding = 400.0 / 2_097_152.0;
        let scene = checked(scene);
        let copies = without_instances(&scene);
        assert_eq!((copies.instances.len(), copies.triangles.len()), (0, 3000));
        let rays = rays(&copies, count, seed);
        let on_device = test_hooks::trace_compressed(&scene, &rays);
        for isa in available_isas() {
            let found = trace_closest(isa, &scene, &rays).unwrap();
            let optical_depths = trace_shadow(isa, &scene, &rays).unwrap();
            assert_eq!(found, trace_closest(isa, &copies, &rays).unwrap(), "{isa:?} {seed}");
            assert_eq!(
                optical_depths,
                trace_shadow(isa, &copies, &rays).unwrap(),
                "{isa:?} {seed}"
            );
            assert!(
                on_device == (found.clone(), optical_depths),
                "{isa:?} {seed}: the device's walk"
            );
            through_instances +=
                found.iter().filter(|hit| **hit != Hit::MISS && hit.triangle >= 500).count();
        }
    }
    assert!(through_instances > 7_500, "{through_instances} hits are no proof");
}

/// All of `varied` but its lamp, in six places.
pub(crate) fn with_instances() -> CheckedScene {
    checked(instanced(&varied(), &places()))
}

#[test]
fn films_of_instances_are_those_of_copies() {
    let scene = with_instances();
    let copies = without_instances(&scene);
    assert!(
        !scene.triangles.is_empty() && scene.shown_triangles() == copies.triangles.len() as u64
    );
    let unit =
        UnitParams { frame_width: 40, frame_height: 40, width: 40, height: 40, ..everything() };
    let wanted = sums(best_isa(), &copies, &unit);
    assert_ne!(wanted.0, sums(best_isa(), &varied(), &unit).0, "the places show");
    for isa in available_isas() {
        let found = sums(isa, &scene, &unit);
        assert!(found == wanted, "{isa:?}: another film");
    }
}

#[test]
fn malformed_scenes_with_instances_are_refused() {
    type Break = fn(&mut FlatScene);
    let breaks: [(&str, Break); 14] = [
        ("id", |scene| scene.instances.make_mut()[1].first_id += 1),
        ("count", |scene| scene.instances.make_mut()[0].triangle_count -= 1),
        ("no triangle", |scene| scene.instances.make_mut()[5].triangle_count = 0),
        ("first", |scene| scene.instances.make_mut()[0].first_triangle = 1),
        ("root", |scene| scene.instances.make_mut()[0].root = 1 << 20),
        ("not finite", |scene| scene.instances.make_mut()[2].world_from_mesh[1][2] = f32::NAN),
        ("too far", |scene| scene.instances.make_mut()[2].world_from_mesh[1][3] = 1e36),
        ("material", |scene| meshes(scene).triangles.make_mut()[3].material = 99),
        ("light", |scene| meshes(scene).triangles.make_mut()[3].light = 0),
        ("vertex", |scene| meshes(scene).triangle_vertices.make_mut()[3][1] = 1 << 20),
        ("circle", |scene| meshes(scene).nodes.make_mut()[0].child[0] = 0),
        ("block", |scene| meshes(scene).blocks.make_mut()[0].triangle[0] = 1 << 20),
        ("instance", |scene| {
            let children = &mut Arc::make_mut(&mut scene.bvh).nodes.make_mut()[0].child;
            children[1] = CHILD_LEAF_FLAG | CHILD_INSTANCE_FLAG | 6;
        }),
        ("deep", |scene| {
            // A line of nodes above, as long as may be without a mesh below it.
            let nodes = Arc::make_mut(&mut scene.bvh).nodes.make_mut();
            let root = nodes[0];
            for _ in 1..BVH_DEPTH_MAX {
                let (next, mut node) = (nodes.len() as u32, root);
                node.child = [CHILD_EMPTY; 8];
                for slot in 1..8 {
                    set_box(&mut node, slot, [1.0; 3], [-1.0; 3]);
                }
                node.child[0] = next;
                let last = nodes.len() - 1;
                if last > 2 {
                    nodes[last].child[0] = next;
                } else {
                    nodes[0].child[0] = next;
                }
                nodes.push(node);
            }
            let last = nodes.len() - 1;
            nodes[last] = root;
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
    let wanted = trace_closest(best_isa(), &copies, &made).unwrap();
    assert_eq!(test_hooks::trace_compressed(&scene, &made).0, wanted);
    for isa in available_isas() {
        assert_eq!(trace_closest(isa, &scene, &made).unwrap(), wanted);
    }
}
