// The device's hierarchy: the host's wide nodes in 80 bytes, and the same two queries over them. An
// instance is a node of its own, from which the walk goes on at the root of the instance's mesh
// (placed_mesh.h).
//
// Why it gives the same hits. traverse.h asks one thing of a hierarchy: that a child's box, as
// floats compare, contains the padded box of every triangle below it, and that it is tested by the
// formula of box_interval. Here a plane is
//
//     plane(q) = fma(2^15 + q, step, base)        0 <= q <= 255, step a power of two
//
// one float, rounded once, and the same on every machine. kernels/src/cuda/compress.rs chooses q so
// that plane(q) is not above a lower bound and not below an upper one, by computing this very
// expression; so the box of the planes contains the wide node's box, which contains the padded
// boxes. Then (plane - origin) * reciprocal, with the near and far planes chosen by the direction's
// sign alone, is the formula of box_interval, and its argument holds word for word: culling is by
// `entry <= exit` with exit cut at the best t, so that no node above a hit that may still win is
// lost. The order of children cannot matter; it is chosen for speed.
//
// (2^15 + q) needs no conversion of integers to floats, which is slow on devices: it is q put into
// the bits of 2^15.
#pragma once

#include "bvh/traverse.h"
#include "geometry/placed_mesh.h"

// Children of one node that are still to visit.
struct NodeGroup {
    u32 first_node;
    // bits 0 to 7: still to visit, in the order of visits; bits 8 to 15: which slots are nodes
    u32 children;
};

// 2^15 + byte `slot` of eight, as a float.
TESSERA_FN float grid_number(const u32 bytes[2], u32 slot) {
    const u32 word = slot < 4 ? bytes[0] : bytes[1];
    return float_from_bits(permuted_bytes(word, 0x47000000u, 0x7504u | (slot & 3) << 4));
}

TESSERA_FN float grid_step(const CompressedNode& node, u32 axis) {
    return float_from_bits((node.exponents >> (8 * axis) & 0xffu) << 23);
}

// A child's planes on one axis: [0] lower, [1] upper.
TESSERA_FN float grid_plane(const CompressedNode& node, u32 side, u32 axis, u32 slot) {
    return fma_(grid_number(side ? node.upper[axis] : node.lower[axis], slot),
                grid_step(node, axis), node.base[axis]);
}

// Which children the ray meets at t_max or before: bit k is slot k. Empty slots may be among them;
// they have no triangles.
TESSERA_FN u32 compressed_children(const TraversalRay& ray, const CompressedNode& node,
                                   float t_max) {
    u32 near_bytes[3][2], far_bytes[3][2];
    float step[3];
    for (u32 axis = 0; axis < 3; axis++) {
        step[axis] = grid_step(node, axis);
        for (u32 half = 0; half < 2; half++) {
            near_bytes[axis][half] =
                ray.near_side[axis] ? node.upper[axis][half] : node.lower[axis][half];
            far_bytes[axis][half] =
                ray.near_side[axis] ? node.lower[axis][half] : node.upper[axis][half];
        }
    }
    u32 mask = 0;
    TESSERA_UNROLL
    for (u32 slot = 0; slot < 8; slot++) {
        float enters[3], leaves[3];
        TESSERA_UNROLL
        for (u32 axis = 0; axis < 3; axis++) {
            const float near_plane =
                fma_(grid_number(near_bytes[axis], slot), step[axis], node.base[axis]);
            const float far_plane =
                fma_(grid_number(far_bytes[axis], slot), step[axis], node.base[axis]);
            enters[axis] = (near_plane - ray.origin[axis]) * ray.reciprocal[axis];
            leaves[axis] = (far_plane - ray.origin[axis]) * ray.reciprocal[axis];
        }
        mask |= (meets_slabs(enters, leaves, t_max) ? 1u : 0u) << slot;
    }
    return mask;
}

