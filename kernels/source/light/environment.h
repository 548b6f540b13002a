// The environment: an equirectangular map with +Y up, centre column towards +Z, u growing to the
// right of somebody who looks out; or a constant. Radiance is bilinear, and sampling follows the
// same bilinear weights.
#pragma once

#include "layout.h"
#include "sampling/sampler.h"
#include "sampling/shapes.h"

// The four texels about a point of the map, and their weights.
template <class F>
struct EnvironmentFootprint {
    WordOf<F> texel[4];
    F weight[4];
    F sine;  // of the angle from the pole
};

TESSERA_FN bool environment_is_map(const Environment& environment) {
    return environment.width != 0;
}

template <class F>
TESSERA_FN Vector3<F> map_from_world(const Environment& environment, Vector3<F> world) {
    const float* m = environment.map_from_world;
    return vec3(dot(vec3_from<F>(m), world), dot(vec3_from<F>(m + 3), world),
                dot(vec3_from<F>(m + 6), world));
}

template <class F>
TESSERA_FN Vector3<F> world_from_map(const Environment& environment, Vector3<F> local) {
    const float* m = environment.map_from_world;
    return fma3(vec3_from<F>(m), local.x,
                fma3(vec3_from<F>(m + 3), local.y, vec3_from<F>(m + 6) * local.z));
}

// Footprint of the point (x, y) in texels, centres at half-integers: wraps across, stops at the
// poles.
template <class F>
TESSERA_FN EnvironmentFootprint<F> environment_footprint(const Environment& environment, F x, F y) {
    typedef typename Kinds<F>::Int Int;
    const Int width = (i32)environment.width;
    const Int height = (i32)environment.height;
    const Int left = floor_to_int(x - 0.5f);
    const Int top = floor_to_int(y - 0.5f);
    const F across = x - 0.5f - float_from_int(left);
    const F down = y - 0.5f - float_from_int(top);
    const Int none = 0;
    const auto x0 = word_from_int(select(left < 0, width - 1, select(left >= width, none, left)));
    const auto x1 = word_from_int(select(left + 1 >= width, none, left + 1));
    const auto y0 = word_from_int(select(top < 0, none, select(top >= height, height - 1, top))) *
                    environment.width;
    const auto y1 =
        word_from_int(select(top + 1 >= height, height - 1, top + 1)) * environment.width;
    EnvironmentFootprint<F> footprint;
    footprint.texel[0] = y0 + x0;
    footprint.texel[1] = y0 + x1;
    footprint.texel[2] = y1 + x0;
    footprint.texel[3] = y1 + x1;
    footprint.weight[0] = (1.0f - across) * (1.0f - down);
    footprint.weight[1] = across * (1.0f - down);
    footprint.weight[2] = (1.0f - across) * down;
    footprint.weight[3] = across * down;
    return footprint;
}

// Footprint in the direction of a unit vector of map space.
template <class F>
TESSERA_FN EnvironmentFootprint<F> footprint_towards(const Environment& environment,
                                                     Vector3<F> local) {
    const F sine = sqrt_(fma_(local.x, local.x, local.z * local.z));
    const F u = fma_(atan2_<F>(-local.x, local.z), INVERSE_TWO_PI, 0.5f);
    const F v = atan2_<F>(sine, local.y) * INVERSE_PI;
    EnvironmentFootprint<F> footprint =
        environment_footprint<F>(environment, saturate_(u) * (float)environment.width,
                                 saturate_(v) * (float)environment.height);
    footprint.sine = sine;
    return footprint;
}

template <class F>
TESSERA_FN Vector3<F> footprint_radiance(const SceneView& scene,
                                         const EnvironmentFootprint<F>& footprint) {
    Vector3<F> sum = splat<F>(0.0f);
    for (u32 corner = 0; corner < 4; ++corner)
        sum = fma3(look_up3(scene.environment_texels, footprint.texel[corner]),
                   footprint.weight[corner], sum);
    return sum * scene.environment.intensity;
}

TESSERA_FN float probability_of_cell(const EnvironmentCell* cells, u32 index) {
    return cells[index].probability;
}

