// One path at a time, from its first stage to its last: the CPU's way through a unit, and a device's through a small one.
#pragma once

#include "shade_layered.h"

// One sample of one pixel of the frame. `Layered` is false where the scene is known to have no layers.
template <bool Layered, class Hierarchy>
TESSERA_FN u32 trace_path(const SceneView& scene, const Hierarchy& hierarchy, const UnitParams& unit, u32 x, u32 y, u32 key,
                          u32 index, FilmSample& sample, RayCounts& counts) {
    PathState state = generate(scene, unit, x, y, key, index);
    FirstHit first = {};
    for (;;) {
        Hit hit;
        counts.closest += 1;
        if (!extend(scene, hierarchy, unit, state, &hit)) {
            shade_miss(scene, state);
            break;
        }
        ShadowRay shadow;
        const bool alive = Layered ? shade_any(scene, unit, hit, state, shadow, first)
                                   : shade(scene, unit, hit, state, shadow, first);
        if (shadow.wanted) {
            counts.any += 1;
            state.radiance = add_light(state.radiance, shadow.radiance, trace_shadow(scene, hierarchy, shadow.ray, state.width));
        }
        if (!alive) break;
    }
    return finish(unit, state.radiance, first, index, sample);
}

// Adds all samples of a unit to its film.
TESSERA_FN void render_unit(const SceneView& scene, const UnitParams& unit, i64* film, RayCounts& counts) {
    const u64 plane = (u64)unit.width * unit.height;
    for (u32 row = 0; row < unit.height; ++row) {
        for (u32 column = 0; column < unit.width; ++column) {
            const u32 x = unit.x + column;
            const u32 y = unit.y + row;
            const u32 key = pixel_key(x, y, unit.seed, unit.frame);
            const u64 pixel = (u64)row * unit.width + column;
            for (u32 index = 0; index < unit.sample_count; ++index) {
                FilmSample sample;
                const u32 channels =
                    trace_path<true>(scene, WideHierarchy(), unit, x, y, key, unit.first_sample + index, sample, counts);
                film_add(film, channels, plane, pixel, sample, &counts);
            }
        }
    }
}
