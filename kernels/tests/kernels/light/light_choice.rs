//! Choosing one of many lights: by the probabilities that are said, which are those of the lights
//! that are met by chance, sum to one, and leave no light out that shines on a surface.

use crate::math::sampling::{Random, assert_chi_squared};
use tessera_kernels::CheckedScene;
use tessera_kernels::test_hooks::{light_probability, packed_normal, pick_light};
use tessera_layout::{LightKind, LightNode, NONE, light_child_bits, triangle_flags};
use tessera_support::builder::*;

fn unit(random: &mut Random) -> [f32; 3] {
    loop {
        let point: [f32; 3] = std::array::from_fn(|_| 2.0 * random.unit() - 1.0);
        let length = point.iter().map(|v| v * v).sum::<f32>().sqrt();
        if (0.1..1.0).contains(&length) {
            return point.map(|v| v / length);
        }
    }
}

/// Lamps, glowing triangles of one and of two sides, a sun and a sky, in clusters and alone.
fn many(count: u32, far: bool) -> CheckedScene {
    let mut random = Random(count.into());
    let mut builder = Builder::default();
    let mut glow = material([0.5; 3], 0.0, 1.0);
    glow.emission = [1.0; 3];
    let glow = builder.add_material(glow);
    for index in 0..count {
        let cluster = (index % 5) as f32 * 3.0;
        let place: [f32; 3] = std::array::from_fn(|_| cluster + 2.0 * random.unit() - 1.0);
        let power = f64::from(2.0f32.powi((random.bits() % 10) as i32 - 5));
        if index % 3 == 0 {
            let corners: [[f32; 3]; 4] = std::array::from_fn(|_| {
                let apart = unit(&mut random);
                std::array::from_fn(|k| place[k] + 0.2 * apart[k])
            });
            let first = builder.quad(corners, glow);
            if index % 2 == 0 {
                builder.triangles[first as usize].flags |= triangle_flags::DOUBLE_SIDED;
            }
            (first..first + 2).for_each(|triangle| builder.emit(triangle, power));
        } else {
            let mut lamp =
                light(if index % 3 == 1 { LightKind::Point } else { LightKind::Spot }, [1.0; 3]);
            (lamp.position, lamp.direction) = (place, unit(&mut random));
            // A cone of 60 degrees in all, soft from 40.
            lamp.spot_scale = 1.0 / (0.939_692_6 - 0.866_025_4);
            lamp.spot_offset = -0.866_025_4 * lamp.spot_scale;
            builder.lights.push((lamp, power));
        }
    }
    if far {
        builder.lights.push((light(LightKind::Directional, [1.0; 3]), 3.0));
    }
    builder.finish()
}

fn vantages(count: usize) -> Vec<[[f32; 3]; 2]> {
    let mut random = Random(7);
    let mut made: Vec<[[f32; 3]; 2]> = (0..count)
        .map(|_| [std::array::from_fn(|_| 16.0 * random.unit() - 2.0), unit(&mut random)])
        .collect();
    // Far away, where everything is under one angle, and beyond where squares have any meaning.
    made.push([[1e6, -1e6, 1e6], [0.0, 1.0, 0.0]]);
    made.push([[1e18, 0.0, 0.0], [1.0, 0.0, 0.0]]);
    made
}

#[test]
fn probabilities_sum_to_one() {
    for (count, far) in [(1, false), (2, true), (17, true), (400, false)] {
        let scene = many(count, far);
        for from in vantages(40) {
            let total: f64 = (0..scene.lights.len() as u32)
                .map(|light| f64::from(light_probability(&scene, from, light)))
                .sum();
            assert!((total - 1.0).abs() < 1e-4, "{count} lights, {from:?}: {total}");
        }
    }
}

#[test]
fn lights_are_picked_as_often_as_is_said() {
    const PICKS: u32 = 200_000;
    for count in [5, 60, 300] {
        let scene = many(count, true);
        for from in vantages(4) {
            let mut random = Random(11);
            let mut counts = vec![0.0; scene.lights.len()];
            for _ in 0..PICKS {
                let (light, probability) = pick_light(&scene, from, random.bits());
                assert_eq!(
                    probability.to_bits(),
                    light_probability(&scene, from, light).to_bits(),
                    "one number"
                );
                counts[light as usize] += 1.0;
            }
            let expected: Vec<f64> = (0..counts.len() as u32)
                .map(|light| f64::from(light_probability(&scene, from, light)) * f64::from(PICKS))
                .collect();
            if expected.iter().filter(|want| **want >= 5.0).count() > 4 {
                assert_chi_squared(&format!("{count} lights from {from:?}"), &counts, &expected);
            }
        }
    }
}

