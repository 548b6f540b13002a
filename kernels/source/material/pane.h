// Panes in the way of shadow rays: what thin glass and alpha stop of each channel. A path that goes
// through a pane is a matter of integrator/shade_layered.h, with the same share.
#pragma once

#include "material/alpha.h"
#include "material/layered_surface.h"

// Optical depths of red, green and blue, as optical_depth_of gives them.
struct OpticalDepths {
    u32 red, green, blue;
};

TESSERA_FN bool is_opaque(const OpticalDepths& depths) {
    return depths.red == OPTICAL_DEPTH_OPAQUE && depths.green == OPTICAL_DEPTH_OPAQUE &&
           depths.blue == OPTICAL_DEPTH_OPAQUE;
}

TESSERA_FN void add_depths(OpticalDepths& depths, Vec3 opacity) {
    depths.red = min_u32(depths.red + optical_depth_of(opacity.x), OPTICAL_DEPTH_OPAQUE);
    depths.green = min_u32(depths.green + optical_depth_of(opacity.y), OPTICAL_DEPTH_OPAQUE);
    depths.blue = min_u32(depths.blue + optical_depth_of(opacity.z), OPTICAL_DEPTH_OPAQUE);
}

TESSERA_FN Vec3 transmittances_of(const OpticalDepths& depths) {
    return vec3(transmittance_of(depths.red), transmittance_of(depths.green),
                transmittance_of(depths.blue));
}

// Share of light, a channel, that goes straight through a point of a pane; 0 where it is too rough
// to be one. A pane stands in air, whatever is about it: its two sides are the same.
TESSERA_RARE_FN Vec3 straight_share(const SceneView& scene, const Triangle& triangle,
                                    const Material& material, const Corners& corners,
                                    Vec3 wo_world) {
    const Layers& layers = scene.layers[material.layers];
    const Vec3 geometric = normalize_or(triangle_cross(triangle), wo_world);
    const SurfacePoint point =
        surface_point(scene, triangle, material, corners, geometric, wo_world);
    const Basis basis = basis_about(point.shading);
    const float side = dot(geometric, wo_world) < 0.0f ? -1.0f : 1.0f;
    Vec3 coat_normal = vec3(0.0f, 0.0f, 1.0f);
    if (layers.clearcoat > 0.0f)
        coat_normal = local_from_world(
            basis, coat_normal_at(scene, layers, corners, point.geometric, side, wo_world));
    const LayeredSurface surface = layered_surface(
        point, layers, layers_texels(scene, layers, corners), material.ior, 0.0f, coat_normal);
    return is_pane_here(material, surface)
               ? pane_share_of(surface, local_from_world(basis, wo_world))
               : splat(0.0f);
}

// Share of light, a channel, that the surface of a hit stops of a shadow ray whose cone is `width`
// metres wide there.
TESSERA_FN Vec3 hit_opacities(const SceneView& scene, const Hit& hit, Vec3 direction, float width) {
    const Triangle& triangle = triangle_at(scene, hit.triangle);
    const Material& material = scene.materials[triangle.material];
    const Corners corners = corners_of(scene, hit.triangle, hit.u, hit.v, width);
    const float opacity = surface_opacity(scene, material, corners);
    if (!may_be_pane(material)) return splat(opacity);
    return (splat(1.0f) - straight_share(scene, triangle, material, corners, -direction)) * opacity;
}
