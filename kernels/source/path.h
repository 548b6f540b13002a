// A path's state between stages: all that a later stage may need, so that stages can run one path at a time or many in
// arrays.
#pragma once

#include "film.h"
#include "ray.h"
#include "sampler.h"

struct PathState {
    Sampler sampler;
    u32 ray_key;         // of the path; see ray_key_of
    u32 depth;           // scatterings so far
    Ray ray;
    Vec3 throughput;
    Vec3 radiance;
    float density;       // per steradian with which the last scattering chose the ray; 0 for a camera ray
    float cosine;        // between that ray and the shading normal it left, 0 where it went through; 0 for a camera ray
    u32 media;           // the medium around the ray, and the one around that: numbers of Layers, 16 bits each
};

// Radiance on its way through a shadow ray.
struct ShadowRay {
    Ray ray;
    Vec3 radiance;
    bool wanted;
};

// What a path's first surface says about itself; all zero on a miss.
struct FirstHit {
    Vec3 albedo;
    Vec3 normal;
    float depth;
    Vec3 position;
};

enum RayKind : u32 { RAY_PATH = 0, RAY_SHADOW = 1 };

// Key of a path's ray, by which alpha is decided: another one at every depth, for shadow rays too.
TESSERA_FN u32 ray_key_of(const PathState& state, u32 kind) { return hash_pair(state.ray_key, 2 * state.depth + kind); }
