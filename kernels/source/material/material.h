// The material at a point of a surface: textures looked up, normal map applied, sides decided.
#pragma once

#include "bsdf/metallic_roughness.h"
#include "geometry/surface.h"

// A lit point. Normals face the side that the ray came from.
template <class F>
struct SurfacePointOf {
    Vector3<F> position;
    Vector3<F> geometric;  // unit normal of the triangle
    Vector3<F> shading;    // unit shading normal
    Vector3<F> base_color;
    F metallic;
    F roughness;      // perceptual
    F dielectric_f0;  // reflectance at normal incidence of what is not metal
};
typedef SurfacePointOf<float> SurfacePoint;

// Cosine that a shading normal keeps to the viewing direction at least: less, and it is bent
// towards the viewer.
const float FACING_MIN = 1e-3f;

TESSERA_FN Vec3 interpolated_normal(const Corners& corners, Vec3 fallback) {
    return normalize_or(blended_normal(corners), fallback);
}

// Applies a normal map to the front side's shading normal.
TESSERA_FN Vec3 mapped_normal(const SceneView& scene, const TextureRef& use, float scale,
                              const Corners& corners, Vec3 normal) {
    const Vec3 raw = blended_tangent(corners);
    const Vec3 flat = fma3(normal, -dot(normal, raw), raw);
    const float length = dot(flat, flat);
    // the mesh has no tangents, so the map has no orientation
    if (!(length > 1e-12f)) return normal;
    const Vec3 tangent = flat * (1.0f / sqrt_(length));
    const Vec3 bitangent = cross(normal, tangent) * corners.vertex[0]->tangent_sign;
    const Vec4 texel = texture_or_white(scene, corners, use);
    const float x = fma_(2.0f, texel.x, -1.0f) * scale;
    const float y = fma_(2.0f, texel.y, -1.0f) * scale;
    const float z = fma_(2.0f, texel.z, -1.0f);
    return normalize_or(fma3(tangent, x, fma3(bitangent, y, normal * z)), normal);
}

// A shading normal that the viewer sees: turned towards `wo_world` by as little as needed, so that
// no point goes black because interpolation or a normal map tipped it over.
TESSERA_FN Vec3 facing_normal(Vec3 normal, Vec3 wo_world) {
    const float cosine = dot(normal, wo_world);
    if (cosine >= FACING_MIN) return normal;
    return normalize_or(fma3(wo_world, FACING_MIN - cosine, normal), wo_world);
}

TESSERA_FN Vec3 base_color_at(const SceneView& scene, const Material& material,
                              const Corners& corners) {
    Vec3 color = vec3_from(material.base_color) * rgb(blend_color(corners));
    if (material.base_color_texture.texture != NONE)
        color = color * rgb(texture_or_white(scene, corners, material.base_color_texture));
    return color;
}

TESSERA_FN float dielectric_f0_of(const Material& material) {
    const float ratio = (material.ior - 1.0f) / (material.ior + 1.0f);
    return ratio * ratio;
}

// The whole point. `wo_world` is the unit direction back along the ray, `geometric` the front
// side's unit normal.
TESSERA_FN SurfacePoint surface_point(const SceneView& scene, const Triangle& triangle,
                                      const Material& material, const Corners& corners,
                                      Vec3 geometric, Vec3 wo_world) {
    SurfacePoint point;
    point.position = triangle_point(triangle, corners.weight[1], corners.weight[2]);
    Vec3 shading = interpolated_normal(corners, geometric);
    if (material.normal_texture.texture != NONE)
        shading =
            mapped_normal(scene, material.normal_texture, material.normal_scale, corners, shading);
    const float side = dot(geometric, wo_world) < 0.0f ? -1.0f : 1.0f;
    point.geometric = geometric * side;
    point.shading = facing_normal(shading * side, wo_world);
    point.base_color = base_color_at(scene, material, corners);
    point.metallic = material.metallic;
    point.roughness = material.roughness;
    point.dielectric_f0 = dielectric_f0_of(material);
    if (material.metallic_roughness_texture.texture != NONE) {
        const Vec4 texel = texture_or_white(scene, corners, material.metallic_roughness_texture);
        point.roughness *= texel.y;
        point.metallic *= texel.z;
    }
    return point;
}
