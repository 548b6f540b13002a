// Ray and triangle: the watertight test of Woop, Benthin and Wald ("Watertight Ray/Triangle
// Intersection", JCGT 2(1), 2013), without fused operations.
//
// The corners are moved to the ray's origin and sheared so that the ray runs along its longest
// axis; what is left is whether the origin of a plane lies in a triangle of that plane. A corner
// goes to the same point of the plane from whichever triangle it is seen. The edge functions are
// differences of two products; rounding is monotone, so a computed difference never has the wrong
// sign, though it may be zero. Zero counts as inside. So a ray that passes a closed mesh, edges and
// corners included, is in the computed inside of at least one of its triangles. A fused operation
// would round the two products differently and break that, and be slow where there is none.
//
// Sides are not told apart. Both signs of the area hit.
#pragma once

#include "bvh/box.h"

// A corner of a triangle as the ray's axes see it, the longest last.
template <class F>
struct CornerOf {
    F a, b, c;
};
typedef CornerOf<float> Corner;

// What the ray does to every corner.
struct Shear {
    Corner origin;
    float a, b;
};

TESSERA_FN Shear shear_of(const TraversalRay& ray) {
    Shear shear;
    shear.origin.a = along(ray.origin, ray.axis[0]);
    shear.origin.b = along(ray.origin, ray.axis[1]);
    shear.origin.c = along(ray.origin, ray.axis[2]);
    shear.a = ray.shear[0];
    shear.b = ray.shear[1];
    return shear;
}

// Barycentric numerators of the three corners and of the distance.
template <class F>
struct TriangleTestOf {
    F w0, w1, w2, distance;
};
typedef TriangleTestOf<float> TriangleTest;

template <class F>
TESSERA_SMALL_FN TriangleTestOf<F> test_triangle(const Shear& shear, CornerOf<F> p0, CornerOf<F> p1,
                                                 CornerOf<F> p2) {
    const F z0 = p0.c - shear.origin.c, z1 = p1.c - shear.origin.c, z2 = p2.c - shear.origin.c;
    const F x0 = (p0.a - shear.origin.a) - shear.a * z0,
            y0 = (p0.b - shear.origin.b) - shear.b * z0;
    const F x1 = (p1.a - shear.origin.a) - shear.a * z1,
            y1 = (p1.b - shear.origin.b) - shear.b * z1;
    const F x2 = (p2.a - shear.origin.a) - shear.a * z2,
            y2 = (p2.b - shear.origin.b) - shear.b * z2;
    TriangleTestOf<F> test;
    test.w0 = x2 * y1 - y2 * x1;
    test.w1 = x0 * y2 - y0 * x2;
    test.w2 = x1 * y0 - y1 * x0;
    test.distance = (test.w0 * z0 + test.w1 * z1) + test.w2 * z2;
    return test;
}

template <class F>
TESSERA_SMALL_FN F least_edge(const TriangleTestOf<F>& test) {
    return lesser_(lesser_(test.w0, test.w1), test.w2);
}
template <class F>
TESSERA_SMALL_FN F greatest_edge(const TriangleTestOf<F>& test) {
    return greater_(greater_(test.w0, test.w1), test.w2);
}

// Whether the ray's line passes the triangle (or nearly: see finish_triangle).
TESSERA_FN bool passes(const TriangleTest& test) {
    return 0.0f <= least_edge(test) || greatest_edge(test) <= 0.0f;
}

// A triangle's own box, padded on every side.
TESSERA_FN BoxInterval own_box_interval(const TraversalRay& ray, Vec3 p0, Vec3 p1, Vec3 p2,
                                        float padding) {
    float bounds[2][3];
    const float first[3] = {p0.x, p0.y, p0.z}, second[3] = {p1.x, p1.y, p1.z},
                third[3] = {p2.x, p2.y, p2.z};
    for (u32 k = 0; k < 3; k++) {
        bounds[0][k] = lesser_(lesser_(first[k], second[k]), third[k]) - padding;
        bounds[1][k] = greater_(greater_(first[k], second[k]), third[k]) + padding;
    }
    return box_interval(ray, bounds);
}

// The canonical hit of a triangle that `passes`: true if it is a hit at t_max or before. This and
// test_triangle decide what a hit is; no part of a hierarchy may add to it. Fills everything but
// the triangle's id.
TESSERA_FN bool finish_triangle(const TraversalRay& ray, const TriangleTest& test, Vec3 p0, Vec3 p1,
                                Vec3 p2, float padding, float t_max, Hit* hit) {
    const float area = (test.w0 + test.w1) + test.w2;
    if (area == 0.0f) return false;
    const float inverse_area = 1.0f / area;
    float t = (test.distance * inverse_area) * ray.scale;
    if (!(t > 0.0f && t <= t_max)) return false;
    const BoxInterval own = own_box_interval(ray, p0, p1, p2, padding);
    if (!(own.entry <= own.exit)) return false;
    t = greater_(t, own.entry);
    if (t > t_max) return false;
    hit->t = t;
    hit->u = test.w1 * inverse_area;
    hit->v = test.w2 * inverse_area;
    return true;
}
