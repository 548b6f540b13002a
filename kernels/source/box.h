// Slab tests: where a ray is inside a box. Nodes of every kind and the boxes of single triangles go through the same
// formula, because canonical hits (Rule C, see traverse.h) rest on it.
#pragma once

#include "layout.h"
#include "ray.h"

// The formula's choices on equal and NaN operands are fixed here, and are those of x86's minps and maxps.
TESSERA_FN float lesser_(float a, float b) { return a < b ? a : b; }
TESSERA_FN float greater_(float a, float b) { return a > b ? a : b; }

// Directions closer to zero count as this, with their sign, so that no reciprocal is infinite and no 0 * infinity
// arises: coordinates may be up to 1e18 before a slab distance overflows.
const float DIRECTION_MIN = 1e-20f;
// Distances that are not finite are no hits.
const float DISTANCE_MAX = 3.0e38f;

// A ray as traversal wants it: axes by index, reciprocals, and the shear that lays the ray along its longest axis
// (see triangle.h).
struct TraversalRay {
    float origin[3];
    float reciprocal[3];
    u32 near_side[3];  // the side of a box that the ray meets first: 0 lower, 1 upper
    u32 axis[3];       // the longest axis last
    float shear[2];
    float scale;
};

TESSERA_FN float direction_component(float d) {
    if (d >= DIRECTION_MIN || d <= -DIRECTION_MIN) return d;
    return bits_from_float(d) >> 31 ? -DIRECTION_MIN : DIRECTION_MIN;
}

// One of three values by its index.
TESSERA_FN float along(const float values[3], u32 axis) { return axis == 0 ? values[0] : axis == 1 ? values[1] : values[2]; }

TESSERA_FN TraversalRay prepare_ray(const Ray& ray) {
    TraversalRay result;
    const float direction[3] = {direction_component(ray.direction.x), direction_component(ray.direction.y),
                                direction_component(ray.direction.z)};
    result.origin[0] = ray.origin.x;
    result.origin[1] = ray.origin.y;
    result.origin[2] = ray.origin.z;
    float length[3];
    for (u32 k = 0; k < 3; k++) {
        result.reciprocal[k] = 1.0f / direction[k];
        result.near_side[k] = direction[k] < 0.0f ? 1u : 0u;
        length[k] = direction[k] < 0.0f ? -direction[k] : direction[k];
    }
    const u32 longest = length[0] >= length[1] ? (length[0] >= length[2] ? 0u : 2u) : (length[1] >= length[2] ? 1u : 2u);
    result.axis[0] = longest == 2 ? 0u : longest + 1u;
    result.axis[1] = longest == 0 ? 2u : longest - 1u;
    result.axis[2] = longest;
    result.scale = along(result.reciprocal, longest);
    result.shear[0] = along(direction, result.axis[0]) * result.scale;
    result.shear[1] = along(direction, result.axis[1]) * result.scale;
    return result;
}

// Where the ray enters and leaves a box; it misses if exit < entry.
struct BoxInterval {
    float entry;
    float exit;
};

TESSERA_FN BoxInterval box_interval(const TraversalRay& ray, const float bounds[2][3]) {
    float near_plane[3], far_plane[3];
    for (u32 k = 0; k < 3; k++) {
        // Selects, so that a device keeps the bounds in registers.
        const float near_bound = ray.near_side[k] ? bounds[1][k] : bounds[0][k];
        const float far_bound = ray.near_side[k] ? bounds[0][k] : bounds[1][k];
        near_plane[k] = (near_bound - ray.origin[k]) * ray.reciprocal[k];
        far_plane[k] = (far_bound - ray.origin[k]) * ray.reciprocal[k];
    }
    BoxInterval result;
    result.entry = greater_(greater_(near_plane[0], near_plane[1]), greater_(near_plane[2], 0.0f));
    result.exit = lesser_(lesser_(far_plane[0], far_plane[1]), far_plane[2]);
    return result;
}

// The same for the eight children of a node: their entries, and a bit for each that the ray meets at t_max or before.
TESSERA_FN u32 node_children(const TraversalRay& ray, const BvhNode8& node, float t_max, float* entry) {
    const float* near_x = node.bounds[ray.near_side[0]][0];
    const float* near_y = node.bounds[ray.near_side[1]][1];
    const float* near_z = node.bounds[ray.near_side[2]][2];
    const float* far_x = node.bounds[ray.near_side[0] ^ 1u][0];
    const float* far_y = node.bounds[ray.near_side[1] ^ 1u][1];
    const float* far_z = node.bounds[ray.near_side[2] ^ 1u][2];
    const float ox = ray.origin[0], oy = ray.origin[1], oz = ray.origin[2];
    const float rx = ray.reciprocal[0], ry = ray.reciprocal[1], rz = ray.reciprocal[2];
    alignas(32) float exit[8];
    for (u32 k = 0; k < 8; k++) {
        const float nx = (near_x[k] - ox) * rx, ny = (near_y[k] - oy) * ry, nz = (near_z[k] - oz) * rz;
        const float fx = (far_x[k] - ox) * rx, fy = (far_y[k] - oy) * ry, fz = (far_z[k] - oz) * rz;
        entry[k] = greater_(greater_(nx, ny), greater_(nz, 0.0f));
        exit[k] = lesser_(lesser_(fx, fy), lesser_(fz, t_max));
    }
    return lanes_not_above8(entry, exit);
}
