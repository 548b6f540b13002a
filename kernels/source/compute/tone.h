// Built-in kernel `tonemap`: scene-linear Rec. 709 to linear display values in [0, 1], by the
// curves that frames are written with. The last step, the display's own curve, is a file format's:
// a PNG has it, an array does not.
#pragma once

#include "compute/array.h"
#include "math/logarithm.h"

const u32 TONE_STANDARD = 0;
const u32 TONE_PBR_NEUTRAL = 1;
const u32 TONE_AGX = 2;

struct ToneParams {
    ComputeArray image;
    float exposure;  // stops
    u32 curve;
};

struct Color {
    float r;
    float g;
    float b;
};

TESSERA_FN Color color(float r, float g, float b) {
    Color made;
    made.r = r;
    made.g = g;
    made.b = b;
    return made;
}

// Khronos PBR Neutral (2024).
TESSERA_FN Color tone_pbr_neutral(Color c) {
    const float f90 = 0.04f;
    const float start = 0.8f - f90;
    const float darkest = min_(min_(c.r, c.g), c.b);
    const float offset = darkest < 2.0f * f90 ? darkest - darkest * darkest / (4.0f * f90) : f90;
    const Color lowered = color(c.r - offset, c.g - offset, c.b - offset);
    const float peak = max_(max_(lowered.r, lowered.g), lowered.b);
    if (peak < start) return lowered;
    const float room = 1.0f - start;
    const float compressed = 1.0f - room * room / (peak + room - start);
    const float white = 1.0f - 1.0f / (0.15f * (peak - compressed) + 1.0f);
    const float scale = compressed / peak * (1.0f - white);
    const float veil = compressed * white;
    return color(lowered.r * scale + veil, lowered.g * scale + veil, lowered.b * scale + veil);
}

TESSERA_FN float agx_curve(float value) {
    const float stops = clamp_(log2_(max_(value, 1e-10f)), -12.47393f, 4.026069f);
    const float x = (stops + 12.47393f) / (4.026069f + 12.47393f);
    float sum = fma_(x, 15.5f, -40.14f);
    sum = fma_(sum, x, 31.96f);
    sum = fma_(sum, x, -6.868f);
    sum = fma_(sum, x, 0.4298f);
    sum = fma_(sum, x, 0.1191f);
    return fma_(sum, x, -0.00232f);
}

TESSERA_FN float weigh(float a, float b, float c, const Color& v) {
    return a * v.r + b * v.g + c * v.b;
}

TESSERA_FN float agx_linear(float value) { return pow_(saturate_(value), 2.2f); }

// AgX (T. Sobotka) with B. Wrensch's polynomial; its outcome is for a display of gamma 2.2, so it
// is made linear again.
TESSERA_FN Color tone_agx(Color c) {
    const float r =
        agx_curve(weigh(0.842479062253094f, 0.0784335999999992f, 0.0792237451477643f, c));
    const float g =
        agx_curve(weigh(0.0423282422610123f, 0.878468636469772f, 0.0791661274605434f, c));
    const float b = agx_curve(weigh(0.0423756549057051f, 0.0784336f, 0.879142973793104f, c));
    const Color v = color(r, g, b);
    return color(
        agx_linear(weigh(1.19687900512017f, -0.0980208811401368f, -0.0990297440797205f, v)),
        agx_linear(weigh(-0.0528968517574562f, 1.15190312990417f, -0.0989611768448433f, v)),
        agx_linear(weigh(-0.0529716355144438f, -0.0980434501171241f, 1.15107367264116f, v)));
}

// Pixels of 1 channel are grey; a fourth channel is kept as it is.
TESSERA_FN void tone_index(const ComputeChunk& chunk, const ToneParams& params, u32 local) {
    const u64 pixel = (chunk.first + local) * chunk.channels;
    const float gain = exp2_(params.exposure);
    const u32 second = chunk.channels > 2 ? 1u : 0u;
    Color c = color(
        gain * value_at(params.image, pixel),
        gain * value_at(params.image, pixel + second),
        gain * value_at(params.image, pixel + 2u * second));
    if (params.curve == TONE_PBR_NEUTRAL) c = tone_pbr_neutral(c);
    if (params.curve == TONE_AGX) c = tone_agx(c);
    const u64 out = (u64)local * chunk.channels;
    store_value(chunk, out, saturate_(c.r));
    if (second == 1u) {
        store_value(chunk, out + 1u, saturate_(c.g));
        store_value(chunk, out + 2u, saturate_(c.b));
    }
    const u32 last = chunk.channels - 1u;
    if (last == 1u || last == 3u)
        store_value(chunk, out + last, value_at(params.image, pixel + last));
}
