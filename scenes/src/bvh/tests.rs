//! Tests of the structure of hierarchies, for every builder. Tests that hits agree are in `tests/`.

use super::*;
use tessera_layout::{BVH_DEPTH_MAX, CHILD_EMPTY, CHILD_LEAF_FLAG, NONE, triangle_flags};

const KINDS: [BuilderKind; 4] =
    [BuilderKind::SurfaceArea, BuilderKind::Median, BuilderKind::Random(1), BuilderKind::Random(2)];

fn triangle(corners: [[f32; 3]; 3]) -> Triangle {
    let [v0, v1, v2] = corners;
    Triangle { v0, v1, v2, ..Triangle::default() }
}

/// Returns small triangles in a cube of the given size, from a fixed seed.
fn soup(count: u32, size: f32) -> Vec<Triangle> {
    let mut state = 1u32;
    let mut draw = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / 16_777_216.0
    };
    let mut near = |center: [f32; 3]| center.map(|x| x + size * 0.05 * draw());
    let mut other = 7u32;
    let mut center = || {
        [0; 3].map(|_| {
            other = other.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            size * ((other >> 8) as f32 / 16_777_216.0)
        })
    };
    (0..count)
        .map(|_| {
            let at = center();
            triangle([near(at), near(at), near(at)])
        })
        .collect()
}

/// Walks the tree and checks that every triangle is in one lane, with its own corners, below boxes
/// that contain its padded box.
fn check(bvh: &Bvh, triangles: &[Triangle]) {
    let mut seen = vec![0u32; triangles.len()];
    let mut visited = 0;
    let everything = Bounds { lower: [f32::NEG_INFINITY; 4], upper: [f32::INFINITY; 4] };
    let mut stack = vec![(0u32, everything, 1u32)];
    if bvh.nodes.is_empty() {
        stack.clear();
    }
    while let Some((index, parent, depth)) = stack.pop() {
        assert!(depth <= BVH_DEPTH_MAX, "depth {depth}");
        visited += 1;
        let node = &bvh.nodes[index as usize];
        for slot in 0..8 {
            let child = node.child[slot];
            if child == CHILD_EMPTY {
                assert!(
                    node.bounds[0][0][slot] > node.bounds[1][0][slot],
                    "an empty child has an empty box"
                );
                continue;
            }
            let mut bounds = Bounds::EMPTY;
            for axis in 0..3 {
                bounds.lower[axis] = node.bounds[0][axis][slot];
                bounds.upper[axis] = node.bounds[1][axis][slot];
            }
            assert_contains(&parent, &bounds);
            if child & CHILD_LEAF_FLAG == 0 {
                stack.push((child, bounds, depth + 1));
            } else {
                check_block(bvh, child & !CHILD_LEAF_FLAG, &bounds, triangles, &mut seen);
            }
        }
    }
    assert_eq!(visited, bvh.nodes.len(), "every node is reached once");
    assert!(seen.iter().all(|&count| count == 1), "every triangle is in one leaf");
}

fn check_block(bvh: &Bvh, index: u32, bounds: &Bounds, triangles: &[Triangle], seen: &mut [u32]) {
    let block = &bvh.blocks[index as usize];
    for lane in 0..4 {
        if block.triangle[lane] == NONE {
            assert!(block.corner.as_flattened().iter().all(|lanes| lanes[lane].is_nan()));
            continue;
        }
        let id = (block.triangle[lane] & !tessera_layout::BLOCK_ALPHA_FLAG) as usize;
        let triangle = &triangles[id];
        seen[id] += 1;
        let alpha = block.triangle[lane] & tessera_layout::BLOCK_ALPHA_FLAG != 0;
        assert_eq!(alpha, triangle.flags & triangle_flags::ALPHA != 0);
        for (corner, position) in [triangle.v0, triangle.v1, triangle.v2].into_iter().enumerate() {
            let stored = block.corner[corner].map(|lanes| lanes[lane].to_bits());
            assert_eq!(stored, position.map(f32::to_bits));
        }
        assert_contains(bounds, &padded_box(triangle, bvh.padding));
    }
}

#[track_caller]
fn assert_contains(outer: &Bounds, inner: &Bounds) {
    for axis in 0..3 {
        assert!(
            outer.lower[axis] <= inner.lower[axis] && inner.upper[axis] <= outer.upper[axis],
            "{outer:?} does not contain {inner:?}"
        );
    }
}

/// Returns the content of a hierarchy as bits, because empty lanes are NaN.
fn bits(bvh: &Bvh) -> Vec<u32> {
    let nodes = bvh.nodes.iter().flat_map(|n| {
        n.bounds.as_flattened().as_flattened().iter().map(|x| x.to_bits()).chain(n.child)
    });
    let blocks = bvh.blocks.iter().flat_map(|b| {
        b.corner.as_flattened().as_flattened().iter().map(|x| x.to_bits()).chain(b.triangle)
    });
    nodes.chain(blocks).collect()
}

