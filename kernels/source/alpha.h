// Coverage: whether a ray meets a surface whose material has alpha mode MASK or BLEND. Decided by the ray and the triangle
// alone, never by the order in which a hierarchy is walked.
#pragma once

#include "hash.h"
#include "surface.h"

// Share of light that the surface stops at a point: 0 or 1 for MASK, alpha for BLEND, 1 for OPAQUE.
TESSERA_FN float surface_opacity(const SceneView& scene, const Material& material, const Corners& corners) {
    if (material.alpha_mode == ALPHA_OPAQUE) return 1.0f;
    float alpha = material.base_color[3] * blend_color(corners).w;
    if (material.base_color_texture.texture != NONE)
        alpha *= texture_or_white(scene, corners, material.base_color_texture).w;
    if (material.alpha_mode == ALPHA_MASK) return alpha >= material.alpha_cutoff ? 1.0f : 0.0f;
    return saturate_(alpha);
}

// Whether the ray with this key is stopped by the triangle at (u, v).
TESSERA_FN bool alpha_accepts(const SceneView& scene, u32 ray_key, u32 triangle, float u, float v) {
    const Material& material = scene.materials[scene.triangles[triangle].material];
    const float opacity = surface_opacity(scene, material, corners_of(scene, triangle, u, v));
    return unit_from_bits(hash_pair(ray_key, triangle)) < opacity;
}
