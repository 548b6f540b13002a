// Lights: choosing one, sampling a point or direction of it, and the pdf of that choice when a
// scattered ray meets it.
#pragma once

#include "light/environment.h"
#include "light/light_tree.h"
#include "material/alpha.h"

// What a light sends to a point along one sampled direction, unoccluded.
template <class F>
struct LightSampleOf {
    Vector3<F> direction;  // unit, from the point
    F distance;            // to the light; FAR_DISTANCE for a light at infinity
    Vector3<F> radiance;   // for delta lights: irradiance per unit cosine
    // per steradian, the choice of the light included; for delta lights: the probability of that
    F pdf;
    MaskOf<F> delta;       // no scattered ray can meet it
    MaskOf<F> valid;
};
typedef LightSampleOf<float> LightSample;

const float FAR_DISTANCE = 1e30f;

// Random numbers for one light sample.
template <class Word>
struct LightRandomOf {
    Word choice;          // which light
    Bits2Of<Word> place;  // where on it
};
typedef LightRandomOf<u32> LightRandom;

// Share of the power heuristic (Veach 1995) of a technique with pdf `own` beside one with
// pdf `other`.
template <class F>
TESSERA_FN F mis_weight(F own, F other) {
    const F ratio = other / max_(own, 1e-30f);
    return 1.0f / fma_(ratio, ratio, 1.0f);
}

// KHR_lights_punctual's window: falls to zero at `range`.
TESSERA_FN float range_window(float range, float distance) {
    if (!(range > 0.0f)) return 1.0f;
    const float ratio = square_(square_(distance / range));
    return saturate_(1.0f - ratio);
}

TESSERA_FN LightSample sample_punctual(const Light& light, float picked, Vec3 from) {
    LightSample sample;
    sample.delta = true;
    sample.pdf = picked;
    sample.radiance = vec3_from(light.emission);
    sample.valid = true;
    const Vec3 shine = vec3_from(light.direction);
    if (light.kind == LIGHT_DIRECTIONAL) {
        sample.direction = -shine;
        sample.distance = FAR_DISTANCE;
        return sample;
    }
    const Vec3 towards = vec3_from(light.position) - from;
    const float squared = dot(towards, towards);
    sample.valid = squared > 1e-20f;
    sample.distance = sqrt_(squared);
    sample.direction = towards * (1.0f / max_(sample.distance, 1e-10f));
    float strength = range_window(light.range, sample.distance) / max_(squared, 1e-20f);
    if (light.kind == LIGHT_SPOT) {
        const float cone =
            saturate_(fma_(-dot(shine, sample.direction), light.spot_scale, light.spot_offset));
        strength *= cone * cone;
    }
    sample.radiance = sample.radiance * strength;
    return sample;
}

// The pdf per steradian of sampling a point of an emissive triangle, as seen from a distance under
// a cosine at the light; `picked`: the probability with which the light is chosen.
TESSERA_FN float triangle_pdf(const Light& light, float picked, float squared_distance,
                                  float cosine) {
    return picked * squared_distance / max_(light.area * cosine, 1e-30f);
}

TESSERA_FN LightSample sample_triangle_light(const SceneView& scene, const Light& light,
                                             float picked, Vec3 from, Vec2 random) {
    const Triangle& triangle = scene.triangles[light.triangle];
    const Material& material = scene.materials[triangle.material];
    const Vec2 at = sample_triangle(random);
    const Vec3 normal = normalize_or(triangle_cross(triangle), vec3(0.0f, 1.0f, 0.0f));
    const Vec3 towards = triangle_point(triangle, at.x, at.y) - from;
    const float squared = dot(towards, towards);
    LightSample sample;
    sample.delta = false;
    sample.distance = sqrt_(squared);
    sample.direction = towards * (1.0f / max_(sample.distance, 1e-10f));
    const float cosine = -dot(normal, sample.direction);
    sample.valid = squared > 1e-20f && abs_(cosine) > 1e-7f && emits_towards(triangle, cosine);
    sample.pdf = triangle_pdf(light, picked, squared, abs_(cosine));
    sample.radiance = splat(0.0f);
    if (!sample.valid) return sample;
    const Corners corners = corners_of(scene, light.triangle, at.x, at.y, 0.0f);
    sample.radiance = emitted_radiance(scene, material, corners);
    if (triangle.flags & TRIANGLE_ALPHA)
        sample.radiance = sample.radiance * surface_opacity(scene, material, corners);
    return sample;
}

// The environment as seen from a surface with the given shading normal: its map in proportion to
// brightness, a constant in proportion to the cosine.
template <class F>
TESSERA_FN LightSampleOf<F> sample_environment(const SceneView& scene, F picked, Vector3<F> normal,
                                               Bits2Of<WordOf<F>> random) {
    LightSampleOf<F> sample;
    sample.delta = MaskOf<F>();
    sample.distance = FAR_DISTANCE;
    if (environment_is_map(scene.environment)) {
        const EnvironmentSample<F> chosen = environment_sample_map(scene, random);
        sample.direction = chosen.direction;
        sample.radiance = chosen.radiance;
        sample.pdf = chosen.pdf;
    } else {
        const Vector3<F> local = sample_cosine(units_from_bits(random));
        sample.direction = world_from_local(basis_about(normal), local);
        sample.radiance = vec3_from<F>(scene.environment.constant);
        sample.pdf = local.z * INVERSE_PI;
    }
    sample.pdf *= picked;
    sample.valid = sample.pdf > 0.0f;
    return sample;
}

// A sample of a light that has been picked, for a surface at `vantage`.
TESSERA_FN LightSample sample_picked(const SceneView& scene, const LightPick& pick,
                                     const Vantage& vantage, Vec3 normal, Bits2 random) {
    const Light& light = scene.lights[pick.light];
    if (light.kind == LIGHT_TRIANGLE)
        return sample_triangle_light(scene, light, pick.probability, vantage.point,
                                     units_from_bits(random));
    if (light.kind == LIGHT_ENVIRONMENT)
        return sample_environment(scene, pick.probability, normal, random);
    return sample_punctual(light, pick.probability, vantage.point);
}

// One light, and a sample of it for a surface with shading normal `normal`. The scene has lights.
TESSERA_FN LightSample sample_light(const SceneView& scene, const PackedVantage& vantage,
                                    Vec3 normal, const LightRandom& random) {
    const Vantage from = vantage_of(vantage);
    return sample_picked(scene, pick_light(scene, from, random.choice), from, normal, random.place);
}
