// Functions of three values in [0, 1] that are known at the points of a lattice and interpolated
// in tetrahedra. The points are computed where they are needed.
#pragma once

#include "math/logarithm.h"

struct Color {
    float r;
    float g;
    float b;
};

TESSERA_FN Color color(float r, float g, float b) {
    Color made;
    made.r = r;
    made.g = g;
    made.b = b;
    return made;
}

TESSERA_FN float weigh(float a, float b, float c, const Color& v) {
    return a * v.r + b * v.g + c * v.b;
}

TESSERA_FN float largest(const Color& c) { return max_(max_(c.r, c.g), c.b); }
TESSERA_FN float least(const Color& c) { return min_(min_(c.r, c.g), c.b); }

// Where a value lies between two stops, 0 to 1, and back.
TESSERA_FN float lattice_log(float value, float first, float last) {
    return (log2_(max_(value, 0x1p-126f)) - first) / (last - first);
}
TESSERA_FN float lattice_linear(float log, float first, float last) {
    return exp2_(fma_(log, last - first, first));
}

// `Value::at` at the point `log` of a lattice with `last` + 1 points along each axis. The corners
// of the point's tetrahedron are passed when the coordinates rise to the cell's end, the one with
// the largest rest first.
template <class Value>
TESSERA_FN Color lattice_at(float last, const Color& log) {
    const float place[3] = {saturate_(log.r) * last, saturate_(log.g) * last,
                            saturate_(log.b) * last};
    float corner[3];
    float rest[3];
    for (u32 axis = 0; axis < 3u; axis++) {
        corner[axis] = min_((float)floor_to_int(place[axis]), last - 1.0f);
        rest[axis] = place[axis] - corner[axis];
    }
    const u32 first = rest[0] >= rest[1] ? (rest[0] >= rest[2] ? 0u : 2u)
                                         : (rest[1] >= rest[2] ? 1u : 2u);
    const u32 low = first == 0u ? 1u : 0u;
    const u32 high = first == 2u ? 1u : 2u;
    const u32 second = rest[low] >= rest[high] ? low : high;
    const u32 axes[3] = {first, second, 3u - first - second};
    Color sum = color(0.0f, 0.0f, 0.0f);
    float before = 1.0f;
    for (u32 step = 0; step < 4u; step++) {
        const float next = step < 3u ? rest[axes[step]] : 0.0f;
        const Color found =
            Value::at(color(corner[0] / last, corner[1] / last, corner[2] / last));
        const float weight = before - next;
        sum = color(fma_(found.r, weight, sum.r), fma_(found.g, weight, sum.g),
                    fma_(found.b, weight, sum.b));
        if (step < 3u) corner[axes[step]] += 1.0f;
        before = next;
    }
    return sum;
}