// The pdf per steradian with which environment_sample_map chooses the footprint's direction: the
// bilinear mean of its texels' probabilities, over the solid angle of a texel there.
template <class F>
TESSERA_FN F footprint_pdf(const SceneView& scene, const EnvironmentFootprint<F>& footprint) {
    F probability = 0.0f;
    for (u32 corner = 0; corner < 4; ++corner)
        probability = fma_(probability_of_cell(scene.environment_cells, footprint.texel[corner]),
                           footprint.weight[corner], probability);
    const float texels = (float)scene.environment.width * (float)scene.environment.height;
    return probability * texels / max_(footprint.sine * (2.0f * PI * PI), 1e-9f);
}

// Radiance from a direction, and the pdf of sampling it; `pdf` is not computed (0) unless
// `want_pdf`.
template <class F>
struct EnvironmentValue {
    Vector3<F> radiance;
    F pdf;
};

template <class F>
TESSERA_FN EnvironmentValue<F> environment_map_value(const SceneView& scene, Vector3<F> world,
                                                     bool want_pdf) {
    const EnvironmentFootprint<F> footprint =
        footprint_towards(scene.environment, map_from_world(scene.environment, world));
    EnvironmentValue<F> value;
    value.radiance = footprint_radiance(scene, footprint);
    value.pdf = 0.0f;
    if (want_pdf) value.pdf = footprint_pdf(scene, footprint);
    return value;
}

template <class F>
struct EnvironmentSample {
    Vector3<F> direction;  // world space
    Vector3<F> radiance;
    F pdf;   // 0: nothing was sampled
};

// One of `count` cells that a number falls to, and where in it, in [0, 1]. Numbers that are near
// each other fall near each other, so that points that are spread evenly stay so. The search begins
// where a guide says that it may (Chen and Asau 1974, "On Generating Random Variates from an
// Empirical Distribution").
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

// A texel of the map, its column and its row, and where in the tents about its centre.
template <class F>
struct EnvironmentPlace {
    F column, row;
    F across, down;
};

TESSERA_FN EnvironmentPlace<float> environment_place(const SceneView& scene, Bits2 random) {
    const Environment& environment = scene.environment;
    const EnvironmentCell* cells = scene.environment_cells;
    const CellPlace down =
        cell_at(cells + (u64)environment.width * environment.height, environment.height, random.y);
    const CellPlace across =
        cell_at(cells + (u64)environment.width * down.index, environment.width, random.x);
    EnvironmentPlace<float> place;
    place.column = (float)across.index;
    place.row = (float)down.index;
    place.across = across.fraction;
    place.down = down.fraction;
    return place;
}

// A direction in proportion to the bilinear map: a row by its probability, a texel of it, then a
// tent about its centre, since bilinear interpolation is a sum of tents. A tent that reaches over a
// pole is folded back, as the clamped look-up wants it.
template <class Word>
TESSERA_FN auto environment_sample_map(const SceneView& scene, Bits2Of<Word> random) {
    const auto place = environment_place(scene, random);
    typedef decltype(place.column + 0.0f) F;
    const Environment& environment = scene.environment;
    const float width = (float)environment.width;
    const float height = (float)environment.height;
    F x = place.column + 0.5f + sample_tent(place.across);
    F y = abs_<F>(place.row + 0.5f + sample_tent(place.down));
    x = select(x < 0.0f, x + width, select(x >= width, x - width, x));
    y = select(y > height, 2.0f * height - y, y);

    const SinCosOf<F> turn = sincos_turns<F>(x / width - 0.5f);
    const SinCosOf<F> fall = sincos_turns<F>(0.5f * y / height);
    EnvironmentFootprint<F> footprint = environment_footprint(environment, x, y);
    footprint.sine = abs_(fall.sine);
    EnvironmentSample<F> sample;
    sample.direction = world_from_map(
        environment, vec3(-turn.sine * footprint.sine, fall.cosine, turn.cosine * footprint.sine));
    sample.radiance = footprint_radiance(scene, footprint);
    sample.pdf = footprint_pdf(scene, footprint);
    return sample;
}
