// A mesh of the device's hierarchy as an instance shows it: what a ray meets of a node's children,
// and a leaf's triangle in the world. Owns no walk: that is compressed.h's, which comes here only
// in the kernels for scenes with instances.
//
// Why it finds the same hits as a walk through copies. A child's planes hold the box of its
// triangles in the mesh's own space (compressed.h). Brought into the world by the formula that
// brings corners there, the lower plane in the place of the upper wherever the map's element is
// negative, and padded, they hold every triangle's own padded box: exactly, by the argument of
// wide_instances.h, which asks nothing of where bounds come from.
#pragma once

#include "bvh/box.h"
#include "geometry/instance.h"

// A plane of the world that a child's box reaches on one axis: its lower side, or its upper one.
TESSERA_FN float placed_plane(const float* row, const float lower[3], const float upper[3],
                              bool is_upper) {
    float corner[3];
    TESSERA_UNROLL
    for (u32 of = 0; of < 3; of++)
        corner[of] = is_upper != (row[of] < 0.0f) ? upper[of] : lower[of];
    return placed_coordinate(row, corner[0], corner[1], corner[2], row[3]);
}

// Whether the ray meets a box of the mesh at t_max or before. Of a child that is not there the box
// is inside out, of which a map may make anything; it has no triangles.
TESSERA_FN bool meets_placed_box(const TraversalRay& ray, const Instance& instance, float padding,
                                 const float lower[3], const float upper[3], float t_max) {
    float enters[3], leaves[3];
    TESSERA_UNROLL
    for (u32 axis = 0; axis < 3; axis++) {
        const float* row = instance.world_from_mesh + 4 * axis;
        const bool near_is_upper = ray.near_side[axis] != 0;
        const float outwards = near_is_upper ? padding : -padding;
        const float near_plane = placed_plane(row, lower, upper, near_is_upper) + outwards;
        const float far_plane = placed_plane(row, lower, upper, !near_is_upper) - outwards;
        enters[axis] = (near_plane - ray.origin[axis]) * ray.reciprocal[axis];
        leaves[axis] = (far_plane - ray.origin[axis]) * ray.reciprocal[axis];
    }
    return meets_slabs(enters, leaves, t_max);
}

// Its id is the scene's; the flag stays, since ids of instances keep clear of it.
TESSERA_FN LeafTriangle placed_triangle(const Instance& instance, const LeafTriangle& triangle) {
    LeafTriangle placed = triangle;
    place_point(instance, triangle.v0, placed.v0);
    place_point(instance, triangle.v1, placed.v1);
    place_point(instance, triangle.v2, placed.v2);
    placed.triangle = instance.first_id + triangle.triangle;
    return placed;
}

// Which sides a ray meets first, one bit an axis of the mesh: right where the map turns and does
// not stretch, and of no weight elsewhere, since only the order of visits depends on it.
TESSERA_FN u32 octant_in_mesh(const Instance& instance, const float direction[3]) {
    u32 octant = 0;
    TESSERA_UNROLL
    for (u32 of = 0; of < 3; of++) {
        const float* column = instance.world_from_mesh + of;
        const float turned =
            (column[0] * direction[0] + column[4] * direction[1]) + column[8] * direction[2];
        octant |= (turned < 0.0f ? 1u : 0u) << of;
    }
    return octant;
}
