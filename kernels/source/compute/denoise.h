// Built-in kernel `denoise`: a pass of the denoiser over a picture, one pixel of it at a time. Owns
// how a single pixel goes about it; what it computes, and hosts' way through whole tiles, are
// denoise.h's. Sums are added up in the order of tiles, so that the bits are the same.
#pragma once

#include "compute/array.h"
#include "film/denoise.h"
#include "layout.h"

struct DenoiseInputs {
    ComputeArray picture;  // [half,] row, column, channel: DENOISE_COLOR, and then DENOISE_HALF
    ComputeArray albedo;
    ComputeArray normal;
    ComputeArray depth;
    u32 samples;
    u32 pass;
};

const i32 DENOISE_PATCH_SIDE = 2 * DENOISE_PATCH + 1;
const i32 DENOISE_PATCH_PIXELS = DENOISE_PATCH_SIDE * DENOISE_PATCH_SIDE;
const i32 DENOISE_SMOOTH_SIDE = 2 * DENOISE_SMOOTH + 1;
const i32 DENOISE_RAW_SIDE = DENOISE_PATCH_SIDE + 2 * DENOISE_SMOOTH;

// A frame as a pixel sees it.
struct DenoiseFrame {
    const DenoiseInputs& inputs;
    u32 width;
    u32 height;
    float first_scale;
    float second_scale;
    float strength_squared;
};

TESSERA_FN DenoiseFrame denoise_frame(const ComputeChunk& chunk, const DenoiseInputs& inputs) {
    const u32 first = inputs.samples / 2;
    const float samples = (float)inputs.samples;
    return {inputs,
            chunk.width,
            chunk.height,
            samples / (float)first,
            samples / (float)(inputs.samples - first),
            denoise_strength_squared(inputs.pass)};
}

// Index of a pixel; beyond an edge stands the edge's own.
TESSERA_FN u64 denoise_pixel_at(const DenoiseFrame& frame, i32 x, i32 y) {
    return (u64)denoise_clamp(y, frame.height) * frame.width + (u64)denoise_clamp(x, frame.width);
}

// A value as a film may have it: what is no number is 0.
TESSERA_FN float denoise_value(const ComputeArray& array, u64 index) {
    const float value = value_at(array, index);
    return value == value ? clamp_(value, -FILM_VALUE_MAX, FILM_VALUE_MAX) : 0.0f;
}

// One channel of the colours, or of their second half.
TESSERA_FN float denoise_color(const DenoiseFrame& frame, u32 half, u32 channel, u64 pixel) {
    return denoise_value(frame.inputs.picture,
                         ((u64)half * frame.width * frame.height + pixel) * 3 + channel);
}

TESSERA_FN float denoise_guide(const DenoiseFrame& frame, u32 guide, u64 pixel) {
    if (guide < 3) return denoise_value(frame.inputs.albedo, pixel * 3 + guide);
    if (guide < 6) return denoise_value(frame.inputs.normal, pixel * 3 + guide - 3);
    return log2_(max_(denoise_value(frame.inputs.depth, pixel), 0x1p-20f));
}

// A patch of pixels as they are compared.
struct DenoisePatch {
    DenoiseColor<float> pixels[DENOISE_PATCH_PIXELS];
};

TESSERA_FN void denoise_load_patch(const DenoiseFrame& frame, u32 channel, i32 x, i32 y,
                                   DenoisePatch& patch) {
    const i32 reach = DENOISE_PATCH + DENOISE_SMOOTH;
    float across[DENOISE_RAW_SIDE][DENOISE_PATCH_SIDE];
    TESSERA_ROLLED
    for (i32 row = 0; row < DENOISE_RAW_SIDE; ++row) {
        float raw[DENOISE_RAW_SIDE];
        TESSERA_UNROLL
        for (i32 column = 0; column < DENOISE_RAW_SIDE; ++column) {
            const u64 pixel = denoise_pixel_at(frame, x + column - reach, y + row - reach);
            const float color = denoise_color(frame, 0, channel, pixel),
                        half = denoise_color(frame, 1, channel, pixel);
            raw[column] =
                denoise_variance_between(color, half, frame.first_scale, frame.second_scale);
            const i32 in_row = row - DENOISE_SMOOTH, in_column = column - DENOISE_SMOOTH;
            if (in_row >= 0 && in_row < DENOISE_PATCH_SIDE && in_column >= 0 &&
                in_column < DENOISE_PATCH_SIDE)
                patch.pixels[in_row * DENOISE_PATCH_SIDE + in_column].value[channel] = color;
        }
        TESSERA_UNROLL
        for (i32 column = 0; column < DENOISE_PATCH_SIDE; ++column)
            across[row][column] = denoise_sum5(raw + column, 1);
    }
    TESSERA_ROLLED
    for (i32 row = 0; row < DENOISE_PATCH_SIDE; ++row) {
        TESSERA_UNROLL
        for (i32 column = 0; column < DENOISE_PATCH_SIDE; ++column) {
            patch.pixels[row * DENOISE_PATCH_SIDE + column].variance[channel] =
                denoise_variance(denoise_sum5(&across[row][column], DENOISE_PATCH_SIDE));
        }
    }
}

