// The path tracer's stages: generate, extend, shade, shadow, finish. Each takes a path's state and
// leaves it for the next; the order in which paths are taken cannot matter, because a path's
// numbers depend on its pixel and sample index alone.
#pragma once

#include "bvh/traverse.h"
#include "camera/camera.h"
#include "integrator/shading.h"
#include "sampling/filter.h"

// Generate: the camera ray of one sample of the pixel at (x, y). Pixels left of the frame and above
// it have negative places.
template <class F, class Word>
TESSERA_FN PathStateOf<F> generate_at(const SceneView& scene, const UnitParams& unit, F x, F y,
                                      Word key, Word sample) {
    PathStateOf<F> state;
    state.sampler = make_sampler(key, sample);
    state.depth = 0u;
    state.passes = 0u;
    const Vector2<F> offset = filter_sample(unit.filter, draw(state.sampler, DIMENSION_PIXEL));
    const bool lens = scene.camera.kind == CAMERA_PERSPECTIVE && scene.camera.lens_radius > 0.0f;
    Vector2<F> aperture = vec2<F>(0.0f, 0.0f);
    if (lens) aperture = sample_lens(scene.camera, draw(state.sampler, DIMENSION_LENS));
    const F across = (x + 0.5f + offset.x) / (float)unit.frame_width;
    const F down = (y + 0.5f + offset.y) / (float)unit.frame_height;
    state.ray =
        camera_ray<F>(scene.camera, fma_(2.0f, across, -1.0f), fma_(-2.0f, down, 1.0f), aperture);
    state.width = 0.0f;
    state.throughput = splat<F>(1.0f);
    state.radiance = splat<F>(0.0f);
    state.pdf = 0.0f;
    state.cosine = 0.0f;
    state.vantage.point = splat<F>(0.0f);
    state.vantage.normal = 0u;
    state.media = 0u;
    return state;
}

TESSERA_FN PathState generate(const SceneView& scene, const UnitParams& unit, u32 x, u32 y, u32 key,
                              u32 sample) {
    return generate_at(scene, unit, (float)(i32)x, (float)(i32)y, key, sample);
}

// Extend: the closest surface along the path's ray.
template <class Hierarchy>
TESSERA_FN bool extend(const SceneView& scene, const Hierarchy& hierarchy, const UnitParams& unit,
                       const PathState& state, Hit* hit) {
    const Coverage coverage = coverage_of(state.sampler, state.depth, cone_of(scene, unit, state));
    return intersect_closest(scene, hierarchy, state.ray, coverage, hit);
}

// Shade, part one: the ray left the scene. The camera does not see the environment where coverage
// is asked for.
template <class F>
TESSERA_FN void shade_miss(const SceneView& scene, const UnitParams& unit, PathStateOf<F>& state) {
    const Environment& environment = scene.environment;
    if (!environment.present) return;
    const auto scattered = !(state.pdf == 0.0f);
    const bool lit = any(scattered) && environment.light != NONE;
    EnvironmentValue<F> value;
    if (environment_is_map(environment)) {
        value = environment_map_value(scene, state.ray.direction, lit);
    } else {
        value.radiance = vec3_from<F>(environment.constant);
        value.pdf = state.cosine * INVERSE_PI;
    }
    F weight = select(scattered, F(1.0f), (unit.aovs & AOV_COVERAGE) != 0 ? 0.0f : 1.0f);
    if (lit) {
        const float pick = scene.lights[environment.light].pick_probability;
        weight = select(scattered, mis_weight<F>(state.pdf, value.pdf * pick), weight);
    }
    add_emission(unit, state, state.throughput * value.radiance, weight);
}

// A surface that scatters, as shading sees it.
template <class F>
struct ReflectionOf {
    BasisOf<F> basis;
    BsdfOf<F> bsdf;
};
typedef ReflectionOf<float> Reflection;

template <class F>
TESSERA_FN ReflectionOf<F> reflection_of(const SurfacePointOf<F>& point, Vector3<F> wo_world) {
    ReflectionOf<F> reflection;
    reflection.basis = basis_about(point.shading);
    reflection.bsdf = make_bsdf(point.base_color, point.metallic, point.roughness,
                                point.dielectric_f0, local_from_world(reflection.basis, wo_world));
    return reflection;
}

// Shade, part two: one light sample, left for the shadow stage.
template <class F>
TESSERA_FN ShadowRayOf<F> shade_light(const SceneView& scene, const UnitParams& unit,
                                      PathStateOf<F>& state, const SurfacePointOf<F>& point,
                                      const ReflectionOf<F>& reflection, Same<WordOf<F>> choice) {
    ShadowRayOf<F> shadow;
    shadow.wanted = MaskOf<F>();
    if (scene.light_count == 0) return shadow;
    const LightDrawOf<F> drawn = draw_light(scene, state, point, choice);
    const LightSampleOf<F>& light = drawn.light;
    const auto seen = light.valid && !(dot(light.direction, point.geometric) <= 0.0f);
    if (!any(seen)) return shadow;
    const BsdfValueOf<F> value =
        bsdf_evaluate(reflection.bsdf, local_from_world(reflection.basis, light.direction));
    make_shadow_ray<F>(unit, state, light, light.radiance, value, drawn.origin, seen, shadow);
    return shadow;
}