#[test]
fn every_builder_makes_a_valid_tree_of_any_size() {
    for count in [0, 1, 2, 3, 4, 5, 8, 9, 33, 1000, 20_000] {
        let mut triangles = soup(count, 10.0);
        for triangle in triangles.iter_mut().step_by(3) {
            triangle.flags = triangle_flags::ALPHA;
        }
        for kind in KINDS {
            let bvh = build(&triangles, kind, 5.0);
            check(&bvh, &triangles);
            assert_eq!(
                bits(&bvh),
                bits(&build(&triangles, kind, 5.0)),
                "a tree depends on nothing else"
            );
        }
    }
}

#[test]
fn a_binary_tree_has_no_more_nodes_than_its_leaves_need() {
    for count in [1, 5, 3000, 20_000] {
        let triangles = soup(count, 10.0);
        let padded = triangles.iter().map(|triangle| padded_box(triangle, 0.0));
        let mut primitives: Vec<PrimitiveRef> =
            padded.zip(0..).map(|(bounds, id)| PrimitiveRef::new(bounds, id)).collect();
        let tree = binary::build(&mut primitives, Shape::TRIANGLES);
        let leaves = tree.root().node().leaf_count as usize;
        assert_eq!(tree.node_count(), 2 * leaves - 1);
        assert!(leaves <= count.div_ceil(2).max(1) as usize, "{leaves} leaves of {count}");
    }
}

#[test]
fn an_empty_scene_has_no_nodes() {
    let bvh = build(&[], BuilderKind::SurfaceArea, 3.0);
    assert!(bvh.nodes.is_empty() && bvh.blocks.is_empty());
    assert_eq!(bvh.padding, 3.0 * PADDING_SCALE);
}

#[test]
fn coincident_triangles_end_in_a_balanced_tree() {
    let one = triangle([[1.0, 2.0, 3.0]; 3]);
    for kind in KINDS {
        check(&build(&[one; 3000], kind, 0.0), &[one; 3000]);
    }
}

#[test]
fn sizes_at_both_ends_of_the_range_build() {
    for size in [1e-30, 1e-12, 1e12, 1e17, 1e37] {
        let triangles = soup(500, size);
        for kind in KINDS {
            check(&build(&triangles, kind, 0.0), &triangles);
        }
    }
}

/// Each triangle is twice as far and as large as the one before, so the heuristic separates them
/// one by one.
#[test]
fn tree_depth_stays_within_the_traversal_stack() {
    let mut triangles = Vec::new();
    for step in 0..120 {
        let size = 2f32.powi(step);
        for copy in 0..40 {
            let y = size * (1.0 + copy as f32 * 1e-3);
            triangles.push(triangle([
                [size, y, size],
                [size * 1.1, y, size],
                [size, y, size * 1.1],
            ]));
        }
    }
    for kind in KINDS {
        check(&build(&triangles, kind, 0.0), &triangles);
    }
}

#[test]
fn the_surface_area_heuristic_makes_the_cheaper_tree() {
    let triangles = soup(20_000, 10.0);
    let cost = |kind| {
        let bvh = build(&triangles, kind, 0.0);
        let area = |node: &BvhNode8Bounds, slot: usize| {
            let extent = |axis: usize| node[1][axis][slot] - node[0][axis][slot];
            extent(0) * extent(1) + extent(1) * extent(2) + extent(2) * extent(0)
        };
        let children = bvh.nodes.iter().flat_map(|node| (0..8).map(move |slot| (node, slot)));
        children
            .filter(|(n, slot)| n.child[*slot] != CHILD_EMPTY)
            .map(|(n, slot)| area(&n.bounds, slot))
            .sum::<f32>()
    };
    let (best, median, random) =
        (cost(BuilderKind::SurfaceArea), cost(BuilderKind::Median), cost(BuilderKind::Random(1)));
    assert!(best < median && median < random, "{best} {median} {random}");
}

type BvhNode8Bounds = [[[f32; 8]; 3]; 2];

/// There are so many triangles that all threads measure, bin and fill.
#[test]
fn a_tree_does_not_depend_on_the_number_of_threads() {
    let triangles = soup(split::CHUNKED_MIN as u32 + 4321, 10.0);
    let [one, four] = [1, 4].map(|threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
        pool.install(|| build(&triangles, BuilderKind::SurfaceArea, 1.0))
    });
    check(&one, &triangles);
    assert!(bits(&one) == bits(&four), "another tree from four threads");
}

