// How functions by themselves (functions.h) read their words and leave their results.
#pragma once

#include "integrator/path.h"
#include "sampling/shapes.h"

// What a unit function gets and gives.
struct Words {
    const u32* in;
    u32* out;
    const CompressedHierarchy* hierarchy;
};

TESSERA_FN float real(const Words& w, u32 at) { return float_from_bits(w.in[at]); }
TESSERA_FN Vec2 real2(const Words& w, u32 at) { return vec2(real(w, at), real(w, at + 1)); }
TESSERA_FN Vec3 real3(const Words& w, u32 at) {
    return vec3(real(w, at), real(w, at + 1), real(w, at + 2));
}
TESSERA_FN Vec3 unit3(const Words& w, u32 at) {
    return normalize_or(real3(w, at), vec3(0.0f, 0.6f, 0.8f));
}

// A unit vector above the horizon, as BSDFs want their `wo`.
TESSERA_FN Vec3 upper3(const Words& w, u32 at) {
    const Vec3 any = unit3(w, at);
    return normalize(vec3(any.x, any.y, abs_(any.z) + FACING_MIN));
}

// Every NaN is one and the same: machines differ in the payloads of those that they make.
TESSERA_FN void give(const Words& w, u32 at, float value) {
    const u32 bits = bits_from_float(value);
    w.out[at] = (bits & 0x7fffffffu) > 0x7f800000u ? 0x7fffffffu : bits;
}

TESSERA_FN void give2(const Words& w, u32 at, Vec2 value) {
    give(w, at, value.x);
    give(w, at + 1, value.y);
}

TESSERA_FN void give3(const Words& w, u32 at, Vec3 value) {
    give(w, at, value.x);
    give(w, at + 1, value.y);
    give(w, at + 2, value.z);
}

TESSERA_FN void give_none(const Words& w, u32 from, u32 to) {
    for (u32 at = from; at < to; ++at) w.out[at] = 0;
}

TESSERA_FN void give_ray(const Words& w, u32 at, const Ray& ray) {
    give3(w, at, ray.origin);
    give3(w, at + 3, ray.direction);
    give(w, at + 6, ray.t_max);
}

// Words 0 to 5: origin, direction.
TESSERA_FN Ray ray_from(const Words& w) {
    Ray ray;
    ray.origin = real3(w, 0);
    ray.direction = real3(w, 3);
    ray.t_max = FAR_LIMIT;
    return ray;
}

// Width of a cone: nothing, or a power of two from 2^-13 to 4.
TESSERA_FN float unit_width(u32 bits) {
    const u32 which = bits * 0x9e3779b9u >> 26;
    return which < 16u ? 0.0f : (float)(i32)(1u << (which & 15u)) * 0x1p-13f;
}

TESSERA_FN Coverage unit_coverage(const Words& w, u32 at) {
    Coverage coverage = coverage_of_ray(w.in[at], w.in[at] >> 8);
    coverage.cone = cone(unit_width(w.in[at]), unit_width(w.in[at] >> 4));
    return coverage;
}

// Words 0 to 2: triangle (modulo their number), two random numbers for the point, which say how
// much is asked about as well.
struct SurfaceInput {
    u32 id;
    Vec2 at;
    float width;
};

TESSERA_FN SurfaceInput surface_input(const SceneView& scene, const Words& w) {
    SurfaceInput input;
    input.id = w.in[0] % scene.triangle_count;
    input.at = sample_triangle(real2(w, 1));
    input.width = unit_width(w.in[0] ^ w.in[1]);
    return input;
}
