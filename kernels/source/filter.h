// Pixel filters by inversion: a sample's place in the picture is drawn from the filter, so that every sample belongs to one
// pixel and weighs 1 (Ernst et al. 2006).
#pragma once

#include "filter_table.h"
#include "layout.h"
#include "vector.h"

const u32 FILTER_STEPS = 128;

// Offset along one axis from the pixel's centre, from a random number and the quantiles of |x|.
TESSERA_FN float filter_quantile(const float* quantiles, float random) {
    const float centred = fma_(2.0f, random, -1.0f);
    const float beyond = sqrt_(1.0f - abs_(centred));
    const float at = (1.0f - beyond) * (float)FILTER_STEPS;
    const u32 step = min_u32((u32)(i32)at, FILTER_STEPS - 1);
    return copysign_(lerp_(quantiles[step], quantiles[step + 1], at - (float)step), centred);
}

// Offset from the pixel's centre in pixels.
TESSERA_FN Vec2 filter_sample(u32 filter, Vec2 random) {
    if (filter == FILTER_BOX) return vec2(random.x - 0.5f, random.y - 0.5f);
    const float* quantiles = filter == FILTER_GAUSSIAN ? GAUSSIAN_QUANTILE : BLACKMAN_HARRIS_QUANTILE;
    return vec2(filter_quantile(quantiles, random.x), filter_quantile(quantiles, random.y));
}
