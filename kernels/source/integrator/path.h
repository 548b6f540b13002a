// A path's state between stages: all that a later stage may need, so that stages can run one path
// at a time or many in arrays.
#pragma once

#include "camera/camera.h"
#include "film/film.h"
#include "material/alpha.h"
#include "math/ray.h"
#include "sampling/sampler.h"

// Where a surface is that light falls on, as lights are chosen for it.
template <class F>
struct VantageOf {
    Vector3<F> point;
    Vector3<F> normal;
};
typedef VantageOf<float> Vantage;

// The same between stages: the normal in two halves of a word, on an octahedron (Cigolle et al.
// 2014, "A Survey of Efficient Representations for Independent Unit Vectors", section 3.2). Choices
// are made with the normal that comes out of it again.
template <class F>
struct PackedVantageOf {
    Vector3<F> point;
    WordOf<F> normal;
};
typedef PackedVantageOf<float> PackedVantage;

template <class F>
TESSERA_FN auto packed_half(F value) {
    return word_from_int(floor_to_int(fma_(value, 32767.0f, 32768.5f))) & 0xffffu;
}
template <class Word>
TESSERA_FN auto unpacked_half(Word bits) {
    return (float_from_int(int_from_word(bits)) - 32768.0f) * (1.0f / 32767.0f);
}

template <class F>
TESSERA_FN PackedVantageOf<F> pack_vantage(Vector3<F> point, Vector3<F> normal) {
    const F scale = 1.0f / max_(abs_(normal.x) + abs_(normal.y) + abs_(normal.z), 1e-10f);
    const F x = normal.x * scale, y = normal.y * scale;
    const auto below = normal.z < 0.0f;
    PackedVantageOf<F> packed;
    packed.point = point;
    packed.normal = packed_half(select(below, copysign_(1.0f - abs_(y), x), x)) |
                    packed_half(select(below, copysign_(1.0f - abs_(x), y), y)) << 16;
    return packed;
}

template <class F>
TESSERA_FN VantageOf<F> vantage_of(const PackedVantageOf<F>& packed) {
    const F x = unpacked_half(packed.normal & 0xffffu), y = unpacked_half(packed.normal >> 16);
    const F z = 1.0f - abs_(x) - abs_(y);
    const auto below = z < 0.0f;
    const F bent_x = select(below, copysign_<F>(1.0f - abs_(y), x), x);
    const F bent_y = select(below, copysign_<F>(1.0f - abs_(x), y), y);
    VantageOf<F> vantage;
    vantage.point = packed.point;
    vantage.normal = normalize_or(vec3(bent_x, bent_y, z), vec3<F>(0.0f, 0.0f, 1.0f));
    return vantage;
}

template <class F>
struct PathStateOf {
    SamplerOf<WordOf<F>> sampler;
    WordOf<F> depth;           // surfaces that it has left
    WordOf<F> passes;          // panes among them that it went straight through
    RayOf<F> ray;
    F width;         // of the ray's cone, where it left a surface; not set for a camera ray
    Vector3<F> throughput;
    Vector3<F> radiance;
    // per steradian with which the last scattering chose the ray; 0 for a ray of the camera, which
    // may have gone through panes
    F pdf;
    // between that ray and the shading normal it left, 0 where it went through; 0 for a camera ray
    F cosine;
    PackedVantageOf<F> vantage;  // for which the last scattering chose a light
    WordOf<F> media;           // around the ray: the nest of medium.h
};
typedef PathStateOf<float> PathState;

template <class F>
TESSERA_FN WordOf<F> scatterings_of(const PathStateOf<F>& state) {
    return state.depth - state.passes;
}

// Of the directions about a scattered ray that it stands for, the share that its cone takes in,
// across; and how wide it may be.
const float CONE_OF_SCATTERING = 0.0625f;
const float CONE_SPREAD_MAX = 0.25f;

// Cone of a ray that was chosen with a pdf, per steradian: it stands for 1 / pdf of them, a
// disk of 2 sqrt(1 / (pi pdf)) across at a distance of 1.
TESSERA_FN Cone scattered_cone(float width, float pdf) {
    const float spread = CONE_OF_SCATTERING * 2.0f / sqrt_(max_(PI * pdf, 1e-10f));
    return cone(width, min_(spread, CONE_SPREAD_MAX));
}

// Cone of a ray that has left a surface: scattered, or straight through a pane and still the
// camera's.
TESSERA_FN Cone later_cone(const SceneView& scene, const UnitParams& unit, float width, float pdf) {
    if (pdf > 0.0f) return scattered_cone(width, pdf);
    return cone(width, camera_cone(scene.camera, unit.frame_height).spread);
}

TESSERA_FN Cone cone_of(const SceneView& scene, const UnitParams& unit, const PathState& state) {
    return state.depth == 0 ? camera_cone(scene.camera, unit.frame_height)
                            : later_cone(scene, unit, state.width, state.pdf);
}

// Radiance on its way through a shadow ray.
template <class F>
struct ShadowRayOf {
    RayOf<F> ray;
    Vector3<F> radiance;
    MaskOf<F> wanted;
};
typedef ShadowRayOf<float> ShadowRay;

// What a path's first surface says about itself; all zero on a miss.
struct FirstHit {
    Vec3 albedo;
    Vec3 normal;
    float depth;
    Vec3 position;
    float missed;  // share of the camera's ray that left the scene, through panes or in the open
};

// What alpha is decided by for a path's ray: another sampler at every depth.
TESSERA_FN Coverage coverage_of(const Sampler& path, u32 depth, const Cone& cone) {
    Coverage coverage;
    coverage.sampler = split_sampler(path, depth);
    coverage.cone = cone;
    return coverage;
}
