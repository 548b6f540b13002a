// The film: fixed-point sums, so that samples may be added in any order and in any split. Owns the
// rounding, and what happens to a value that is not finite or too large.
#pragma once

#include "layout.h"
#include "math/vector.h"

// What one unit cost and what went wrong in it. Mirrored in src/host.rs.
struct RayCounts {
    u64 closest;      // closest-hit rays
    u64 any;          // any-hit (shadow) rays
    u64 clamped;      // samples with a value beyond FILM_VALUE_MAX
    u64 non_finite;   // samples dropped because a value was NaN or infinite
};

// Value times 2^24 to the nearest integer; `value` is finite and at most FILM_VALUE_MAX in
// magnitude. Every step but the last choice is exact, so there is nothing for machines to disagree
// about.
TESSERA_FN i64 film_fixed(float value) {
    const float scaled = value * 16777216.0f;
    const i64 truncated = (i64)scaled;
    const float rest = scaled - (float)truncated;
    return truncated + (i64)(rest >= 0.5f) - (i64)(rest <= -0.5f);
}

// One sample's values, in the order of the film's channels.
struct FilmSample {
    float values[CHANNELS_MAX];
};

// Adds a sample to pixel `pixel` of a film of `plane` pixels a channel. A sample with any value
// that is not finite adds nothing at all, and is counted.
TESSERA_FN void film_add(i64* film, u32 channels, u64 plane, u64 pixel, const FilmSample& sample,
                         RayCounts* counts) {
    bool finite = true;
    bool inside = true;
    for (u32 channel = 0; channel < channels; ++channel) {
        finite = finite && is_finite(sample.values[channel]);
        inside = inside && abs_(sample.values[channel]) <= FILM_VALUE_MAX;
    }
    if (!finite) {
        add_to_count(&counts->non_finite, 1);
        return;
    }
    if (!inside) add_to_count(&counts->clamped, 1);
    for (u32 channel = 0; channel < channels; ++channel) {
        const float value = clamp_(sample.values[channel], -FILM_VALUE_MAX, FILM_VALUE_MAX);
        add_to_sum(film + channel * plane + pixel, film_fixed(value));
    }
}
