// The extensions' parameters at a point of a surface: textures looked up, the frame turned along
// the grain.
#pragma once

#include "bsdf/layered.h"
#include "material/material.h"
#include "medium/medium.h"

// Perceptual roughness, its texture applied, up to which thin glass is a pane: light goes straight
// through, and shadow rays with it. The lobe of rougher glass is more than a degree wide.
const float PANE_ROUGHNESS = 0.1f;

// Whether a material may be a pane somewhere; its roughness decides where.
TESSERA_FN bool may_be_pane(const Material& material) {
    return (material.flags & MATERIAL_PANE) != 0;
}

// What every texture of Layers says at a point; white where there is none.
struct LayersTexels {
    Vec4 at[LAYERS_TEXTURES];
};

TESSERA_FN LayersTexels layers_texels(const SceneView& scene, const Layers& layers,
                                      const Corners& corners) {
    LayersTexels texels;
    TESSERA_ROLLED
    for (u32 which = 0; which < LAYERS_TEXTURES; ++which)
        texels.at[which] = texture_or_white(scene, corners, layers.textures[which]);
    return texels;
}

TESSERA_FN bool is_pane_here(const Material& material, const LayeredSurface& surface) {
    return may_be_pane(material) && surface.roughness <= PANE_ROUGHNESS;
}

// The frame in which the surface is lit: of the shading normal, and where there is a grain with its
// x along it.
struct AnisotropyFrame {
    Basis basis;
    float strength;
};

TESSERA_FN AnisotropyFrame anisotropy_frame_of(const Layers& layers, const LayersTexels& texels,
                                               const Corners& corners, Vec3 normal) {
    AnisotropyFrame frame;
    frame.basis = basis_about(normal);
    frame.strength = layers.anisotropy;
    if (!(frame.strength > 0.0f)) return frame;
    const Vec3 raw = blended_tangent(corners);
    const Vec3 flat = fma3(normal, -dot(normal, raw), raw);
    if (!(dot(flat, flat) > 1e-12f)) return frame;  // no tangents: the grain is along some axis
    const Vec3 tangent = normalize(flat);
    const Vec3 bitangent = cross(normal, tangent) * corners.vertex[0]->tangent_sign;
    float x = 1.0f, y = 0.0f;
    if (layers.textures[LAYERS_ANISOTROPY].texture != NONE) {
        const Vec4 texel = texels.at[LAYERS_ANISOTROPY];
        x = fma_(2.0f, texel.x, -1.0f);
        y = fma_(2.0f, texel.y, -1.0f);
        frame.strength *= texel.z;
    }
    const float along = fma_(layers.anisotropy_cosine, x, -(layers.anisotropy_sine * y));
    const float across = fma_(layers.anisotropy_sine, x, layers.anisotropy_cosine * y);
    frame.basis.tangent = normalize_or(fma3(tangent, along, bitangent * across), tangent);
    frame.basis.bitangent = cross(normal, frame.basis.tangent);
    return frame;
}

// The coat's normal: the mesh's own, or that of its map; on the viewer's side. `side` is -1 for the
// back.
TESSERA_FN Vec3 coat_normal_at(const SceneView& scene, const Layers& layers, const Corners& corners,
                               Vec3 geometric, float side, Vec3 wo_world) {
    Vec3 normal = interpolated_normal(corners, geometric * side);
    const TextureRef& use = layers.textures[LAYERS_CLEARCOAT_NORMAL];
    if (use.texture != NONE)
        normal = mapped_normal(scene, use, layers.clearcoat_normal_scale, corners, normal);
    return facing_normal(normal * side, wo_world);
}

// Reflectance at normal incidence of the dielectric, and at grazing.
TESSERA_FN void layered_dielectric(const Layers& layers, const LayersTexels& texels, float ratio,
                                   LayeredSurface& surface) {
    const Vec3 color = vec3_from(layers.specular_color);
    if (layers.flags & LAYERS_SPECULAR_GLOSSINESS) {
        const Vec4 map = texels.at[LAYERS_SPECULAR_GLOSSINESS_MAP];
        surface.f0 = color * rgb(map);
        surface.f90 = 1.0f;
        surface.metallic = 0.0f;
        surface.roughness = 1.0f - (1.0f - surface.roughness) * map.w;
        surface.base_color = surface.base_color * (1.0f - saturate_(max_component(surface.f0)));
        return;
    }
    const Vec3 f0 = color * rgb(texels.at[LAYERS_SPECULAR_COLOR]) * f0_of_ratio(ratio);
    surface.f90 = layers.specular * texels.at[LAYERS_SPECULAR].w;
    surface.f0 = vec3(min_(f0.x, 1.0f), min_(f0.y, 1.0f), min_(f0.z, 1.0f)) * surface.f90;
}

// All of it but whether it is a pane. `ratio` is the index behind the surface over the one before
// it, `coat_normal` in the frame of the grain.
TESSERA_FN LayeredSurface layered_surface(const SurfacePoint& point, const Layers& layers,
                                          const LayersTexels& texels, float ratio, float anisotropy,
                                          Vec3 coat_normal) {
    LayeredSurface surface;
    surface.base_color = point.base_color;
    surface.metallic = point.metallic;
    surface.roughness = point.roughness;
    layered_dielectric(layers, texels, ratio, surface);
    surface.clearcoat = layers.clearcoat * texels.at[LAYERS_CLEARCOAT].x;
    surface.clearcoat_roughness =
        layers.clearcoat_roughness * texels.at[LAYERS_CLEARCOAT_ROUGHNESS].y;
    surface.clearcoat_normal = coat_normal;
    surface.sheen_color = vec3_from(layers.sheen_color) * rgb(texels.at[LAYERS_SHEEN_COLOR]);
    surface.sheen_roughness = layers.sheen_roughness * texels.at[LAYERS_SHEEN_ROUGHNESS].w;
    surface.transmission = layers.transmission * texels.at[LAYERS_TRANSMISSION].x;
    surface.diffuse_transmission =
        layers.diffuse_transmission * texels.at[LAYERS_DIFFUSE_TRANSMISSION].w;
    surface.diffuse_transmission_color = vec3_from(layers.diffuse_transmission_color) *
                                         rgb(texels.at[LAYERS_DIFFUSE_TRANSMISSION_COLOR]);
    surface.anisotropy = anisotropy;
    surface.iridescence = layers.iridescence * texels.at[LAYERS_IRIDESCENCE].x;
    surface.film.ior = layers.iridescence_ior;
    surface.film.thickness =
        lerp_(layers.iridescence_thickness_min, layers.iridescence_thickness_max,
              texels.at[LAYERS_IRIDESCENCE_THICKNESS].y);
    surface.eta = ratio;
    surface.refracts = layers.medium != 0;
    surface.is_pane = false;
    return surface;
}
