// Maps from the unit square to disk, polygon, hemisphere, triangle and tent, with their pdfs.
#pragma once

#include "math/vector.h"

// A point of the unit disk: so far along the x axis, or else the y axis, and turned so much from it
// towards the other one.
template <class F>
struct SpokeOf {
    MaskOf<F> along_x;
    F radius;  // in [-1, 1]
    F turns;   // in [-1/8, 1/8]
};

// Uniform on the unit disk, keeping strata compact (Shirley and Chiu 1997).
template <class F>
TESSERA_FN SpokeOf<F> sample_spoke(Vector2<F> random) {
    const F x = fma_(2.0f, random.x, -1.0f);
    const F y = fma_(2.0f, random.y, -1.0f);
    SpokeOf<F> spoke;
    spoke.along_x = abs_(x) > abs_(y);
    spoke.radius = select(spoke.along_x, x, y);
    const F other = select(spoke.along_x, y, x);
    const F ratio = select(spoke.radius != 0.0f, other / spoke.radius, 0.0f);
    spoke.turns = ratio * 0.125f;
    return spoke;
}

// The point itself.
template <class F>
TESSERA_FN Vector2<F> sample_disk(Vector2<F> random) {
    const SpokeOf<F> spoke = sample_spoke(random);
    const SinCosOf<F> angle = sincos_turns<F>(spoke.turns);
    const F along = spoke.radius * angle.cosine;
    const F across = spoke.radius * angle.sine;
    return vec2(select(spoke.along_x, along, across), select(spoke.along_x, across, along));
}

// A regular polygon in the unit disk.
struct Polygon {
    u32 corners;
    float turn;       // of the first corner from +x, counter-clockwise
    float apothem;    // from the centre to a side
    float half_side;
};

// Uniform on a polygon. Sectors of the disk become the triangles between its centre and its sides,
// equal areas equal areas: a circle the outline of a smaller polygon, and equal angles equal
// lengths of a side. So the map is continuous, and strata stay compact.
template <class F>
TESSERA_FN Vector2<F> sample_polygon(const Polygon& polygon, Vector2<F> random) {
    const SpokeOf<F> spoke = sample_spoke(random);
    const F half = select(spoke.along_x, spoke.turns, 0.25f - spoke.turns);
    const F turns = select(spoke.radius < 0.0f, half + 0.5f, half);
    const float corners = (float)polygon.corners;
    const F place = turns * corners;
    const F side = float_from_int(floor_to_int(place));
    const F radius = abs_(spoke.radius);
    const F out = radius * polygon.apothem;
    const F along = radius * (fma_(2.0f, place - side, -1.0f) * polygon.half_side);
    // of the side
    const SinCosOf<F> middle = sincos_turns<F>((side + 0.5f) / corners + polygon.turn);
    return vec2(fma_(out, middle.cosine, -(along * middle.sine)),
                fma_(out, middle.sine, along * middle.cosine));
}

// Cosine-weighted about +z; pdf z / pi.
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

// Tent pdf 1 - |x| on [-1, 1].
template <class F>
TESSERA_FN F sample_tent(F random) {
    const auto left = random < 0.5f;
    const F folded = select(left, random, 1.0f - random);
    const F root = sqrt_(2.0f * folded) - 1.0f;
    return select(left, root, -root);
}
