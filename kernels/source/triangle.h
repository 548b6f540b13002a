// Ray and triangle: the watertight test of Woop, Benthin and Wald ("Watertight Ray/Triangle Intersection", JCGT 2(1),
// 2013), four triangles at a time, without fused operations.
//
// The corners are moved to the ray's origin and sheared so that the ray runs along its longest axis; what is left is
// whether the origin of a plane lies in a triangle of that plane. A corner goes to the same point of the plane from
// whichever triangle it is seen. The edge functions are differences of two products; rounding is monotone, so a
// computed difference never has the wrong sign, though it may be zero. Zero counts as inside. So a ray that passes a
// closed mesh, edges and corners included, is in the computed inside of at least one of its triangles. A fused
// operation would round the two products differently and break that, and be slow where there is none.
//
// Sides are not told apart. Both signs of the area hit.
#pragma once

#include "box.h"

// A corner of a triangle as the ray's axes see it, the longest last.
struct Corner {
    float a, b, c;
};

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
struct TriangleTest {
    float w0, w1, w2, distance;
};

TESSERA_FN TriangleTest test_triangle(const Shear& shear, Corner p0, Corner p1, Corner p2) {
    const float z0 = p0.c - shear.origin.c, z1 = p1.c - shear.origin.c, z2 = p2.c - shear.origin.c;
    const float x0 = (p0.a - shear.origin.a) - shear.a * z0, y0 = (p0.b - shear.origin.b) - shear.b * z0;
    const float x1 = (p1.a - shear.origin.a) - shear.a * z1, y1 = (p1.b - shear.origin.b) - shear.b * z1;
    const float x2 = (p2.a - shear.origin.a) - shear.a * z2, y2 = (p2.b - shear.origin.b) - shear.b * z2;
    TriangleTest test;
    test.w0 = x2 * y1 - y2 * x1;
    test.w1 = x0 * y2 - y0 * x2;
    test.w2 = x1 * y0 - y1 * x0;
    test.distance = (test.w0 * z0 + test.w1 * z1) + test.w2 * z2;
    return test;
}

TESSERA_FN float least_edge(const TriangleTest& test) { return lesser_(lesser_(test.w0, test.w1), test.w2); }
TESSERA_FN float greatest_edge(const TriangleTest& test) { return greater_(greater_(test.w0, test.w1), test.w2); }

// Whether the ray's line passes the triangle (or nearly: see finish_hit).
TESSERA_FN bool passes(const TriangleTest& test) { return 0.0f <= least_edge(test) || greatest_edge(test) <= 0.0f; }

// The same for the four lanes of a block.
struct alignas(16) BlockTest {
    float w0[4];
    float w1[4];
    float w2[4];
    float distance[4];
};

TESSERA_FN Corner corner_of(const float* a, const float* b, const float* c, u32 lane) {
    Corner corner;
    corner.a = a[lane];
    corner.b = b[lane];
    corner.c = c[lane];
    return corner;
}

// Fills `test` and returns a bit for every lane whose triangle the ray's line passes.
TESSERA_FN u32 test_block(const TraversalRay& ray, const TriangleBlock& block, BlockTest* test) {
    const u32 a = ray.axis[0], b = ray.axis[1], c = ray.axis[2];
    const Shear shear = shear_of(ray);
    alignas(16) float least[4];
    alignas(16) float greatest[4];
    alignas(16) const float zero[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    for (u32 k = 0; k < 4; k++) {
        const TriangleTest one = test_triangle(shear, corner_of(block.corner[0][a], block.corner[0][b], block.corner[0][c], k),
                                               corner_of(block.corner[1][a], block.corner[1][b], block.corner[1][c], k),
                                               corner_of(block.corner[2][a], block.corner[2][b], block.corner[2][c], k));
        test->w0[k] = one.w0;
        test->w1[k] = one.w1;
        test->w2[k] = one.w2;
        test->distance[k] = one.distance;
        least[k] = least_edge(one);
        greatest[k] = greatest_edge(one);
    }
    return lanes_not_above4(zero, least) | lanes_not_above4(greatest, zero);
}

// A triangle's own box, padded on every side.
TESSERA_FN BoxInterval own_box_interval(const TraversalRay& ray, Vec3 p0, Vec3 p1, Vec3 p2, float padding) {
    float bounds[2][3];
    const float first[3] = {p0.x, p0.y, p0.z}, second[3] = {p1.x, p1.y, p1.z}, third[3] = {p2.x, p2.y, p2.z};
    for (u32 k = 0; k < 3; k++) {
        bounds[0][k] = lesser_(lesser_(first[k], second[k]), third[k]) - padding;
        bounds[1][k] = greater_(greater_(first[k], second[k]), third[k]) + padding;
    }
    return box_interval(ray, bounds);
}

// The canonical hit of a triangle that `passes`: true if it is a hit at t_max or before. This and test_triangle decide what a
// hit is; no part of a hierarchy may add to it. Fills everything but the triangle's id.
TESSERA_FN bool finish_triangle(const TraversalRay& ray, const TriangleTest& test, Vec3 p0, Vec3 p1, Vec3 p2, float padding,
                                float t_max, Hit* hit) {
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

TESSERA_FN Vec3 block_corner(const TriangleBlock& block, u32 corner, u32 lane) {
    return vec3(block.corner[corner][0][lane], block.corner[corner][1][lane], block.corner[corner][2][lane]);
}

// The canonical hit of one lane that test_block returned.
TESSERA_FN bool finish_hit(const TraversalRay& ray, const TriangleBlock& block, const BlockTest& test, u32 lane,
                           float padding, float t_max, Hit* hit) {
    TriangleTest one;
    one.w0 = test.w0[lane];
    one.w1 = test.w1[lane];
    one.w2 = test.w2[lane];
    one.distance = test.distance[lane];
    hit->triangle = block.triangle[lane] & ~BLOCK_ALPHA_FLAG;
    return finish_triangle(ray, one, block_corner(block, 0, lane), block_corner(block, 1, lane), block_corner(block, 2, lane),
                           padding, t_max, hit);
}
