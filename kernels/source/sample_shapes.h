// Maps from the unit square to disk, hemisphere, triangle and tent, with their densities.
#pragma once

#include "vector.h"

// Uniform on the unit disk, keeping strata compact (Shirley and Chiu 1997).
template <class F>
TESSERA_FN Vector2<F> sample_disk(Vector2<F> random) {
    const F x = fma_(2.0f, random.x, -1.0f);
    const F y = fma_(2.0f, random.y, -1.0f);
    const auto wide = abs_(x) > abs_(y);
    const F radius = select(wide, x, y);
    const F other = select(wide, y, x);
    const F ratio = select(radius != 0.0f, other / radius, 0.0f);
    const SinCosOf<F> angle = sincos_turns<F>(ratio * 0.125f);
    const F along = radius * angle.cosine;
    const F across = radius * angle.sine;
    return vec2(select(wide, along, across), select(wide, across, along));
}

// Cosine-weighted about +z; density z / pi.
template <class F>
TESSERA_FN Vector3<F> sample_cosine(Vector2<F> random) {
    const Vector2<F> disk = sample_disk(random);
    const F squared = max_(0.0f, 1.0f - fma_(disk.x, disk.x, disk.y * disk.y));
    return vec3(disk.x, disk.y, sqrt_(squared));
}

// Barycentric coordinates (of the second and third corner), uniform by area.
template <class F>
TESSERA_FN Vector2<F> sample_triangle(Vector2<F> random) {
    const F root = sqrt_(random.x);
    return vec2(root * (1.0f - random.y), root * random.y);
}

// Tent density 1 - |x| on [-1, 1].
template <class F>
TESSERA_FN F sample_tent(F random) {
    const auto left = random < 0.5f;
    const F folded = select(left, random, 1.0f - random);
    const F root = sqrt_(2.0f * folded) - 1.0f;
    return select(left, root, -root);
}