/// There are walls, and one sliver whose box is larger than theirs but almost empty.
#[test]
fn shadow_rays_visit_likely_blockers_first() {
    let mut triangles = vec![triangle([[0.0; 3], [40.0, 40.0, 40.0], [40.0, 40.0, 40.01]])];
    for wall in 0..6 {
        let x = 100.0 + 20.0 * wall as f32;
        let corner = |y: f32, z: f32| [x, y, z];
        triangles.extend(
            [[(0.0, 0.0), (9.0, 0.0), (9.0, 9.0)], [(0.0, 0.0), (9.0, 9.0), (0.0, 9.0)]]
                .map(|corners| triangle(corners.map(|(y, z)| corner(y, z)))),
        );
    }
    let bvh = build(&triangles, BuilderKind::SurfaceArea, 1.0);
    let root = &bvh.nodes[0];
    let children = root.child.iter().take_while(|&&child| child != CHILD_EMPTY).count();
    assert!(children > 2, "{:?}", root.child);
    let half_area = |slot: usize| {
        let [x, y, z] =
            [0, 1, 2].map(|axis| root.bounds[1][axis][slot] - root.bounds[0][axis][slot]);
        x * y + y * z + z * x
    };
    let sliver =
        (0..children).find(|slot| root.bounds[1][1][*slot] > 39.0).expect("the sliver's box");
    assert!(
        (1..children).all(|slot| half_area(0) > half_area(slot)),
        "the largest box is the sliver's"
    );
    assert_eq!(sliver, 0, "what is hardly ever hit is tried last");
}

/// Builds after `last` for a frame of `samples` samples.
fn built_after(last: &LastTree, triangles: &[Triangle], samples: u64) -> Bvh {
    let rule = (BuilderKind::SurfaceArea, 1.0);
    build_after((last, samples), triangles, Placed::default(), rule)
}

/// Bends triangles a little, so that a tree over them still serves.
fn bent(triangles: &[Triangle]) -> Vec<Triangle> {
    let bend = |[x, y, z]: [f32; 3]| [x + 0.04 * y * y, y * 1.02, z - 0.1 * x];
    let bent = triangles.iter().map(|it| Triangle {
        v0: bend(it.v0),
        v1: bend(it.v1),
        v2: bend(it.v2),
        ..*it
    });
    bent.collect()
}

/// Returns the children of all nodes, and the triangles of all blocks.
fn topology(bvh: &Bvh) -> (Vec<[u32; 8]>, Vec<[u32; 4]>) {
    let children = bvh.nodes.iter().map(|node| node.child).collect();
    (children, bvh.blocks.iter().map(|block| block.triangle).collect())
}

#[test]
fn refitting_to_the_same_places_gives_the_built_tree() {
    for count in [1, 4, 5, 40, 3000, 50_000] {
        let mut triangles = soup(count, 10.0);
        for triangle in triangles.iter_mut().step_by(3) {
            triangle.flags = triangle_flags::ALPHA;
        }
        let last = LastTree::default();
        let built = built_after(&last, &triangles, 0);
        assert!(bits(&built) == bits(&build(&triangles, BuilderKind::SurfaceArea, 1.0)));
        assert!(bits(&built_after(&last, &triangles, 0)) == bits(&built), "{count}");
    }
}

#[test]
fn a_refitted_tree_holds_triangles_where_they_are_now() {
    let triangles = soup(50_000, 10.0);
    let moved = bent(&triangles);
    let [one, four] = [1, 4].map(|threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
        pool.install(|| {
            let last = LastTree::default();
            let first = built_after(&last, &triangles, 0);
            let refitted = built_after(&last, &moved, 0);
            assert!(topology(&refitted) == topology(&first), "it was built again");
            refitted
        })
    });
    check(&one, &moved);
    assert!(bits(&one) == bits(&four), "another tree from four threads");
    let built = build(&moved, BuilderKind::SurfaceArea, 1.0);
    assert!(topology(&one) != topology(&built), "both have one topology, which shows nothing");
}

/// Another order of triangles makes boxes large; another number makes another tree; and a frame of
/// many samples bears no growth.
#[test]
fn a_tree_is_built_again_where_a_refitted_one_is_slow() {
    let triangles = soup(20_000, 10.0);
    let moved = bent(&triangles);
    let mut shuffled = moved.clone();
    shuffled.reverse();
    let mut far = moved.clone();
    far[77] = triangle([[1e6; 3], [1e6 + 1.0, 1e6, 1e6], [1e6, 1e6 + 1.0, 1e6]]);
    // Smaller boxes than before, but not for the room that they are in.
    let scale = |corner: [f32; 3]| corner.map(|at| 0.3 * at);
    let gathered: Vec<Triangle> = shuffled
        .iter()
        .map(|it| Triangle { v0: scale(it.v0), v1: scale(it.v1), v2: scale(it.v2), ..*it })
        .collect();
    let cases = [
        ("shuffled", &shuffled[..], 0),
        ("one far away", &far, 0),
        ("gathered", &gathered, 0),
        ("fewer", &moved[1..], 0),
        ("none", &[], 0),
        ("many samples", &moved, 20_000_000),
    ];
    for (name, triangles_now, samples) in cases {
        let last = LastTree::default();
        built_after(&last, &triangles, 0);
        let found = built_after(&last, triangles_now, samples);
        let built = build(triangles_now, BuilderKind::SurfaceArea, 1.0);
        assert!(bits(&found) == bits(&built), "{name}");
    }
}