// The same of a node of a mesh, where an instance shows it. Child by child: eight maps at once
// would need more registers than there are.
TESSERA_FN u32 placed_children(const TraversalRay& ray, const Instance& instance, float padding,
                               const CompressedNode& node, float t_max) {
    u32 mask = 0;
    TESSERA_ROLLED
    for (u32 slot = 0; slot < 8; slot++) {
        float lower[3], upper[3];
        TESSERA_UNROLL
        for (u32 axis = 0; axis < 3; axis++) {
            lower[axis] = grid_plane(node, 0, axis, slot);
            upper[axis] = grid_plane(node, 1, axis, slot);
        }
        mask |= (meets_placed_box(ray, instance, padding, lower, upper, t_max) ? 1u : 0u) << slot;
    }
    return mask;
}

// Slots to the order in which a ray visits them, and back: a child's slot says on which side of the
// node it lies (bit k: the upper side of axis k), so that flipping the bits of negative directions
// puts near children first.
TESSERA_FN u32 permuted(u32 mask, u32 octant) {
    if (octant & 1u) mask = (mask & 0x55u) << 1 | (mask >> 1 & 0x55u);
    if (octant & 2u) mask = (mask & 0x33u) << 2 | (mask >> 2 & 0x33u);
    if (octant & 4u) mask = (mask & 0x0fu) << 4 | (mask >> 4 & 0x0fu);
    return mask;
}

TESSERA_FN Corner leaf_corner(const TraversalRay& ray, const float* v) {
    const float xyz[3] = {v[0], v[1], v[2]};
    Corner corner;
    corner.a = along(xyz, ray.axis[0]);
    corner.b = along(xyz, ray.axis[1]);
    corner.c = along(xyz, ray.axis[2]);
    return corner;
}

// Tests one triangle.
template <class Query>
TESSERA_FN void visit_triangle(const SceneView& scene, const TraversalRay& ray,
                               const LeafTriangle& triangle, Query& query) {
    const TriangleTest test =
        test_triangle(shear_of(ray), leaf_corner(ray, triangle.v0), leaf_corner(ray, triangle.v1),
                      leaf_corner(ray, triangle.v2));
    if (!passes(test)) return;
    Hit hit;
    hit.triangle = triangle.triangle & ~BLOCK_ALPHA_FLAG;
    if (!finish_triangle(ray, test, vec3_from(triangle.v0), vec3_from(triangle.v1),
                         vec3_from(triangle.v2), scene.bvh_padding, reach_of(query), &hit))
        return;
    take_hit(scene, hit, (triangle.triangle & BLOCK_ALPHA_FLAG) != 0, query);
}

// The triangles of the leaves in `slots`: bit k is the one at first_triangle + k. There are at most
// four of each of eight.
TESSERA_FN u32 leaf_triangles(const CompressedNode& node, u32 slots) {
    u32 triangles = 0;
    while (slots) {
        const u32 slot = count_trailing_zeros(slots);
        slots &= slots - 1;
        const u32 leaf = (slot < 4 ? node.leaf[0] : node.leaf[1]) >> (8 * (slot & 3)) & 0xffu;
        triangles |= ((1u << (leaf >> 5)) - 1u) << (leaf & 31u);
    }
    return triangles;
}

// Where a walk is: in the world, or in the mesh of an instance, from which it comes back when what
// it left there is visited.
struct WalkPlace {
    const Instance* instance;  // null in the world
    u32 octant;                // sides that the ray meets first there
    u32 bottom;                // groups on the stack that are the world's
};

// A walk under way. What is left of a node's children waits as one group, so that the stack has an
// entry a level.
struct Walk {
    TraversalRay ray;
    Vec3 direction;
    WalkPlace place;
    u32 size;   // groups on the stack
    u32 index;  // of the node that is visited next, or NONE
    // triangles of the node before, which are tested first: bit k is the one at first_triangle + k
    u32 triangles;
    u32 first_triangle;
    const Instance* instance;  // of these triangles; null in the world
};