/// Where a lamp or the front of a triangle is seen under some angle, its probability is not 0.
#[test]
fn no_light_that_shines_on_a_surface_is_left_out() {
    let scene = many(300, false);
    let dot =
        |a: [f32; 3], b: [f32; 3]| (0..3).map(|k| f64::from(a[k]) * f64::from(b[k])).sum::<f64>();
    for from in vantages(60) {
        for (index, light) in (0u32..).zip(scene.lights.iter()) {
            let place = match scene.triangles.get(light.triangle as usize) {
                Some(triangle) => std::array::from_fn(|k| {
                    (triangle.v0[k] + triangle.v1[k] + triangle.v2[k]) / 3.0
                }),
                None => light.position,
            };
            let towards: [f32; 3] = std::array::from_fn(|k| place[k] - from[0][k]);
            let distance = dot(towards, towards).sqrt();
            let lit = dot(towards, from[1]) > 0.0;
            let shines = match scene.triangles.get(light.triangle as usize) {
                Some(triangle) => {
                    let [a, b] = [triangle.v1, triangle.v2].map(|corner| sub(corner, triangle.v0));
                    let facing = -dot(cross(a, b), towards);
                    facing > 0.0
                        || (facing < 0.0 && triangle.flags & triangle_flags::DOUBLE_SIDED != 0)
                }
                None => {
                    let spot = light.kind == LightKind::Spot as u32;
                    !spot || -dot(towards, light.direction) / distance > 0.866_025_4
                }
            };
            if lit && shines && distance < 1e9 {
                assert!(
                    light_probability(&scene, from, index) > 0.0,
                    "light {index} from {from:?}"
                );
            }
        }
    }
}

/// The tree knows what is near: of two rooms full of lamps, those of the own room are picked.
#[test]
fn near_lights_are_picked_more_often() {
    let mut builder = Builder::default();
    for index in 0..200 {
        let mut lamp = light(LightKind::Point, [1.0; 3]);
        lamp.position =
            [if index % 2 == 0 { 0.0 } else { 1000.0 }, 1.0 + (index / 2) as f32 * 0.01, 0.0];
        builder.lights.push((lamp, 1.0));
    }
    let scene = builder.finish();
    let here = [[0.0, 0.0, 0.0], [0.0, 1.0, 0.0]];
    let near: f64 = (0u32..)
        .zip(scene.lights.iter())
        .filter(|(_, light)| light.position[0] < 1.0)
        .map(|(index, _)| f64::from(light_probability(&scene, here, index)))
        .sum();
    assert!(near > 0.999, "{near}");
}

#[test]
fn a_packed_normal_is_nearly_the_same() {
    let mut random = Random(3);
    for _ in 0..10_000 {
        let normal = unit(&mut random);
        let again = packed_normal(normal);
        assert!((0..3).all(|k| (normal[k] - again[k]).abs() < 1e-4), "{normal:?} {again:?}");
    }
    for axis in 0..3 {
        for sign in [1.0, -1.0] {
            let mut normal = [0.0; 3];
            normal[axis] = sign;
            assert_eq!(packed_normal(normal), normal);
        }
    }
}

/// Sends a node's inner children elsewhere.
fn inner(node: &mut LightNode, elsewhere: fn(u32) -> u32) {
    let children = node.child.iter_mut().filter(|child| **child & light_child_bits::LEAF == 0);
    children.for_each(|child| *child = elsewhere(*child));
}

#[test]
fn malformed_light_trees_are_refused() {
    use std::sync::Arc;
    use tessera_layout::FlatScene;
    type Break = fn(&mut Vec<LightNode>);
    let breaks: [(&str, Break); 6] = [
        ("a part that is no light", |nodes| nodes[1].child[0] = NONE - 1),
        ("a way back", |nodes| nodes.iter_mut().for_each(|node| inner(node, |_| 0))),
        ("a way over others", |nodes| inner(&mut nodes[0], |child| child + 1)),
        ("a light that is missing", |nodes| nodes[1].child[0] = NONE),
        ("a part that is no node", |nodes| nodes[1].child[0] &= light_child_bits::INDEX),
        ("a part of it", |nodes| nodes.truncate(1)),
    ];
    for (what, break_it) in breaks {
        let mut flat: FlatScene = FlatScene::clone(&many(9, true));
        assert!(CheckedScene::new(Arc::new(flat.clone())).is_ok());
        break_it(flat.light_nodes.make_mut());
        assert!(CheckedScene::new(Arc::new(flat)).is_err(), "{what}");
    }
    let mut flat: FlatScene = FlatScene::clone(&many(9, true));
    flat.lights.make_mut()[0].trail ^= 1;
    assert!(
        CheckedScene::new(Arc::new(flat)).is_err(),
        "a light that is not at the end of its trail"
    );
}
