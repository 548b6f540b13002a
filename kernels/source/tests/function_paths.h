// Whole queries and stages of a path, by themselves (functions.h).
#pragma once

#include "bvh/compressed.h"
#include "integrator/trace_path.h"
#include "tests/function_words.h"

TESSERA_FN void unit_closest(const SceneView& scene, const Words& w) {
    Hit hit = {0.0f, 0u, 0.0f, 0.0f};
    const bool found =
        intersect_closest(scene, *w.hierarchy, ray_from(w), unit_coverage(w, 6), &hit);
    give3(w, 0, found ? vec3(hit.t, hit.u, hit.v) : splat(0.0f));
    w.out[3] = found ? hit.triangle : NONE;
}

// A ray that ends where it meets a triangle, so that rounding decides whether it does.
TESSERA_FN void unit_any(const SceneView& scene, const Words& w) {
    if (scene.triangle_count == 0) return give_none(w, 0, 1);
    const Vec2 at = sample_triangle(real2(w, 3));
    Ray ray;
    ray.origin = real3(w, 0);
    ray.direction =
        triangle_point(scene.triangles[w.in[5] % scene.triangle_count], at.x, at.y) - ray.origin;
    ray.t_max = 1.0f;
    w.out[0] = optical_depth_along(scene, *w.hierarchy, ray, unit_width(w.in[6]));
}

// A unit of 64 x 64 pixels with every AOV; with a bound of light where a bit says so.
TESSERA_FN UnitParams unit_of_tests(u32 filter, u32 bits) {
    UnitParams unit = {};
    unit.frame_width = unit.frame_height = unit.width = unit.height = 64;
    unit.sample_count = 1;
    unit.depth = 4;
    unit.aovs = AOV_ALBEDO | AOV_NORMAL | AOV_DEPTH | AOV_POSITION;
    unit.filter = filter;
    unit.clamp = (bits & 64u) != 0 ? 0.3f : 0.0f;
    return unit;
}

TESSERA_FN void unit_generate(const SceneView& scene, const Words& w) {
    const UnitParams unit = unit_of_tests(w.in[4] % 3u, 0u);
    const PathState state = generate(scene, unit, w.in[0] & 63u, w.in[1] & 63u, w.in[2], w.in[3]);
    give_ray(w, 0, state.ray);
    w.out[7] = coverage_of(state.sampler, 0, cone_of(scene, unit, state)).sampler.key;
    w.out[8] = state.sampler.key;
    w.out[9] = state.sampler.reversed_index;
    w.out[10] = coverage_of(state.sampler, w.in[4] & 7u, cone(0.0f, 0.0f)).sampler.key;
    give2(w, 11, vec2(cone_of(scene, unit, state).width, cone_of(scene, unit, state).spread));
}

// A path that has scattered `depth` times.
TESSERA_FN PathState state_from(Vec3 direction, u32 key, u32 index, u32 depth) {
    PathState state;
    state.sampler = make_sampler(key, index);
    state.depth = depth;
    state.passes = key & 1u & depth;
    state.ray.origin = splat(0.0f);
    state.ray.direction = direction;
    state.ray.t_max = FAR_LIMIT;
    state.width = unit_width(key);
    state.throughput = splat(1.0f);
    state.radiance = splat(0.0f);
    state.pdf = depth == state.passes ? 0.0f : 0.5f;
    state.cosine = 0.5f;
    state.vantage = pack_vantage(splat(0.25f), direction);
    state.media = 0;
    return state;
}

TESSERA_FN void unit_miss(const SceneView& scene, const Words& w) {
    PathState state = state_from(unit3(w, 0), 1u, 2u, 1u + (w.in[6] & 1u));
    state.throughput = real3(w, 3);
    shade_miss(scene, unit_of_tests(0, w.in[6]), state);
    give3(w, 0, state.radiance);
}

