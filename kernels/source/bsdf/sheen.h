// The sheen of cloth: the inverted Gaussian lobe "Charlie" with its own shadowing (Estevez and
// Kulla 2017, "Production Friendly Microfacet Sheen BRDF"), as KHR_materials_sheen asks for. Local
// frame, z the normal.
#pragma once

#include "bsdf/sheen_table.h"
#include "math/logarithm.h"
#include "math/vector.h"

const float SHEEN_ROUGHNESS_MIN = 0.07f;  // as in make_tables.py
const u32 SHEEN_STEPS = 32;

struct Sheen {
    float inverse_alpha;
    float fit;  // (1 - alpha)^2, by which the shadowing's fits for rough and smooth cloth are mixed
};

TESSERA_FN Sheen make_sheen(float roughness) {
    const float alpha = square_(max_(roughness, SHEEN_ROUGHNESS_MIN));
    Sheen sheen;
    sheen.inverse_alpha = 1.0f / alpha;
    sheen.fit = square_(1.0f - alpha);
    return sheen;
}

// The fit's exponent at x in [0, 1].
TESSERA_FN float sheen_exponent(const Sheen& sheen, float x) {
    const float a = lerp_(21.5473f, 25.3245f, sheen.fit);
    const float b = lerp_(3.82987f, 3.32435f, sheen.fit);
    const float c = lerp_(0.19823f, 0.16801f, sheen.fit);
    const float d = lerp_(-1.97760f, -1.27393f, sheen.fit);
    const float e = lerp_(-4.32054f, -4.85967f, sheen.fit);
    return a / fma_(b, pow_(x, c), 1.0f) + fma_(d, x, e);
}

// Smith's auxiliary function towards a cosine.
TESSERA_FN float sheen_smith(const Sheen& sheen, float cosine) {
    const bool low = cosine < 0.5f;
    const float exponent = sheen_exponent(sheen, low ? cosine : 1.0f - cosine);
    return exp2_(LOG2_E * (low ? exponent : 2.0f * sheen_exponent(sheen, 0.5f) - exponent));
}

// Reflection of white sheen without the cosine; its visibility is at most 1, as Khronos's viewer
// has it.
TESSERA_FN float sheen_value(const Sheen& sheen, float wo, float wi, float half) {
    const float sine2 = max_(0.0f, fma_(-half, half, 1.0f));
    const float distribution =
        (2.0f + sheen.inverse_alpha) * pow_(sine2, 0.5f * sheen.inverse_alpha) * INVERSE_TWO_PI;
    const float masking = 1.0f + sheen_smith(sheen, wo) + sheen_smith(sheen, wi);
    return distribution * min_(1.0f, 1.0f / max_(masking * 4.0f * wo * wi, 1e-6f));
}

// What white sheen reflects in all.
TESSERA_FN float sheen_albedo(float roughness, float cosine) {
    const float down = saturate_(roughness) * (float)(SHEEN_STEPS - 1);
    const float across = saturate_(cosine) * (float)(SHEEN_STEPS - 1);
    const u32 row = min_u32((u32)(i32)down, SHEEN_STEPS - 2);
    const u32 column = min_u32((u32)(i32)across, SHEEN_STEPS - 2);
    const float* at = SHEEN_ALBEDO + row * SHEEN_STEPS + column;
    const float along = across - (float)column;
    return lerp_(lerp_(at[0], at[1], along), lerp_(at[SHEEN_STEPS], at[SHEEN_STEPS + 1], along),
                 down - (float)row);
}
