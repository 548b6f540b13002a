// What a path is inside of: a nest of four media in one word, their numbers in bytes, 0 for air.
// The lowest byte is the medium that the ray is in; behind it stand those that it is in as well, by
// priority, and among equals the last that was entered first (Schmidt and Budge 2002, "Simple
// Nested Dielectrics in Ray Traced Images", section 3). Deeper nests forget what stands last.
#pragma once

#include "layout.h"
#include "math/logarithm.h"
#include "math/vector.h"

const u32 NEST_BITS = 32;
const u32 MEDIUM_BITS = 8;

TESSERA_FN u32 medium_around(u32 media) { return media & 0xffu; }

// The nest on the inner side of a medium's surface.
TESSERA_FN u32 enter_medium(const SceneView& scene, u32 media, u32 medium) {
    const i32 priority = scene.media[medium].priority;
    u32 at = 0;
    while (at < NEST_BITS && scene.media[media >> at & 0xffu].priority > priority)
        at += MEDIUM_BITS;
    if (at == NEST_BITS) return media;
    const u32 before = (1u << at) - 1u;
    return (media & before) | medium << at | (media & ~before) << MEDIUM_BITS;
}

// The nest on its outer side: surfaces may overlap, so that the medium may be anywhere in the nest.
TESSERA_FN u32 leave_medium(u32 media, u32 medium) {
    u32 at = 0;
    while (at < NEST_BITS && (media >> at & 0xffu) != medium) at += MEDIUM_BITS;
    if (at == NEST_BITS) return media;
    const u32 before = (1u << at) - 1u;
    return (media & before) | (media >> MEDIUM_BITS & ~before);
}

// What a path meets at a surface.
struct Crossing {
    u32 behind;   // the nest on its other side
    // another medium, which comes before this one, is on both sides: nothing is to be seen here
    bool hidden;
};

// `medium`: what the surface encloses, 0 for nothing.
TESSERA_FN Crossing cross_surface(const SceneView& scene, u32 media, u32 medium, bool front) {
    Crossing crossing;
    crossing.behind = media;
    crossing.hidden = false;
    if (medium == 0) return crossing;
    crossing.behind = front ? enter_medium(scene, media, medium) : leave_medium(media, medium);
    // A medium that is left and was never entered (a camera stood in it, or the nest was too deep)
    // is no reason to hide its surface.
    crossing.hidden = front ? medium_around(crossing.behind) != medium
                            : medium_around(media) != medium && crossing.behind != media;
    return crossing;
}

// What is left of light after a distance in metres (Beer and Lambert).
TESSERA_FN Vec3 medium_transmittance(const SceneView& scene, u32 media, float distance) {
    const u32 medium = medium_around(media);
    if (medium == 0) return splat(1.0f);
    const float* absorption = scene.media[medium].absorption;
    const float scale = -LOG2_E * distance;
    return vec3(exp2_(absorption[0] * scale), exp2_(absorption[1] * scale),
                exp2_(absorption[2] * scale));
}
