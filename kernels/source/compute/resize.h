// Built-in kernel `resize`: a picture (height, width[, channels]) to the size of the domain,
// through a separable filter whose weights are made to add up to 1. Where it shrinks, the filter is
// as wide as an output pixel.
#pragma once

#include "compute/array.h"
#include "math/arithmetic.h"

const u32 RESIZE_BOX = 0;
const u32 RESIZE_TRIANGLE = 1;
const u32 RESIZE_MITCHELL = 2;
const u32 RESIZE_LANCZOS = 3;

struct ResizeParams {
    ComputeArray image;
    u32 filter;
};

// Half the width of a filter, in pixels of the coarser of the two grids.
TESSERA_FN float resize_radius(u32 filter) {
    if (filter == RESIZE_BOX) return 0.5f;
    if (filter == RESIZE_TRIANGLE) return 1.0f;
    return filter == RESIZE_MITCHELL ? 2.0f : 3.0f;
}

// sin(pi x) / (pi x)
TESSERA_FN float sinc_(float x) {
    const float angle = x * PI;
    return abs_(x) < 1e-4f ? 1.0f : sincos_turns(0.5f * x).sine / angle;
}

TESSERA_FN float resize_weight(u32 filter, float distance) {
    const float x = abs_(distance);
    if (filter == RESIZE_BOX) return distance >= -0.5f && distance < 0.5f ? 1.0f : 0.0f;
    if (filter == RESIZE_TRIANGLE) return max_(1.0f - x, 0.0f);
    if (filter == RESIZE_LANCZOS) return x < 3.0f ? sinc_(x) * sinc_(x / 3.0f) : 0.0f;
    // Mitchell and Netravali (1988), B = C = 1/3.
    if (x < 1.0f) return ((7.0f * x - 12.0f) * x * x + 16.0f / 3.0f) / 6.0f;
    if (x < 2.0f) return (((-7.0f / 3.0f * x + 12.0f) * x - 20.0f) * x + 32.0f / 3.0f) / 6.0f;
    return 0.0f;
}

// The input pixels that an output pixel of one axis reads.
struct ResizeSpan {
    float center;  // in input pixels
    float scale;   // input pixels in an output pixel, at least 1
    i32 first;
    i32 last;
};

TESSERA_FN ResizeSpan resize_span(u32 filter, u32 place, u32 size, u32 input) {
    ResizeSpan span;
    const float ratio = (float)input / (float)size;
    span.scale = max_(ratio, 1.0f);
    span.center = ((float)place + 0.5f) * ratio;
    const float reach = resize_radius(filter) * span.scale;
    span.first = floor_to_int(span.center - reach);
    span.last = floor_to_int(span.center + reach);
    return span;
}

TESSERA_FN float resize_at(u32 filter, const ResizeSpan& span, i32 pixel) {
    return resize_weight(filter, ((float)pixel + 0.5f - span.center) / span.scale);
}

// Beyond an edge stands the edge's own pixel.
TESSERA_FN u32 resize_clamped(i32 pixel, u32 input) {
    return pixel < 0 ? 0u : min_u32((u32)pixel, input - 1u);
}

TESSERA_FN void resize_index(const ComputeChunk& chunk, const ResizeParams& params, u32 local) {
    const u32 channels = chunk.channels;
    const u32 height = (u32)params.image.shape[0];
    const u32 width = (u32)params.image.shape[1];
    const u64 index = chunk.first + local;
    const u32 y = (u32)(index / chunk.width);
    const u32 x = (u32)(index % chunk.width);
    float sums[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    float total = 0.0f;
    const ResizeSpan across = resize_span(params.filter, x, chunk.width, width);
    const ResizeSpan down = resize_span(params.filter, y, chunk.height, height);
    for (i32 v = down.first; v <= down.last; v++) {
        const float row = resize_at(params.filter, down, v);
        for (i32 u = across.first; u <= across.last; u++) {
            const float weight = row * resize_at(params.filter, across, u);
            const u64 pixel = (u64)resize_clamped(v, height) * width + resize_clamped(u, width);
            total = total + weight;
            for (u32 channel = 0; channel < 4u; channel++) {
                if (channel < channels) {
                    sums[channel] = fma_(weight, value_at(params.image, pixel * channels + channel),
                                         sums[channel]);
                }
            }
        }
    }
    for (u32 channel = 0; channel < 4u; channel++) {
        if (channel < channels) {
            store_value(chunk, (u64)local * channels + channel,
                        total != 0.0f ? sums[channel] / total : 0.0f);
        }
    }
}
