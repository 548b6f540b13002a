// Rays and hits: what traversal takes and gives, and how a new ray leaves a surface without meeting it again.
// Owns no traversal; see traverse.h.
#pragma once

#include "vector.h"

// Points origin + t * direction with 0 < t <= t_max. The direction is finite and not zero; t counts in its lengths.
struct Ray {
    Vec3 origin;
    Vec3 direction;
    float t_max;
};

// What a path's ray stands for: a cone about it (Akenine-Moeller et al. 2021, "Improved Shader and Texture Level of Detail Using Ray
// Cones", section 2), by which levels of textures are chosen.
struct Cone {
    float width;   // at the ray's origin, metres
    float spread;  // metres more for every metre
};

TESSERA_FN Cone cone(float width, float spread) {
    Cone result;
    result.width = width;
    result.spread = spread;
    return result;
}

TESSERA_FN float cone_width_at(const Cone& cone, float distance) { return fma_(cone.spread, distance, cone.width); }

// A hit at (1 - u - v) * v0 + u * v1 + v * v2 of a triangle. Take the position from there, not from t, which is less
// precise and, by Rule C, may be moved to the triangle's own box.
struct Hit {
    float t;
    u32 triangle;
    float u, v;
};

// One component of offset_ray_origin.
TESSERA_FN float offset_coordinate(float p, float n) {
    const float NEAR_ZERO = 1.0f / 32.0f;
    const float STEP_NEAR_ZERO = 1.0f / 65536.0f;
    const float STEP_ULPS = 256.0f;
    if ((p < 0.0f ? -p : p) < NEAR_ZERO) return p + STEP_NEAR_ZERO * n;
    // |n| <= 1, so that the number of steps fits. Bit patterns of floats of one sign are ordered as their magnitudes,
    // so that adding to the pattern moves away from zero and subtracting moves towards it.
    const i32 steps = (i32)(STEP_ULPS * n);
    const u32 bits = bits_from_float(p);
    return float_from_bits(p < 0.0f ? bits - (u32)steps : bits + (u32)steps);
}

// An origin on the side of p that the unit geometric normal ng points to, far enough that rounding cannot put the
// surface in front of the new ray again: a step in units of the last place, so that it fits any distance from the
// world's origin, and a fixed one near zero, where those units shrink below the error of p (Waechter and Binder,
// "A fast and robust method for avoiding self-intersection", Ray Tracing Gems, 2019, chapter 6). For a ray that leaves
// to the other side, pass -ng.
TESSERA_FN Vec3 offset_ray_origin(Vec3 p, Vec3 ng) {
    return vec3(offset_coordinate(p.x, ng.x), offset_coordinate(p.y, ng.y), offset_coordinate(p.z, ng.z));
}
