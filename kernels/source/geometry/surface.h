// From a hit to what shading needs: interpolated vertex data, the faces' orientation, texture
// coordinates.
#pragma once

#include "geometry/instance.h"
#include "material/texture.h"
#include "math/ray.h"

// The three corners of a triangle, weighted, and how much of it is asked about.
struct Corners {
    const ShadingVertex* vertex[3];
    const Instance* instance;  // that brings them into the world; null where they are in it
    float weight[3];
    float footprint;  // in areas of the triangle's parallelogram; 0 for the point alone
};

// Not normalised: its length is twice the area.
TESSERA_FN Vec3 triangle_cross(const Triangle& triangle) {
    const Vec3 first = vec3_from(triangle.v0);
    return cross(vec3_from(triangle.v1) - first, vec3_from(triangle.v2) - first);
}

// `width`: of what is asked about there, in metres.
TESSERA_FN Corners corners_of(const SceneView& scene, u32 triangle, float u, float v, float width) {
    Corners corners;
    corners.instance = 0;
    const u32* ids = scene.triangle_vertices + 3 * (u64)triangle;
    const ShadingVertex* vertices = scene.vertices;
    if (is_instanced(scene, triangle)) {
        corners.instance = &instance_of(scene, triangle);
        ids = scene.mesh_triangle_vertices + 3 * mesh_triangle_of(*corners.instance, triangle);
        vertices = scene.mesh_vertices;
    }
    for (u32 corner = 0; corner < 3; ++corner) corners.vertex[corner] = vertices + ids[corner];
    corners.weight[0] = 1.0f - u - v;
    corners.weight[1] = u;
    corners.weight[2] = v;
    corners.footprint = 0.0f;
    if (width > 0.0f) {
        const Vec3 across = triangle_cross(triangle_at(scene, triangle));
        corners.footprint = width * width / max_(sqrt_(dot(across, across)), 1e-30f);
    }
    return corners;
}

TESSERA_FN float blend(const Corners& corners, float a, float b, float c) {
    return fma_(corners.weight[0], a, fma_(corners.weight[1], b, corners.weight[2] * c));
}

TESSERA_FN Vec3 blend3(const Corners& corners, Vec3 a, Vec3 b, Vec3 c) {
    return vec3(blend(corners, a.x, b.x, c.x), blend(corners, a.y, b.y, c.y),
                blend(corners, a.z, b.z, c.z));
}

TESSERA_FN Vec3 corner_normal(const Corners& corners, u32 corner) {
    const float* normal = corners.vertex[corner]->normal;
    if (HAS_INSTANCES && corners.instance)
        return placed_direction(corners.instance->normal_from_mesh, normal);
    return vec3_from(normal);
}

TESSERA_FN Vec3 corner_tangent(const Corners& corners, u32 corner) {
    const float* tangent = corners.vertex[corner]->tangent;
    if (HAS_INSTANCES && corners.instance)
        return placed_direction(corners.instance->tangent_from_mesh, tangent);
    return vec3_from(tangent);
}

// Of the vertices, not normalised.
TESSERA_FN Vec3 blended_normal(const Corners& corners) {
    return blend3(corners, corner_normal(corners, 0), corner_normal(corners, 1),
                  corner_normal(corners, 2));
}

TESSERA_FN Vec3 blended_tangent(const Corners& corners) {
    return blend3(corners, corner_tangent(corners, 0), corner_tangent(corners, 1),
                  corner_tangent(corners, 2));
}

TESSERA_FN Vec4 blend_color(const Corners& corners) {
    const float* a = corners.vertex[0]->color;
    const float* b = corners.vertex[1]->color;
    const float* c = corners.vertex[2]->color;
    return vec4(blend(corners, a[0], b[0], c[0]), blend(corners, a[1], b[1], c[1]),
                blend(corners, a[2], b[2], c[2]), blend(corners, a[3], b[3], c[3]));
}

// Where a use of a texture looks it up: a point of uv, and the area about it.
struct TexturePlace {
    Vec2 uv;
    float footprint;
};

TESSERA_FN TexturePlace texture_place(const Corners& corners, const TextureRef& use) {
    const Vec2 a = vertex_uv(*corners.vertex[0], use.uv_set);
    const Vec2 b = vertex_uv(*corners.vertex[1], use.uv_set);
    const Vec2 c = vertex_uv(*corners.vertex[2], use.uv_set);
    const float u = blend(corners, a.x, b.x, c.x);
    const float v = blend(corners, a.y, b.y, c.y);
    const float* map = use.uv_from_mesh;
    TexturePlace place;
    place.uv =
        vec2(fma_(map[0], u, fma_(map[1], v, map[2])), fma_(map[3], u, fma_(map[4], v, map[5])));
    place.footprint = 0.0f;
    if (corners.footprint > 0.0f) {
        const float stretch = fma_(map[0], map[4], -(map[1] * map[3]));
        const float area = fma_(b.x - a.x, c.y - a.y, -((c.x - a.x) * (b.y - a.y)));
        place.footprint = abs_(area * stretch) * corners.footprint;
    }
    return place;
}

// White where the texture is absent.
TESSERA_FN Vec4 texture_or_white(const SceneView& scene, const Corners& corners,
                                 const TextureRef& use) {
    if (use.texture == NONE) return vec4(1.0f, 1.0f, 1.0f, 1.0f);
    const TexturePlace place = texture_place(corners, use);
    return sample_texture(scene, use.texture, place.uv, place.footprint);
}

TESSERA_FN Vec3 triangle_point(const Triangle& triangle, float u, float v) {
    const Vec3 first = vec3_from(triangle.v0);
    return fma3(vec3_from(triangle.v1) - first, u, fma3(vec3_from(triangle.v2) - first, v, first));
}

// Radiance that a triangle emits at a point of it, whichever side is asked (see emits_towards).
TESSERA_FN Vec3 emitted_radiance(const SceneView& scene, const Material& material,
                                 const Corners& corners) {
    const Vec3 factor = vec3_from(material.emission);
    if (material.emission_texture.texture == NONE) return factor;
    return factor * rgb(texture_or_white(scene, corners, material.emission_texture));
}

// A single-sided surface emits from its front only; `cosine` is between its outward normal and the
// receiver.
TESSERA_FN bool emits_towards(const Triangle& triangle, float cosine) {
    return cosine > 0.0f || (triangle.flags & TRIANGLE_DOUBLE_SIDED) != 0;
}
