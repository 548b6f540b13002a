// The host's hierarchy and a walk through it: nodes of eight children and leaves of four triangles,
// in the scene's own view, a node's boxes or a leaf's triangles at once. Why the order of visits is
// free stands in traverse.h.
//
// What costs time here is not arithmetic but branches that nobody can foresee and answers that are
// waited for. So a ray is prepared without a branch, the next child is known before the others are
// in order, and a leaf's triangles are divided only where one of them is likely hit.
#pragma once

#include "bvh/traverse.h"

struct WideHierarchy {};

// An inner node leaves at most seven of its children behind on the stack, and no way down has more
// inner nodes than BVH_DEPTH_MAX, those of an instance's mesh included; eight more may be written
// and never read.
const u32 STACK_ENTRIES = 7 * BVH_DEPTH_MAX + 1 + 8;

// Subtrees still to visit, and where the ray enters them.
struct Stack {
    float entry[STACK_ENTRIES];
    u32 child[STACK_ENTRIES];
    u32 size;
};

// What prepare_ray makes of a ray, as the walk wants it. The fourth lanes are idle.
struct WideRay {
    Float4 origin;
    Float4 reciprocal;
    u32 near_bounds[3];  // of a node and axis, in floats from the node's first
    u32 far_bounds[3];
    u32 axis[3];  // the longest axis last
    Shear shear;
    float scale;
};

// The axes, the longest last, by whether x >= y (bit 0), x >= z (bit 1) and y >= z (bit 2).
TESSERA_TABLE Int4 AXES_BY_LENGTH[8] = {{0, 1, 2, 3}, {0, 1, 2, 3}, {0, 1, 2, 3}, {1, 2, 0, 3},
                                        {2, 0, 1, 3}, {0, 1, 2, 3}, {2, 0, 1, 3}, {1, 2, 0, 3}};

// direction_component of each.
TESSERA_SMALL_FN Float4 direction_components(Float4 direction) {
    const Int4 sign = (Int4)direction & (i32)0x80000000u, magnitude = (Int4)direction & 0x7fffffff;
    const Int4 least = (i32)bits_from_float(DIRECTION_MIN) - Int4{};
    const Int4 ordinary = (magnitude >= least) & (magnitude <= 0x7f800000);
    return (Float4)(sign | (ordinary & magnitude) | (~ordinary & least));
}

TESSERA_SMALL_FN WideRay prepare_wide_ray(const Ray& ray) {
    WideRay result;
    result.origin = Float4{ray.origin.x, ray.origin.y, ray.origin.z, 0.0f};
    const Float4 direction =
        direction_components(Float4{ray.direction.x, ray.direction.y, ray.direction.z, 1.0f});
    result.reciprocal = 1.0f / direction;
    // Of numbers without a sign the bits are in the same order.
    const Int4 length = (Int4)direction & 0x7fffffff;
    const Int4 first = {length[0], length[0], length[1], 0},
               second = {length[1], length[2], length[2], 1};
    const Int4 order = AXES_BY_LENGTH[bits_of_lanes(first >= second)];
    const Float4 origin = permuted4(result.origin, order);
    result.scale = permuted4(result.reciprocal, order)[2];
    const Float4 shear = permuted4(direction, order) * result.scale;
    result.shear = {{origin[0], origin[1], origin[2]}, shear[0], shear[1]};
    const u32 negative = bits_of_lanes((Int4)direction);
    for (u32 axis = 0; axis < 3; axis++) {
        const u32 lower = 8 * axis, upper = 24 + 8 * axis, upwards = negative >> axis & 1u;
        result.near_bounds[axis] = lower + 24 * upwards;
        result.far_bounds[axis] = upper - 24 * upwards;
        result.axis[axis] = (u32)order[axis];
    }
    return result;
}

// Where the ray enters the children of a node and where it has left them or comes to t_max: those
// whose entry is not above their exit are met.
struct alignas(32) NodeTest {
    float entry[8];
    float exit[8];
};

