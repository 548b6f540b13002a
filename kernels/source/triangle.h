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

// Barycentric numerators of the three corners and of the distance, for four lanes.
struct alignas(16) BlockTest {
    float w0[4];
    float w1[4];
    float w2[4];
    float distance[4];
};

// Fills `test` and returns a bit for every lane whose triangle the ray's line passes (or nearly: see finish_hit).
TESSERA_FN u32 test_block(const TraversalRay& ray, const TriangleBlock& block, BlockTest* test) {
    const u32 a = ray.axis[0], b = ray.axis[1], c = ray.axis[2];
    const float oa = ray.origin[a], ob = ray.origin[b], oc = ray.origin[c];
    const float sa = ray.shear[0], sb = ray.shear[1];
    const float *a0 = block.corner[0][a], *b0 = block.corner[0][b], *c0 = block.corner[0][c];
    const float *a1 = block.corner[1][a], *b1 = block.corner[1][b], *c1 = block.corner[1][c];
    const float *a2 = block.corner[2][a], *b2 = block.corner[2][b], *c2 = block.corner[2][c];
    alignas(16) float least[4];
    alignas(16) float greatest[4];
    alignas(16) const float zero[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    for (u32 k = 0; k < 4; k++) {
        const float z0 = c0[k] - oc, z1 = c1[k] - oc, z2 = c2[k] - oc;
        const float x0 = (a0[k] - oa) - sa * z0, y0 = (b0[k] - ob) - sb * z0;
        const float x1 = (a1[k] - oa) - sa * z1, y1 = (b1[k] - ob) - sb * z1;
        const float x2 = (a2[k] - oa) - sa * z2, y2 = (b2[k] - ob) - sb * z2;
        const float w0 = x2 * y1 - y2 * x1;
        const float w1 = x0 * y2 - y0 * x2;
        const float w2 = x1 * y0 - y1 * x0;
        test->w0[k] = w0;
        test->w1[k] = w1;
        test->w2[k] = w2;
        test->distance[k] = (w0 * z0 + w1 * z1) + w2 * z2;
        least[k] = lesser_(lesser_(w0, w1), w2);
        greatest[k] = greater_(greater_(w0, w1), w2);
    }
    return lanes_not_above4(zero, least) | lanes_not_above4(greatest, zero);
}

// A triangle's own box, padded on every side.
TESSERA_FN BoxInterval own_box_interval(const TraversalRay& ray, const TriangleBlock& block, u32 lane, float padding) {
    float bounds[2][3];
    for (u32 k = 0; k < 3; k++) {
        const float p0 = block.corner[0][k][lane], p1 = block.corner[1][k][lane], p2 = block.corner[2][k][lane];
        bounds[0][k] = lesser_(lesser_(p0, p1), p2) - padding;
        bounds[1][k] = greater_(greater_(p0, p1), p2) + padding;
    }
    return box_interval(ray, bounds);
}

// The canonical hit of one lane that test_block returned: true if it is a hit at t_max or before. This and test_block
// decide what a hit is; no part of a hierarchy may add to it.
TESSERA_FN bool finish_hit(const TraversalRay& ray, const TriangleBlock& block, const BlockTest& test, u32 lane,
                           float padding, float t_max, Hit* hit) {
    const float area = (test.w0[lane] + test.w1[lane]) + test.w2[lane];
    if (area == 0.0f) return false;
    const float inverse_area = 1.0f / area;
    float t = (test.distance[lane] * inverse_area) * ray.scale;
    if (!(t > 0.0f && t <= t_max)) return false;
    const BoxInterval own = own_box_interval(ray, block, lane, padding);
    if (!(own.entry <= own.exit)) return false;
    t = greater_(t, own.entry);
    if (t > t_max) return false;
    hit->t = t;
    hit->u = test.w1[lane] * inverse_area;
    hit->v = test.w2[lane] * inverse_area;
    hit->triangle = block.triangle[lane] & ~BLOCK_ALPHA_FLAG;
    return true;
}