// Shade, part three: the next ray. False where the path ends.
template <class F>
TESSERA_FN MaskOf<F> shade_scatter(PathStateOf<F>& state, const SurfacePointOf<F>& point,
                                   const ReflectionOf<F>& reflection, Same<F> choice) {
    const Vector2<F> random =
        draw(state.sampler, scatter_dimension(state.depth, SCATTER_DIRECTION));
    const BsdfSampleOf<F> sample = bsdf_sample(reflection.bsdf, choice, random);
    if (!any(sample.valid)) return sample.valid;
    const Vector3<F> direction = world_from_local(reflection.basis, sample.wi);
    const auto leaves = sample.valid && !(dot(direction, point.geometric) <= 0.0f);
    if (!any(leaves)) return leaves;
    state.cosine = sample.wi.z;
    return scatter_to<F>(state, sample, direction, point.position, point.geometric, leaves);
}

// Shade, as far as textures are asked: adds what the hit emits, and finds the point that is to
// scatter. False where the path ends.
template <class First>
TESSERA_FN bool shade_surface(const SceneView& scene, const UnitParams& unit, const Hit& hit,
                              PathState& state, First& first, SurfacePoint& point) {
    const Triangle& triangle = triangle_at(scene, hit.triangle);
    const SurfaceHit surface = surface_hit(scene, unit, hit, triangle, state);
    shade_emission(scene, unit, state, surface, dot(surface.geometric, surface.wo_world));
    if (ends_at(unit, state, surface)) return false;
    return shade_point(scene, unit, surface, state, first, point);
}

// Shade: adds what the hit emits, chooses a light sample and the next ray. False where the path
// ends; the shadow ray is wanted or not either way. For plain materials in no medium; shade_layered
// does the others.
template <class First>
TESSERA_FN bool shade(const SceneView& scene, const UnitParams& unit, const Hit& hit,
                      PathState& state, ShadowRay& shadow, First& first) {
    shadow.wanted = false;
    SurfacePoint point;
    if (!shade_surface(scene, unit, hit, state, first, point)) return false;
    const Reflection reflection = reflection_of(point, -state.ray.direction);
    const Bits2 choice = draw_bits(state.sampler, scatter_dimension(state.depth, SCATTER_CHOICE));
    shadow = shade_light(scene, unit, state, point, reflection, choice.x);
    return shade_scatter(state, point, reflection, unit_from_bits(choice.y));
}

// Shadow: the share of the light sample's radiance that gets here. `width`: of the path's cone,
// where it is.
template <class Hierarchy>
TESSERA_FN float trace_shadow(const SceneView& scene, const Hierarchy& hierarchy, const Ray& ray,
                              float width) {
    return transmittance_of(optical_depth_along(scene, hierarchy, ray, width));
}

// The same for each channel, in a scene with panes.
template <class Hierarchy>
TESSERA_FN Vec3 trace_shadow_panes(const SceneView& scene, const Hierarchy& hierarchy,
                                   const Ray& ray, float width) {
    return transmittances_of(optical_depths_along(scene, hierarchy, ray, width));
}

TESSERA_FN Vec3 add_light(Vec3 radiance, Vec3 of_light, float share) {
    return share > 0.0f ? fma3(of_light, share, radiance) : radiance;
}

TESSERA_FN Vec3 add_light(Vec3 radiance, Vec3 of_light, Vec3 share) {
    return vec3(share.x > 0.0f ? fma_(of_light.x, share.x, radiance.x) : radiance.x,
                share.y > 0.0f ? fma_(of_light.y, share.y, radiance.y) : radiance.y,
                share.z > 0.0f ? fma_(of_light.z, share.z, radiance.z) : radiance.z);
}

TESSERA_FN u32 put3(FilmSample& sample, u32 at, Vec3 value) {
    sample.values[at] = value.x;
    sample.values[at + 1] = value.y;
    sample.values[at + 2] = value.z;
    return at + 3;
}

// Finish: the values of the path of sample `index` in the order of the film's channels. Returns how
// many.
TESSERA_FN u32 finish(const UnitParams& unit, Vec3 radiance, const FirstHit& first, u32 index,
                      FilmSample& sample) {
    u32 at = put3(sample, 0, radiance);
    if (unit.aovs & AOV_ALBEDO) at = put3(sample, at, first.albedo);
    if (unit.aovs & AOV_NORMAL) at = put3(sample, at, first.normal);
    if (unit.aovs & AOV_DEPTH) sample.values[at++] = first.depth;
    if (unit.aovs & AOV_POSITION) at = put3(sample, at, first.position);
    if (unit.aovs & AOV_COVERAGE) sample.values[at++] = 1.0f - first.missed;
    if (unit.aovs & AOV_HALF)
        at = put3(sample, at, in_second_half(index) ? radiance : splat(0.0f));
    return at;
}