TESSERA_SMALL_FN NodeTest test_node(const WideRay& ray, const BvhNode8& node, float t_max) {
    const float* bounds = &node.bounds[0][0][0];
    const float* near_x = bounds + ray.near_bounds[0];
    const float* near_y = bounds + ray.near_bounds[1];
    const float* near_z = bounds + ray.near_bounds[2];
    const float* far_x = bounds + ray.far_bounds[0];
    const float* far_y = bounds + ray.far_bounds[1];
    const float* far_z = bounds + ray.far_bounds[2];
    const float ox = ray.origin[0], oy = ray.origin[1], oz = ray.origin[2];
    const float rx = ray.reciprocal[0], ry = ray.reciprocal[1], rz = ray.reciprocal[2];
    NodeTest test;
    for (u32 k = 0; k < 8; k++) {
        const float near_plane[3] = {(near_x[k] - ox) * rx, (near_y[k] - oy) * ry,
                                     (near_z[k] - oz) * rz};
        const float far_plane[3] = {(far_x[k] - ox) * rx, (far_y[k] - oy) * ry,
                                    (far_z[k] - oz) * rz};
        const BoxInterval interval = interval_between(near_plane, far_plane);
        test.entry[k] = interval.entry;
        test.exit[k] = lesser_(interval.exit, t_max);
    }
    return test;
}

// Takes the nearest of the children in `mask`, which is not 0, and leaves the others on the stack,
// the nearer the higher.
TESSERA_SMALL_FN u32 next_child(const BvhNode8& node, const NodeTest& test, u32 mask, Stack& stack,
                                const ClosestQuery&) {
    if ((mask & (mask - 1)) == 0) return node.child[count_trailing_zeros(mask)];
    put_descending8(test.entry, test.exit, node.child, stack.entry + stack.size,
                    stack.child + stack.size);
    stack.size += count_ones(mask) - 1;
    return node.child[lane_of_least8(test.entry, test.exit)];
}

// Takes the last of the children in `mask`, which is not 0, and leaves the others on the stack. A
// host's builder puts last what is the likeliest to hold something in the way for what it costs to
// look.
template <class AnyHitQuery>
TESSERA_SMALL_FN u32 next_child(const BvhNode8& node, const NodeTest&, u32 mask, Stack& stack,
                                const AnyHitQuery&) {
    u32 slot = count_trailing_zeros(mask);
    while (mask &= mask - 1) {
        stack.child[stack.size++] = node.child[slot];
        slot = count_trailing_zeros(mask);
    }
    return node.child[slot];
}

// Whether what was left on the stack last begins beyond the query's reach.
TESSERA_SMALL_FN bool is_beyond(const Stack& stack, const ClosestQuery& query) {
    return stack.entry[stack.size] > query.best.t;
}
template <class AnyHitQuery>
TESSERA_SMALL_FN bool is_beyond(const Stack&, const AnyHitQuery&) {
    return false;
}

TESSERA_SMALL_FN Float4 load4(const float* from) { return *(const Float4InMemory*)from; }

TESSERA_SMALL_FN CornerOf<Float4> leaf_corner(const WideRay& ray, const TriangleBlock& block,
                                              u32 corner) {
    return {load4(block.corner[corner][ray.axis[0]]), load4(block.corner[corner][ray.axis[1]]),
            load4(block.corner[corner][ray.axis[2]])};
}

// own_box_interval of each triangle. Rounding is monotone, so that the lesser of two distances is
// the near one's.
TESSERA_SMALL_FN BoxIntervalOf<Float4> own_box_intervals(const WideRay& ray,
                                                         const TriangleBlock& block,
                                                         float padding) {
    Float4 near_plane[3], far_plane[3];
    for (u32 axis = 0; axis < 3; axis++) {
        const Float4 p0 = load4(block.corner[0][axis]), p1 = load4(block.corner[1][axis]),
                     p2 = load4(block.corner[2][axis]);
        const Float4 lower =
            ((lesser_(lesser_(p0, p1), p2) - padding) - ray.origin[axis]) * ray.reciprocal[axis];
        const Float4 upper =
            ((greater_(greater_(p0, p1), p2) + padding) - ray.origin[axis]) * ray.reciprocal[axis];
        near_plane[axis] = lesser_(lower, upper);
        far_plane[axis] = greater_(lower, upper);
    }
    return interval_between(near_plane, far_plane);
}

// Whether the distance may lie in (0, t_max], told without a division. The hit's own distance d / a
// * s is three roundings away from d * s / a at most: below 2^-21 of it, or, where d / a is too
// small for a float, 2^-150 of a scale that is below 2^67 (see DIRECTION_MIN). Both are allowed
// for, and so is what the products here may lose.
TESSERA_SMALL_FN Int4 may_be_within(Float4 area, Float4 scaled_distance, float t_max) {
    const Int4 sign = (Int4)area & (i32)0x80000000u;
    const Float4 distance = (Float4)((Int4)scaled_distance ^ sign),
                 size = (Float4)((Int4)area ^ sign);
    const float reach = t_max * (1.0f + 0x1p-19f) + 0x1p-80f;
    return (distance >= 0.0f) & (distance <= size * reach + 0x1p-100f);
}

