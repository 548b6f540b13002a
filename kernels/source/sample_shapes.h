// Maps from the unit square to disk, hemisphere, triangle and tent, with their densities.
#pragma once

#include "vector.h"

// Uniform on the unit disk, keeping strata compact (Shirley and Chiu 1997).
TESSERA_FN Vec2 sample_disk(Vec2 random) {
    const float x = fma_(2.0f, random.x, -1.0f);
    const float y = fma_(2.0f, random.y, -1.0f);
    const bool wide = abs_(x) > abs_(y);
    const float radius = wide ? x : y;
    const float other = wide ? y : x;
    const float ratio = radius != 0.0f ? other / radius : 0.0f;
    const SinCos angle = sincos_turns(ratio * 0.125f);
    const float along = radius * angle.cosine;
    const float across = radius * angle.sine;
    return wide ? vec2(along, across) : vec2(across, along);
}

// Cosine-weighted about +z; density z / pi.
TESSERA_FN Vec3 sample_cosine(Vec2 random) {
    const Vec2 disk = sample_disk(random);
    const float squared = max_(0.0f, 1.0f - fma_(disk.x, disk.x, disk.y * disk.y));
    return vec3(disk.x, disk.y, sqrt_(squared));
}

// Barycentric coordinates (of the second and third corner), uniform by area.
TESSERA_FN Vec2 sample_triangle(Vec2 random) {
    const float root = sqrt_(random.x);
    return vec2(root * (1.0f - random.y), root * random.y);
}

// Tent density 1 - |x| on [-1, 1].
TESSERA_FN float sample_tent(float random) {
    const bool left = random < 0.5f;
    const float folded = left ? random : 1.0f - random;
    const float root = sqrt_(2.0f * folded) - 1.0f;
    return left ? root : -root;
}