// The path's ray, throughput, shadow ray and radiance after shading.
TESSERA_FN void give_shaded(const Words& w, bool alive, const PathState& state,
                            const ShadowRay& shadow, const FirstHit& first) {
    w.out[0] = (u32)alive | (u32)shadow.wanted << 1;
    give3(w, 1, state.radiance);
    give3(w, 4, first.albedo);
    give3(w, 7, first.normal);
    give3(w, 10, first.position);
    give(w, 13, first.depth);
    if (shadow.wanted) {
        give_ray(w, 14, shadow.ray);
        give3(w, 21, shadow.radiance);
    }
    if (!alive) return;
    give_ray(w, 24, state.ray);
    give3(w, 31, state.throughput);
    give2(w, 34, vec2(state.pdf, state.cosine));
    w.out[36] = state.depth;
    w.out[37] = state.media;
    w.out[38] = state.vantage.normal;
    give(w, 39, state.width);
}

TESSERA_FN void unit_shade(const SceneView& scene, const Words& w) {
    give_none(w, 0, 40);
    if (scene.triangle_count == 0) return;
    const SurfaceInput input = surface_input(scene, w);
    const Hit hit = {2.0f, input.id, input.at.x, input.at.y};
    PathState state = state_from(unit3(w, 3), w.in[6], w.in[7], w.in[8] % 6u);
    state.throughput = real3(w, 9);
    ShadowRay shadow;
    FirstHit first = {};
    const bool alive = shade(scene, unit_of_tests(0, w.in[8]), hit, state, shadow, first);
    give_shaded(w, alive, state, shadow, first);
}

// Words: triangle, point, wo, distance.
TESSERA_FN void unit_layered_surface(const SceneView& scene, const Words& w) {
    give_none(w, 0, 33);
    if (scene.triangle_count == 0 || scene.layers == 0) return;
    const SurfaceInput input = surface_input(scene, w);
    const Triangle& triangle = scene.triangles[input.id];
    const Material& material = scene.materials[triangle.material];
    const Layers& layers = scene.layers[material.layers];
    const Vec3 wo_world = unit3(w, 3);
    const Corners corners = corners_of(scene, input.id, input.at.x, input.at.y, input.width);
    const SurfacePoint point =
        surface_point(scene, triangle, material, corners,
                      normalize_or(triangle_cross(triangle), wo_world), wo_world);
    const LayersTexels texels = layers_texels(scene, layers, corners);
    const AnisotropyFrame frame = anisotropy_frame_of(layers, texels, corners, point.shading);
    const Vec3 coat = coat_normal_at(scene, layers, corners, point.geometric, 1.0f, wo_world);
    const LayeredSurface surface =
        layered_surface(point, layers, texels, 1.5f, frame.strength, coat);
    give3(w, 0, frame.basis.tangent);
    give3(w, 3, frame.basis.bitangent);
    give3(w, 6, surface.f0);
    give3(w, 9, surface.sheen_color);
    give3(w, 12, surface.diffuse_transmission_color);
    give3(w, 15, surface.clearcoat_normal);
    give3(w, 18, vec3(surface.f90, surface.roughness, surface.metallic));
    give3(w, 21, vec3(surface.clearcoat, surface.clearcoat_roughness, surface.sheen_roughness));
    give3(w, 24, vec3(surface.transmission, surface.diffuse_transmission, surface.anisotropy));
    give3(w, 27, vec3(surface.iridescence, surface.film.thickness, surface.eta));
    give3(w, 30, medium_transmittance(scene, layers.medium, 2.0f * real(w, 6)));
}

// As shade, with the nest of media around the path in the last word: any two.
TESSERA_FN void unit_shade_layered(const SceneView& scene, const Words& w) {
    give_none(w, 0, 40);
    if (scene.triangle_count == 0 || scene.layers == 0) return;
    const SurfaceInput input = surface_input(scene, w);
    const Hit hit = {0.5f, input.id, input.at.x, input.at.y};
    PathState state = state_from(unit3(w, 3), w.in[6], w.in[7], w.in[8] % 6u);
    state.throughput = real3(w, 9);
    const u32 inner = (w.in[12] & 0xffu) % scene.medium_count,
              outer = (w.in[12] >> 8 & 0xffu) % scene.medium_count;
    if (w.in[12] & 0x80000000u) state.media = inner | outer << MEDIUM_BITS;
    ShadowRay shadow;
    FirstHit first = {};
    const bool alive = shade_layered(scene, unit_of_tests(0, w.in[8]), hit, state, shadow, first);
    give_shaded(w, alive, state, shadow, first);
}
