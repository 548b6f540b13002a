// One path at a time, from its first stage to its last: a device's way through a small unit. Hosts
// take many at a time (stream.h).
#pragma once

#include "integrator/shade_layered.h"

// One sample of one pixel of the frame. `Layered` is false where the scene is known to have no
// layers.
template <bool Layered, class Hierarchy>
TESSERA_FN u32 trace_path(const SceneView& scene, const Hierarchy& hierarchy,
                          const UnitParams& unit, u32 x, u32 y, u32 key, u32 index,
                          FilmSample& sample, RayCounts& counts) {
    PathState state = generate(scene, unit, x, y, key, index);
    FirstHit first = {};
    for (;;) {
        Hit hit;
        counts.closest += 1;
        if (!extend(scene, hierarchy, unit, state, &hit)) {
            shade_miss(scene, unit, state);
            keep_miss(unit, state, first);
            break;
        }
        ShadowRay shadow;
        const bool alive = Layered ? shade_any(scene, unit, hit, state, shadow, first)
                                   : shade(scene, unit, hit, state, shadow, first);
        if (shadow.wanted) {
            counts.any += 1;
            const Ray& ray = shadow.ray;
            state.radiance =
                Layered ? add_light(state.radiance, shadow.radiance,
                                    trace_shadow_panes(scene, hierarchy, ray, state.width))
                        : add_light(state.radiance, shadow.radiance,
                                    trace_shadow(scene, hierarchy, ray, state.width));
        }
        if (!alive) break;
    }
    return finish(unit, state.radiance, first, index, sample);
}
