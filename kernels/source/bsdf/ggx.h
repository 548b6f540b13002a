// The isotropic GGX microfacet distribution with height-correlated Smith shadowing, in a local
// frame whose z is the normal, and its tabulated directional albedo.
#pragma once

#include "bsdf/albedo_table.h"
#include "sampling/shapes.h"

// below it a lobe is narrower than float arithmetic of half vectors resolves
const float ALPHA_MIN = 1e-3f;
const u32 ALBEDO_STEPS = 32;

// Directional albedo of the lobe with Fresnel term F0 + (1 - F0) * Fc, as F0 * scale + bias.
template <class F>
struct SplitAlbedoOf {
    F scale;
    F bias;
};
typedef SplitAlbedoOf<float> SplitAlbedo;

template <class F>
TESSERA_FN F split_total(SplitAlbedoOf<F> albedo) {
    return albedo.scale + albedo.bias;
}

// Where a roughness lies in the albedo tables.
template <class F>
struct AlbedoRowOf {
    WordOf<F> first;
    F fraction;
};
typedef AlbedoRowOf<float> AlbedoRow;

template <class F>
TESSERA_FN AlbedoRowOf<F> albedo_row(F alpha) {
    const F at = sqrt_(alpha) * (float)(ALBEDO_STEPS - 1);
    AlbedoRowOf<F> row;
    row.first = min_u32(word_from_int(floor_to_int(max_(at, 0.0f))), ALBEDO_STEPS - 2);
    row.fraction = at - float_from_int(int_from_word(row.first));
    return row;
}

// Between two entries of a table of pairs, `offset` into them.
template <class F>
TESSERA_FN F look_up_between(const float* table, WordOf<F> pair, u32 offset, F fraction) {
    return lerp_(look_up(table, pair * 2u + offset), look_up(table, pair * 2u + (offset + 2u)),
                 fraction);
}

template <class F>
TESSERA_FN SplitAlbedoOf<F> ggx_albedo(AlbedoRowOf<F> row, F cosine) {
    const F at = saturate_(cosine) * (float)(ALBEDO_STEPS - 1);
    const WordOf<F> column = min_u32(word_from_int(int_from_bounded(at)), ALBEDO_STEPS - 2);
    const F across = at - float_from_int(int_from_word(column));
    const WordOf<F> smooth = row.first * ALBEDO_STEPS + column;
    const WordOf<F> rough = smooth + ALBEDO_STEPS;
    SplitAlbedoOf<F> albedo;
    albedo.scale = lerp_(look_up_between(GGX_ALBEDO, smooth, 0, across),
                         look_up_between(GGX_ALBEDO, rough, 0, across), row.fraction);
    albedo.bias = lerp_(look_up_between(GGX_ALBEDO, smooth, 1, across),
                        look_up_between(GGX_ALBEDO, rough, 1, across), row.fraction);
    return albedo;
}

// Cosine-weighted mean of ggx_albedo over the hemisphere.
template <class F>
TESSERA_FN SplitAlbedoOf<F> ggx_albedo_mean(AlbedoRowOf<F> row) {
    SplitAlbedoOf<F> albedo;
    albedo.scale = look_up_between(GGX_ALBEDO_MEAN, row.first, 0, row.fraction);
    albedo.bias = look_up_between(GGX_ALBEDO_MEAN, row.first, 1, row.fraction);
    return albedo;
}

// sqrt(alpha^2 + (1 - alpha^2) cos^2): what Smith's shadowing is made of.
template <class F>
TESSERA_FN F smith_root(F alpha2, F cosine) {
    return sqrt_(fma_((1.0f - alpha2) * cosine, cosine, alpha2));
}

// Normal distribution D of a unit half vector. Written without 1 - z^2, which cancels for narrow
// lobes.
template <class F>
TESSERA_FN F ggx_distribution(F alpha2, Vector3<F> half) {
    const F spread = fma_(half.x, half.x, fma_(half.y, half.y, alpha2 * half.z * half.z));
    return alpha2 * INVERSE_PI / (spread * spread);
}

// A half vector distributed as the normals visible from `wo` (Heitz 2018), by spherical caps
// (Dupuy and Benyoub 2023).
template <class F>
TESSERA_FN Vector3<F> sample_visible_normal(F alpha, Vector3<F> wo, Vector2<F> random) {
    const Vector3<F> stretched = normalize(vec3(wo.x * alpha, wo.y * alpha, wo.z));
    const F z = fma_(1.0f - random.y, 1.0f + stretched.z, -stretched.z);
    const F radius = sqrt_(max_(0.0f, fma_(-z, z, 1.0f)));
    const SinCosOf<F> angle = sincos_turns(random.x);
    const Vector3<F> cap = vec3(fma_(radius, angle.cosine, stretched.x),
                                fma_(radius, angle.sine, stretched.y), z + stretched.z);
    return normalize_or(vec3(cap.x * alpha, cap.y * alpha, max_(0.0f, cap.z)),
                        vec3<F>(0.0f, 0.0f, 1.0f));
}
