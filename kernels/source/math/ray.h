// Rays and hits: what traversal takes and gives, and how a new ray leaves a surface without meeting
// it again. Owns no traversal; see traverse.h.
#pragma once

#include "math/vector.h"

// Points origin + t * direction with 0 < t <= t_max. The direction is finite and not zero; t counts
// in its lengths.
template <class F>
struct RayOf {
    Vector3<F> origin;
    Vector3<F> direction;
    F t_max;
};
typedef RayOf<float> Ray;

// What a path's ray stands for: a cone about it (Akenine-Moeller et al. 2021, "Improved Shader and
// Texture Level of Detail Using Ray Cones", section 2), by which levels of textures are chosen.
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

TESSERA_FN float cone_width_at(const Cone& cone, float distance) {
    return fma_(cone.spread, distance, cone.width);
}

// A hit at (1 - u - v) * v0 + u * v1 + v * v2 of a triangle. Take the position from there, not from
// t, which is less precise and, by Rule C, may be moved to the triangle's own box.
struct Hit {
    float t;
    u32 triangle;
    float u, v;
};

// One component of offset_ray_origin.
template <class F>
TESSERA_FN F offset_coordinate(F p, F n) {
    const float NEAR_ZERO = 1.0f / 32.0f;
    const float STEP_NEAR_ZERO = 1.0f / 65536.0f;
    const float STEP_ULPS = 256.0f;
    // |n| <= 1, so that the number of steps fits. Bit patterns of floats of one sign are ordered as
    // their magnitudes, so that adding to the pattern moves away from zero and subtracting moves
    // towards it.
    const auto steps = word_from_int(int_from_bounded(STEP_ULPS * n));
    const auto bits = bits_from_float(p);
    const F stepped = float_from_bits(select_word(p < 0.0f, bits - steps, bits + steps));
    return select(abs_(p) < NEAR_ZERO, p + STEP_NEAR_ZERO * n, stepped);
}

// An origin on the side of p that the unit geometric normal ng points to, far enough that rounding
// cannot put the surface in front of the new ray again: a step in units of the last place, so that
// it fits any distance from the world's origin, and a fixed one near zero, where those units shrink
// below the error of p (Waechter and Binder, "A fast and robust method for avoiding
// self-intersection", Ray Tracing Gems, 2019, chapter 6). For a ray that leaves to the other side,
// pass -ng.
template <class F>
TESSERA_FN Vector3<F> offset_ray_origin(Vector3<F> p, Vector3<F> ng) {
    return vec3(offset_coordinate(p.x, ng.x), offset_coordinate(p.y, ng.y),
                offset_coordinate(p.z, ng.z));
}