TESSERA_FN WalkPlace place_in_world(const TraversalRay& ray) {
    WalkPlace place;
    place.instance = 0;
    place.octant = ray.near_side[0] | ray.near_side[1] << 1 | ray.near_side[2] << 2;
    place.bottom = 0;
    return place;
}

TESSERA_FN void begin_walk(const SceneView& scene, const Ray& ray, Walk& walk) {
    walk.ray = prepare_ray(ray);
    walk.direction = ray.direction;
    walk.place = place_in_world(walk.ray);
    walk.size = 0;
    walk.index = scene.bvh_node_count == 0 ? NONE : 0;
    walk.triangles = 0;
}

TESSERA_FN bool has_ended(const Walk& walk) { return walk.index == NONE && walk.triangles == 0; }

// Visits the next node. The triangles of the one before were tested.
template <class Query>
TESSERA_FN void visit_node(const SceneView& scene, const CompressedHierarchy& hierarchy, Walk& walk,
                           NodeGroup* stack, const Query& query) {
    const CompressedNode node = hierarchy.nodes[walk.index];
    if (HAS_INSTANCES && node.exponents == INSTANCE_EXPONENTS) {
        const float direction[3] = {walk.direction.x, walk.direction.y, walk.direction.z};
        walk.place.instance = scene.instances + node.first_triangle;
        walk.place.octant = octant_in_mesh(*walk.place.instance, direction);
        walk.place.bottom = walk.size;
        walk.index = node.first_node;
        return;
    }
    const u32 mask = HAS_INSTANCES && walk.place.instance
                         ? placed_children(walk.ray, *walk.place.instance, scene.bvh_padding, node,
                                           reach_of(query))
                         : compressed_children(walk.ray, node, reach_of(query));
    const u32 nodes = node.exponents >> 24;
    walk.triangles = leaf_triangles(node, mask & ~nodes);
    walk.first_triangle = node.first_triangle;
    walk.instance = walk.place.instance;
    NodeGroup group;
    group.first_node = node.first_node;
    group.children = permuted(mask & nodes, walk.place.octant) | nodes << 8;
    if ((group.children & 0xffu) == 0) {
        if (HAS_INSTANCES && walk.size == walk.place.bottom)
            walk.place = place_in_world(walk.ray);
        walk.index = NONE;
        if (walk.size == 0) return;
        group = stack[--walk.size];
    }
    const u32 slot = count_trailing_zeros(group.children) ^ walk.place.octant;
    group.children &= group.children - 1;
    walk.index = group.first_node + count_ones(group.children >> 8 & ((1u << slot) - 1u));
    if (group.children & 0xffu) stack[walk.size++] = group;
}

// Tests the next triangle. There is one.
template <class Query>
TESSERA_FN void test_next_triangle(const SceneView& scene, const CompressedHierarchy& hierarchy,
                                   Walk& walk, Query& query) {
    const u32 bit = count_trailing_zeros(walk.triangles);
    walk.triangles &= walk.triangles - 1;
    LeafTriangle triangle = hierarchy.triangles[walk.first_triangle + bit];
    if (HAS_INSTANCES && walk.instance) triangle = placed_triangle(*walk.instance, triangle);
    visit_triangle(scene, walk.ray, triangle, query);
}

// The walk of all queries, as in traverse.h.
template <class Query>
TESSERA_FN void traverse(const SceneView& scene, const CompressedHierarchy& hierarchy,
                         const Ray& ray, Query& query) {
    Walk walk;
    begin_walk(scene, ray, walk);
    NodeGroup stack[BVH_DEPTH_MAX];
    while (walk.index != NONE) {
        visit_node(scene, hierarchy, walk, stack, query);
        while (walk.triangles) test_next_triangle(scene, hierarchy, walk, query);
        if (is_answered(query)) return;
    }
}
