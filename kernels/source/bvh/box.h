// Slab tests: where a ray is inside a box. Nodes of every kind and the boxes of single triangles go
// through the same formula, because canonical hits (Rule C, see traverse.h) rest on it.
#pragma once

#include "layout.h"
#include "math/ray.h"

// The formula's choices on equal and NaN operands are fixed here, and are those of x86's minps and
// maxps.
TESSERA_FN float lesser_(float a, float b) { return a < b ? a : b; }
TESSERA_FN float greater_(float a, float b) { return a > b ? a : b; }

// Directions closer to zero count as this, with their sign, so that no reciprocal is infinite and
// no 0 * infinity arises: coordinates may be up to 1e18 before a slab distance overflows.
const float DIRECTION_MIN = 1e-20f;
// Distances that are not finite are no hits.
const float DISTANCE_MAX = 3.0e38f;

// A ray as traversal wants it: axes by index, reciprocals, and the shear that lays the ray along
// its longest axis (see triangle.h).
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
TESSERA_FN float along(const float values[3], u32 axis) {
    return axis == 0 ? values[0] : axis == 1 ? values[1] : values[2];
}

TESSERA_FN TraversalRay prepare_ray(const Ray& ray) {
    TraversalRay result;
    const float direction[3] = {direction_component(ray.direction.x),
                                direction_component(ray.direction.y),
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
    const u32 longest = length[0] >= length[1] ? (length[0] >= length[2] ? 0u : 2u)
                                               : (length[1] >= length[2] ? 1u : 2u);
    result.axis[0] = longest == 2 ? 0u : longest + 1u;
    result.axis[1] = longest == 0 ? 2u : longest - 1u;
    result.axis[2] = longest;
    result.scale = along(result.reciprocal, longest);
    result.shear[0] = along(direction, result.axis[0]) * result.scale;
    result.shear[1] = along(direction, result.axis[1]) * result.scale;
    return result;
}

// Where the ray enters and leaves a box; it misses if exit < entry.
template <class F>
struct BoxIntervalOf {
    F entry;
    F exit;
};
typedef BoxIntervalOf<float> BoxInterval;

// From where the ray meets the near and the far planes of each axis.
template <class F>
TESSERA_SMALL_FN BoxIntervalOf<F> interval_between(const F near_plane[3], const F far_plane[3]) {
    BoxIntervalOf<F> result;
    result.entry = greater_(greater_(near_plane[0], near_plane[1]), greater_(near_plane[2], F{}));
    result.exit = lesser_(lesser_(far_plane[0], far_plane[1]), far_plane[2]);
    return result;
}

// Whether a ray that enters and leaves the slabs of a box there meets it at t_max or before: what
// box_interval says of it, for a device. The numbers are only compared, so that the sign of a zero
// cannot matter; none may be a NaN.
TESSERA_FN bool meets_slabs(const float enters[3], const float leaves[3], float t_max) {
    const float entry = either_max(either_max(enters[0], enters[1]), either_max(enters[2], 0.0f));
    const float exit = either_min(either_min(leaves[0], leaves[1]), either_min(leaves[2], t_max));
    return entry <= exit;
}

TESSERA_FN BoxInterval box_interval(const TraversalRay& ray, const float bounds[2][3]) {
    float near_plane[3], far_plane[3];
    for (u32 k = 0; k < 3; k++) {
        // Selects, so that a device keeps the bounds in registers.
        const float near_bound = ray.near_side[k] ? bounds[1][k] : bounds[0][k];
        const float far_bound = ray.near_side[k] ? bounds[0][k] : bounds[1][k];
        near_plane[k] = (near_bound - ray.origin[k]) * ray.reciprocal[k];
        far_plane[k] = (far_bound - ray.origin[k]) * ray.reciprocal[k];
    }
    return interval_between(near_plane, far_plane);
}
