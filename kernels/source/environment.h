// The environment: an equirectangular map with +Y up, centre column towards +Z, u growing to the right of somebody who
// looks out; or a constant. Radiance is bilinear, and sampling follows the same bilinear weights.
#pragma once

#include "layout.h"
#include "sample_shapes.h"
#include "sampler.h"

// The four texels about a point of the map, and their weights.
struct EnvironmentFootprint {
    u32 texel[4];
    float weight[4];
    float sine;  // of the angle from the pole
};

TESSERA_FN bool environment_is_map(const Environment& environment) { return environment.width != 0; }

TESSERA_FN Vec3 map_from_world(const Environment& environment, Vec3 world) {
    const float* m = environment.map_from_world;
    return vec3(dot(vec3_from(m), world), dot(vec3_from(m + 3), world), dot(vec3_from(m + 6), world));
}

TESSERA_FN Vec3 world_from_map(const Environment& environment, Vec3 local) {
    const float* m = environment.map_from_world;
    return fma3(vec3_from(m), local.x, fma3(vec3_from(m + 3), local.y, vec3_from(m + 6) * local.z));
}

// Footprint of the point (x, y) in texels, centres at half-integers: wraps across, stops at the poles.
TESSERA_FN EnvironmentFootprint environment_footprint(const Environment& environment, float x, float y) {
    const i32 width = (i32)environment.width;
    const i32 height = (i32)environment.height;
    const i32 left = floor_to_int(x - 0.5f);
    const i32 top = floor_to_int(y - 0.5f);
    const float across = x - 0.5f - (float)left;
    const float down = y - 0.5f - (float)top;
    const i32 x0 = left < 0 ? width - 1 : left >= width ? 0 : left;
    const i32 x1 = left + 1 >= width ? 0 : left + 1;
    const i32 y0 = top < 0 ? 0 : top >= height ? height - 1 : top;
    const i32 y1 = top + 1 >= height ? height - 1 : top + 1;
    EnvironmentFootprint footprint;
    footprint.texel[0] = (u32)y0 * environment.width + (u32)x0;
    footprint.texel[1] = (u32)y0 * environment.width + (u32)x1;
    footprint.texel[2] = (u32)y1 * environment.width + (u32)x0;
    footprint.texel[3] = (u32)y1 * environment.width + (u32)x1;
    footprint.weight[0] = (1.0f - across) * (1.0f - down);
    footprint.weight[1] = across * (1.0f - down);
    footprint.weight[2] = (1.0f - across) * down;
    footprint.weight[3] = across * down;
    return footprint;
}

// Footprint in the direction of a unit vector of map space.
TESSERA_FN EnvironmentFootprint footprint_towards(const Environment& environment, Vec3 local) {
    const float sine = sqrt_(fma_(local.x, local.x, local.z * local.z));
    const float u = fma_(atan2_(-local.x, local.z), INVERSE_TWO_PI, 0.5f);
    const float v = atan2_(sine, local.y) * INVERSE_PI;
    EnvironmentFootprint footprint = environment_footprint(
        environment, saturate_(u) * (float)environment.width, saturate_(v) * (float)environment.height);
    footprint.sine = sine;
    return footprint;
}

TESSERA_FN Vec3 footprint_radiance(const SceneView& scene, const EnvironmentFootprint& footprint) {
    Vec3 sum = splat(0.0f);
    for (u32 corner = 0; corner < 4; ++corner)
        sum = fma3(vec3_from(scene.environment_texels + 3 * (u64)footprint.texel[corner]), footprint.weight[corner], sum);
    return sum * scene.environment.intensity;
}

// Density per steradian with which environment_sample_map chooses the footprint's direction: the bilinear mean of its
// texels' probabilities, over the solid angle of a texel there.
TESSERA_FN float footprint_density(const SceneView& scene, const EnvironmentFootprint& footprint) {
    float probability = 0.0f;
    for (u32 corner = 0; corner < 4; ++corner)
        probability = fma_(scene.environment_cells[footprint.texel[corner]].probability, footprint.weight[corner], probability);
    const float texels = (float)scene.environment.width * (float)scene.environment.height;
    return probability * texels / max_(footprint.sine * (2.0f * PI * PI), 1e-9f);
}

// Radiance from a direction, and the density of sampling it; `density` is not computed (0) unless `want_density`.
struct EnvironmentValue {
    Vec3 radiance;
    float density;
};

TESSERA_FN EnvironmentValue environment_map_value(const SceneView& scene, Vec3 world, bool want_density) {
    const EnvironmentFootprint footprint = footprint_towards(scene.environment, map_from_world(scene.environment, world));
    EnvironmentValue value;
    value.radiance = footprint_radiance(scene, footprint);
    value.density = want_density ? footprint_density(scene, footprint) : 0.0f;
    return value;
}

struct EnvironmentSample {
    Vec3 direction;  // world space
    Vec3 radiance;
    float density;   // 0: nothing was sampled
};

// One of `count` cells that a number falls to, and where in it, in [0, 1]. Numbers that are near each other fall near each other, so that
// points that are spread evenly stay so. The search begins where a guide says that it may (Chen and Asau 1974, "On Generating Random
// Variates from an Empirical Distribution").
struct CellPlace {
    u32 index;
    float fraction;
};

TESSERA_FN CellPlace cell_at(const EnvironmentCell* cells, u32 count, u32 bits) {
    const u32 number = min_u32(bits, 0xfffffffeu);
    const u32 place_of_number = (u32)(multiply_wide(number, count) >> 32);
    u32 index = cells[place_of_number].start;
    const u32 last = place_of_number + 1 < count ? cells[place_of_number + 1].start : count - 1;
    for (u32 rest = last > index ? last - index + 1 : 1; rest > 1;) {
        const u32 half = rest >> 1;
        index = cells[index + half].first <= number ? index + half : index;
        rest -= half;
    }
    const u32 first = cells[index].first;
    const u32 end = index + 1 < count ? cells[index + 1].first : 0xffffffffu;
    CellPlace place;
    place.index = index;
    place.fraction = saturate_(((float)(number - first) + 0.5f) / (float)(end - first));
    return place;
}

// A direction in proportion to the bilinear map: a row by its probability, a texel of it, then a tent about its centre, since bilinear
// interpolation is a sum of tents. A tent that reaches over a pole is folded back, as the clamped look-up wants it.
TESSERA_FN EnvironmentSample environment_sample_map(const SceneView& scene, Bits2 random) {
    const Environment& environment = scene.environment;
    const EnvironmentCell* cells = scene.environment_cells;
    const CellPlace down = cell_at(cells + (u64)environment.width * environment.height, environment.height, random.y);
    const CellPlace across = cell_at(cells + (u64)environment.width * down.index, environment.width, random.x);
    const float width = (float)environment.width;
    const float height = (float)environment.height;
    float x = (float)across.index + 0.5f + sample_tent(across.fraction);
    float y = abs_((float)down.index + 0.5f + sample_tent(down.fraction));
    x = x < 0.0f ? x + width : x >= width ? x - width : x;
    y = y > height ? 2.0f * height - y : y;

    const SinCos turn = sincos_turns(x / width - 0.5f);
    const SinCos fall = sincos_turns(0.5f * y / height);
    EnvironmentFootprint footprint = environment_footprint(environment, x, y);
    footprint.sine = abs_(fall.sine);
    EnvironmentSample sample;
    sample.direction = world_from_map(
        environment, vec3(-turn.sine * footprint.sine, fall.cosine, turn.cosine * footprint.sine));
    sample.radiance = footprint_radiance(scene, footprint);
    sample.density = footprint_density(scene, footprint);
    return sample;
}