// The triangles of a leaf that the ray hits at t_max or before, as bits, and where.
struct LeafHits {
    Float4 t, u, v;
    u32 mask;
};

// As finish_triangle of all that pass.
TESSERA_SMALL_FN LeafHits test_leaf(const WideRay& ray, const TriangleBlock& block, float padding,
                                    float t_max) {
    const TriangleTestOf<Float4> test =
        test_triangle(ray.shear, leaf_corner(ray, block, 0), leaf_corner(ray, block, 1),
                      leaf_corner(ray, block, 2));
    const Float4 area = (test.w0 + test.w1) + test.w2;
    const Int4 passed = (0.0f <= least_edge(test)) | (greatest_edge(test) <= 0.0f);
    const Int4 likely = passed & may_be_within(area, test.distance * ray.scale, t_max);
    LeafHits hits;
    hits.mask = bits_of_lanes(likely);
    if (hits.mask == 0) return hits;
    const Float4 inverse_area = 1.0f / area;
    const Float4 t = (test.distance * inverse_area) * ray.scale;
    const BoxIntervalOf<Float4> own = own_box_intervals(ray, block, padding);
    hits.t = greater_(t, own.entry);
    hits.u = test.w1 * inverse_area;
    hits.v = test.w2 * inverse_area;
    const Int4 is_hit =
        (area != 0.0f) & (t > 0.0f) & (t <= t_max) & (own.entry <= own.exit) & (hits.t <= t_max);
    hits.mask = bits_of_lanes(likely & is_hit);
    return hits;
}

// Tests a leaf, whose triangles' ids count from `first_id`.
template <class Query>
TESSERA_SMALL_FN void visit_leaf(const WideRay& ray, const SceneView& scene,
                                 const TriangleBlock& block, u32 first_id, Query& query) {
    const LeafHits hits = test_leaf(ray, block, scene.bvh_padding, reach_of(query));
    for (u32 mask = hits.mask; mask; mask &= mask - 1) {
        const u32 lane = count_trailing_zeros(mask);
        const u32 triangle = block.triangle[lane];
        const Hit hit = {hits.t[lane], first_id + (triangle & ~BLOCK_ALPHA_FLAG), hits.u[lane],
                         hits.v[lane]};
        if (hit.t <= reach_of(query))
            take_hit(scene, hit, (triangle & BLOCK_ALPHA_FLAG) != 0, query);
    }
}

// A space that a walk goes through: the world, one with instances, or a mesh as one of them shows
// it (wide_instances.h).
struct World {
    const SceneView& scene;
    const WideRay& ray;
};

TESSERA_SMALL_FN const BvhNode8& node_at(const World& world, u32 index) {
    return world.scene.bvh_nodes[index];
}
TESSERA_SMALL_FN NodeTest test_node(const World& world, const BvhNode8& node, float t_max) {
    return test_node(world.ray, node, t_max);
}

template <class Query>
TESSERA_SMALL_FN void visit(const World& world, u32 leaf, Stack&, Query& query) {
    visit_leaf(world.ray, world.scene, world.scene.triangle_blocks[leaf], 0, query);
}

// The walk of both queries, from a child on. One for any hit does not care which comes first.
template <class Space, class Query>
TESSERA_SMALL_FN void walk(const Space& space, u32 child, Stack& stack, Query& query) {
    const u32 bottom = stack.size;
    for (;;) {
        while (!(child & CHILD_LEAF_FLAG)) {
            const BvhNode8& node = node_at(space, child);
            const NodeTest test = test_node(space, node, reach_of(query));
            const u32 mask = lanes_not_above8(test.entry, test.exit);
            if (mask == 0) break;
            child = next_child(node, test, mask, stack, query);
        }
        if (child & CHILD_LEAF_FLAG) {
            visit(space, child & ~CHILD_LEAF_FLAG, stack, query);
            if (is_answered(query)) return;
        }
        do {
            if (stack.size == bottom) return;
            stack.size--;
        } while (is_beyond(stack, query));
        child = stack.child[stack.size];
    }
}