// How much the pixel at (x, y) is like the one whose patch is `own`.
TESSERA_FN float denoise_likeness(const DenoiseFrame& frame, const DenoisePatch& own, i32 x,
                                  i32 y) {
    DenoisePatch other;
    TESSERA_ROLLED
    for (u32 channel = 0; channel < 3; ++channel) denoise_load_patch(frame, channel, x, y, other);
    float down[DENOISE_PATCH_SIDE];
    TESSERA_ROLLED
    for (i32 column = 0; column < DENOISE_PATCH_SIDE; ++column) {
        float distance[DENOISE_PATCH_SIDE];
        TESSERA_UNROLL
        for (i32 row = 0; row < DENOISE_PATCH_SIDE; ++row) {
            const i32 at = row * DENOISE_PATCH_SIDE + column;
            distance[row] = denoise_distance(own.pixels[at], other.pixels[at]);
        }
        down[column] = denoise_sum7(distance[0], distance[1], distance[2], distance[3],
                                    distance[4], distance[5], distance[6]);
    }
    const float sum =
        denoise_sum7(down[0], down[1], down[2], down[3], down[4], down[5], down[6]);
    return denoise_weight(sum, frame.strength_squared);
}

// The colours that are fitted here: of all samples, or of their second half.
const i32 DENOISE_CHANNELS_OF_PIXEL = 3;
const i32 DENOISE_SUMS_OF_PIXEL = DENOISE_MATRIX + DENOISE_CHANNELS_OF_PIXEL * DENOISE_TERMS;

// Adds a pixel of the disc to the regressions.
TESSERA_FN void denoise_add_pixel(float* sums, float weight, const float* terms,
                                  const float* apart) {
    i32 at = 0;
    TESSERA_UNROLL
    for (i32 j = 0; j < DENOISE_TERMS; ++j) {
        const float weighted = weight * terms[j];
        TESSERA_UNROLL
        for (i32 k = 0; k <= j; ++k, ++at) sums[at] = sums[at] + weighted * terms[k];
        TESSERA_UNROLL
        for (i32 c = 0; c < DENOISE_CHANNELS_OF_PIXEL; ++c, ++at)
            sums[at] = sums[at] + weighted * apart[c];
    }
}

// The sums of the regressions at a pixel, over its disc.
TESSERA_FN void denoise_sum_up(const DenoiseFrame& frame, u32 half, i32 x, i32 y, float* sums) {
    const u64 pixel = denoise_pixel_at(frame, x, y);
    DenoisePatch own;
    float guides[DENOISE_GUIDES];
    for (u32 channel = 0; channel < 3; ++channel) denoise_load_patch(frame, channel, x, y, own);
    for (i32 k = 0; k < DENOISE_GUIDES; ++k) guides[k] = denoise_guide(frame, (u32)k, pixel);
    for (i32 k = 0; k < DENOISE_SUMS_OF_PIXEL; ++k) sums[k] = 0.0f;
    TESSERA_ROLLED
    for (i32 down = -DENOISE_RADIUS; down <= DENOISE_RADIUS; ++down) {
        if (y + down < 0 || y + down >= (i32)frame.height) continue;
        const i32 reach = denoise_half_width(down);
        TESSERA_ROLLED
        for (i32 across = -reach; across <= reach; ++across) {
            if (x + across < 0 || x + across >= (i32)frame.width || !denoise_taken(across, down))
                continue;
            const float weight = denoise_likeness(frame, own, x + across, y + down);
            if (weight == 0.0f) continue;
            const u64 other = denoise_pixel_at(frame, x + across, y + down);
            float terms[DENOISE_TERMS], apart[DENOISE_CHANNELS_OF_PIXEL];
            terms[0] = 1.0f;
            TESSERA_UNROLL
            for (i32 k = 0; k < DENOISE_GUIDES; ++k)
                terms[k + 1] = denoise_guide(frame, (u32)k, other) - guides[k];
            terms[DENOISE_GUIDES + 1] = denoise_place_term(across);
            terms[DENOISE_GUIDES + 2] = denoise_place_term(down);
            TESSERA_UNROLL
            for (u32 c = 0; c < (u32)DENOISE_CHANNELS_OF_PIXEL; ++c)
                apart[c] =
                    denoise_color(frame, half, c, other) - denoise_color(frame, half, c, pixel);
            denoise_add_pixel(sums, weight, terms, apart);
        }
    }
}

// Depth 0 of the domain is the picture, depth 1 its second half.
TESSERA_FN void denoise_index(const ComputeChunk& chunk, const DenoiseInputs& inputs, u32 local) {
    const DenoiseFrame frame = denoise_frame(chunk, inputs);
    const u64 index = chunk.first + local;
    const u64 row = index / chunk.width;
    const i32 x = (i32)(index - row * chunk.width), y = (i32)(row % chunk.height);
    const u32 half = (u32)(row / chunk.height);
    float sums[DENOISE_SUMS_OF_PIXEL], apart[DENOISE_CHANNELS_OF_PIXEL];
    denoise_sum_up(frame, half, x, y, sums);
    denoise_solve<float, DENOISE_CHANNELS_OF_PIXEL>(sums, apart);
    for (u32 c = 0; c < (u32)DENOISE_CHANNELS_OF_PIXEL; ++c) {
        const float value = denoise_color(frame, half, c, denoise_pixel_at(frame, x, y)) + apart[c];
        store_value(chunk, (u64)local * 3 + c, half == 0 ? max_(value, 0.0f) : value);
    }
}
