// Built-in kernel `tonemap`: scene-linear Rec. 709 to linear display values in [0, 1], by the
// curves that frames are written with, in 32 bits. The last step, the display's own curve, is a
// file format's: a PNG has it, an array does not.
#pragma once

#include "compute/agx.h"
#include "compute/array.h"
#include "compute/filmic.h"

const u32 TONE_STANDARD = 0;
const u32 TONE_PBR_NEUTRAL = 1;
const u32 TONE_AGX = 2;
const u32 TONE_FILMIC = 3;

struct ToneParams {
    ComputeArray image;
    float exposure;  // stops
    u32 curve;
};

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
    if (params.curve == TONE_FILMIC) c = tone_filmic(c);
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
