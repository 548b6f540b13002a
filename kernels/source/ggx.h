// The isotropic GGX microfacet distribution with height-correlated Smith shadowing, in a local frame whose z is the normal,
// and its tabulated directional albedo.
#pragma once

#include "albedo_table.h"
#include "sample_shapes.h"

const float ALPHA_MIN = 1e-3f;  // below it a lobe is narrower than float arithmetic of half vectors resolves
const u32 ALBEDO_STEPS = 32;

// Directional albedo of the lobe with Fresnel term F0 + (1 - F0) * Fc, as F0 * scale + bias.
struct SplitAlbedo {
    float scale;
    float bias;
};

TESSERA_FN float split_total(SplitAlbedo albedo) { return albedo.scale + albedo.bias; }

// Where a roughness lies in the albedo tables.
struct AlbedoRow {
    u32 first;
    float fraction;
};

TESSERA_FN AlbedoRow albedo_row(float alpha) {
    const float at = sqrt_(alpha) * (float)(ALBEDO_STEPS - 1);
    const u32 first = min_u32((u32)floor_to_int(max_(at, 0.0f)), ALBEDO_STEPS - 2);
    AlbedoRow row;
    row.first = first;
    row.fraction = at - (float)first;
    return row;
}

TESSERA_FN SplitAlbedo ggx_albedo(AlbedoRow row, float cosine) {
    const float at = saturate_(cosine) * (float)(ALBEDO_STEPS - 1);
    const u32 column = min_u32((u32)(i32)at, ALBEDO_STEPS - 2);
    const float across = at - (float)column;
    const float* smooth = GGX_ALBEDO + 2 * (row.first * ALBEDO_STEPS + column);
    const float* rough = smooth + 2 * ALBEDO_STEPS;
    SplitAlbedo albedo;
    albedo.scale = lerp_(lerp_(smooth[0], smooth[2], across), lerp_(rough[0], rough[2], across), row.fraction);
    albedo.bias = lerp_(lerp_(smooth[1], smooth[3], across), lerp_(rough[1], rough[3], across), row.fraction);
    return albedo;
}

// Cosine-weighted mean of ggx_albedo over the hemisphere.
TESSERA_FN SplitAlbedo ggx_albedo_mean(AlbedoRow row) {
    const float* mean = GGX_ALBEDO_MEAN + 2 * row.first;
    SplitAlbedo albedo;
    albedo.scale = lerp_(mean[0], mean[2], row.fraction);
    albedo.bias = lerp_(mean[1], mean[3], row.fraction);
    return albedo;
}

// sqrt(alpha^2 + (1 - alpha^2) cos^2): what Smith's shadowing is made of.
TESSERA_FN float smith_root(float alpha2, float cosine) {
    return sqrt_(fma_((1.0f - alpha2) * cosine, cosine, alpha2));
}

// Normal distribution D of a unit half vector. Written without 1 - z^2, which cancels for narrow lobes.
TESSERA_FN float ggx_density(float alpha2, Vec3 half) {
    const float spread = fma_(half.x, half.x, fma_(half.y, half.y, alpha2 * half.z * half.z));
    return alpha2 * INVERSE_PI / (spread * spread);
}

// A half vector distributed as the normals visible from `out` (Heitz 2018), by spherical caps (Dupuy and Benyoub 2023).
TESSERA_FN Vec3 sample_visible_normal(float alpha, Vec3 out, Vec2 random) {
    const Vec3 stretched = normalize(vec3(out.x * alpha, out.y * alpha, out.z));
    const float z = fma_(1.0f - random.y, 1.0f + stretched.z, -stretched.z);
    const float radius = sqrt_(max_(0.0f, fma_(-z, z, 1.0f)));
    const SinCos angle = sincos_turns(random.x);
    const Vec3 cap = vec3(fma_(radius, angle.cosine, stretched.x), fma_(radius, angle.sine, stretched.y), z + stretched.z);
    return normalize_or(vec3(cap.x * alpha, cap.y * alpha, max_(0.0f, cap.z)), vec3(0.0f, 0.0f, 1.0f));
}
