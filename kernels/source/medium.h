// What a path is inside of: two numbers of Layers in one word, the medium around the ray and the one around that; 0 is air. Deeper
// nests forget their outermost media.
#pragma once

#include "layout.h"
#include "logarithm.h"
#include "vector.h"

TESSERA_FN u32 medium_around(u32 media) { return media & 0xffffu; }
TESSERA_FN u32 enter_medium(u32 media, u32 medium) { return media << 16 | medium; }

// Leaves a medium, wherever it is in the nest: surfaces may overlap.
TESSERA_FN u32 leave_medium(u32 media, u32 medium) {
    if (medium_around(media) == medium) return media >> 16;
    return media >> 16 == medium ? medium_around(media) : media;
}

TESSERA_FN float medium_ior(const SceneView& scene, u32 media) {
    const u32 medium = medium_around(media);
    return medium == 0 ? 1.0f : scene.layers[medium].ior;
}

// What is left of light after a distance in metres (Beer and Lambert).
TESSERA_FN Vec3 medium_transmittance(const SceneView& scene, u32 media, float distance) {
    const u32 medium = medium_around(media);
    if (medium == 0) return splat(1.0f);
    const float* absorption = scene.layers[medium].absorption;
    const float scale = -LOG2_E * distance;
    return vec3(exp2_(absorption[0] * scale), exp2_(absorption[1] * scale), exp2_(absorption[2] * scale));
}
