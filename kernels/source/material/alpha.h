// Coverage: what of a ray a surface stops whose material has alpha mode MASK or BLEND. A path's ray
// is stopped or not, a shadow ray is dimmed; either is a matter of the ray and the set of
// triangles, never of the order in which a hierarchy is walked.
#pragma once

#include "geometry/surface.h"
#include "math/logarithm.h"
#include "math/ray.h"
#include "sampling/sampler.h"

// Share of light that the surface stops at a point: 0 or 1 for MASK, alpha for BLEND, 1 for OPAQUE.
TESSERA_SMALL_FN float surface_opacity(const SceneView& scene, const Material& material,
                                 const Corners& corners) {
    if (material.alpha_mode == ALPHA_OPAQUE) return 1.0f;
    float alpha = material.base_color[3] * blend_color(corners).w;
    if (material.base_color_texture.texture != NONE) {
        Corners seen = corners;
        // a mean says nothing about a threshold
        if (material.alpha_mode == ALPHA_MASK) seen.footprint = 0.0f;
        alpha *= texture_or_white(scene, seen, material.base_color_texture).w;
    }
    if (material.alpha_mode == ALPHA_MASK) return alpha >= material.alpha_cutoff ? 1.0f : 0.0f;
    return saturate_(alpha);
}

// The same of a hit, for a ray whose cone is `width` metres wide there.
TESSERA_FN float hit_opacity(const SceneView& scene, const Hit& hit, float width) {
    const Material& material = material_at(scene, hit.triangle);
    if (material.alpha_mode == ALPHA_OPAQUE) return 1.0f;
    return surface_opacity(scene, material,
                           corners_of(scene, hit.triangle, hit.u, hit.v, width));
}

// What the alpha of a path's ray is decided by.
struct Coverage {
    Sampler sampler;
    Cone cone;
};

TESSERA_FN const Sampler& sampler_of(const Coverage& coverage) { return coverage.sampler; }
TESSERA_FN const Cone& cone_of_ray(const Coverage& coverage) { return coverage.cone; }

// The opacity of a hit of such a ray. Its cone is asked for where it counts: a walk needs its
// registers.
template <class C>
TESSERA_FN float opacity_along(const SceneView& scene, const Hit& hit, const C& coverage) {
    const Material& material = material_at(scene, hit.triangle);
    if (material.alpha_mode == ALPHA_OPAQUE) return 1.0f;
    const float width = cone_width_at(cone_of_ray(coverage), hit.t);
    return surface_opacity(scene, material,
                           corners_of(scene, hit.triangle, hit.u, hit.v, width));
}

// Of a ray by itself, as wide as nothing.
TESSERA_FN Coverage coverage_of_ray(u32 key, u32 sample) {
    Coverage coverage;
    coverage.sampler = make_sampler(key, sample);
    coverage.cone = cone(0.0f, 0.0f);
    return coverage;
}

// Optical depth: -log2 of the share of light that goes through, in 2^-20. Those of the surfaces in
// a ray's way are added up, and a sum of integers is the same in any order.
const float OPTICAL_DEPTH_UNIT = 0x1p-20f;
// from here on nothing goes through; what is not opaque has at most 24
const u32 OPTICAL_DEPTH_OPAQUE = 32u << 20;

// Of 0 the logarithm is -126, which is more than opaque.
TESSERA_FN u32 optical_depth_of(float opacity) {
    return (u32)floor_to_int(fma_(log2_(1.0f - opacity), -1.0f / OPTICAL_DEPTH_UNIT, 0.5f));
}

TESSERA_FN float transmittance_of(u32 optical_depth) {
    if (optical_depth == 0) return 1.0f;
    return optical_depth < OPTICAL_DEPTH_OPAQUE
               ? exp2_(-(float)(i32)optical_depth * OPTICAL_DEPTH_UNIT)
               : 0.0f;
}

// Whether a ray with this sampler is stopped by a triangle of this opacity. Each triangle is a
// dimension of its own, so that the samples of a pixel are stopped in as even a share as the
// opacity says.
TESSERA_FN bool alpha_accepts(const Sampler& sampler, u32 triangle, float opacity) {
    if (opacity <= 0.0f || opacity >= 1.0f) return opacity > 0.0f;
    return unit_from_bits(draw_bits(sampler, triangle).x) < opacity;
}
