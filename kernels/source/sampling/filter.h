// Pixel filters by inversion: a sample's place in the picture is drawn from the filter, so that
// every sample belongs to one pixel and weighs 1 (Ernst et al. 2006).
#pragma once

#include "layout.h"
#include "math/vector.h"
#include "sampling/filter_table.h"

const u32 FILTER_STEPS = 128;

// Offset along one axis from the pixel's centre, from a random number and the quantiles of |x|.
template <class F>
TESSERA_FN F filter_quantile(const float* quantiles, F random) {
    const F centred = fma_(2.0f, random, -1.0f);
    const F beyond = sqrt_(1.0f - abs_(centred));
    const F at = (1.0f - beyond) * (float)FILTER_STEPS;
    const auto step = min_u32(word_from_int(int_from_bounded(at)), FILTER_STEPS - 1);
    const F along = at - float_from_int(int_from_word(step));
    return copysign_(lerp_(look_up(quantiles, step), look_up(quantiles, step + 1u), along),
                     centred);
}

// Offset from the pixel's centre in pixels.
template <class F>
TESSERA_FN Vector2<F> filter_sample(u32 filter, Vector2<F> random) {
    if (filter == FILTER_BOX) return vec2(random.x - 0.5f, random.y - 0.5f);
    const float* quantiles =
        filter == FILTER_GAUSSIAN ? GAUSSIAN_QUANTILE : BLACKMAN_HARRIS_QUANTILE;
    return vec2(filter_quantile(quantiles, random.x), filter_quantile(quantiles, random.y));
}
