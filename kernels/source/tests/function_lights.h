// Lights, function by function: weights, choices, samples. Part of the list in functions.h.
#pragma once

#include "light/light.h"
#include "tests/function_words.h"

TESSERA_FN void unit_mis_weight(const SceneView&, const Words& w) {
    give(w, 0, mis_weight(real(w, 0), real(w, 1)));
}
TESSERA_FN void unit_vantage(const SceneView&, const Words& w) {
    const PackedVantage packed = pack_vantage(real3(w, 0), unit3(w, 3));
    const Vantage vantage = vantage_of(packed);
    w.out[0] = packed.normal;
    give3(w, 1, vantage.point);
    give3(w, 4, vantage.normal);
}

TESSERA_FN void unit_angles(const SceneView&, const Words& w) {
    const Angle a = angle_of_cosine(fma_(2.0f, real(w, 0), -1.0f)),
                b = angle_of_cosine(fma_(2.0f, real(w, 1), -1.0f));
    const Angle less = angle_less(a, b);
    const Angle seen = angle_of_sphere(min_(abs_(real(w, 2)), 1.0f), real(w, 3) > 0.0f);
    give3(w, 0, vec3(a.sine, less.cosine, less.sine));
    give2(w, 3, vec2(seen.cosine, seen.sine));
    w.out[5] = 0;
}

// Words: center, radius, power, cosines of emission and spread, axis (less than unit), vantage,
// flags and part.
TESSERA_FN void unit_light_importance(const SceneView&, const Words& w) {
    LightNode node = {};
    const u32 k = w.in[18] & 7u;
    const Vec3 axis = normalize_or(vec3(real(w, 9) - 0.5f, real(w, 10) - 0.5f, real(w, 11) - 0.5f),
                                   vec3(0.0f, 1.0f, 0.0f));
    const float corner[3] = {axis.x, axis.y, axis.z};
    for (u32 axis_index = 0; axis_index < 3; axis_index++) {
        node.center[axis_index][k] = real(w, axis_index);
        node.axis[axis_index][k] = corner[axis_index];
    }
    node.radius[k] = abs_(real(w, 3));
    node.power[k] = abs_(real(w, 6));
    node.emission_cosine[k] = fma_(2.0f, real(w, 7), -1.0f);
    const Angle spread = angle_of_cosine(fma_(2.0f, real(w, 8), -1.0f));
    node.spread_cosine[k] = spread.cosine;
    node.spread_sine[k] = spread.sine;
    node.child[k] = w.in[18] & LIGHT_CHILD_BOTH_SIDES;
    Vantage from;
    from.point = real3(w, 12);
    from.normal = unit3(w, 15);
    give(w, 0, light_importance(node, k, from));
}

TESSERA_FN void unit_light_choice(const SceneView& scene, const Words& w) {
    if (scene.light_count == 0) return give_none(w, 0, 4);
    const Vantage from = vantage_of(pack_vantage(real3(w, 1), unit3(w, 4)));
    const LightPick pick = pick_light(scene, from, w.in[0]);
    w.out[0] = pick.light;
    give3(w, 1, vec3(pick.probability, light_probability(scene, from, pick.light),
                     light_probability(scene, from, w.in[0] % scene.light_count)));
}

TESSERA_FN void unit_range_window(const SceneView&, const Words& w) {
    give(w, 0, range_window(real(w, 0), real(w, 1)));
}

TESSERA_FN void give_light(const Words& w, u32 at, const LightSample& sample) {
    give3(w, at, sample.direction);
    give3(w, at + 3, sample.valid ? sample.radiance : splat(0.0f));
    give(w, at + 6, sample.distance);
    give(w, at + 7, sample.pdf);
    w.out[at + 8] = (u32)sample.valid | (u32)sample.delta << 1;
}

TESSERA_FN void unit_punctual(const SceneView&, const Words& w) {
    Light light = {};
    light.kind = w.in[0] % 3u;
    const Vec3 position = real3(w, 1);
    const Vec3 direction = unit3(w, 4);
    light.position[0] = position.x;
    light.position[1] = position.y;
    light.position[2] = position.z;
    light.direction[0] = direction.x;
    light.direction[1] = direction.y;
    light.direction[2] = direction.z;
    light.emission[0] = light.emission[1] = light.emission[2] = 1.0f;
    light.range = real(w, 7);
    light.spot_scale = real(w, 8);
    light.spot_offset = real(w, 9);
    give_light(w, 0, sample_punctual(light, 0.25f, vec3(real(w, 10), real(w, 11), 0.25f)));
}

TESSERA_FN void unit_light(const SceneView& scene, const Words& w) {
    if (scene.light_count == 0) return give_none(w, 0, 10);
    LightRandom random;
    random.choice = w.in[0];
    random.place = bits2(w.in[1], w.in[2]);
    const LightSample sample =
        sample_light(scene, pack_vantage(real3(w, 3), unit3(w, 6)), unit3(w, 6), random);
    give_light(w, 0, sample);
    give(w, 9, mis_weight(sample.pdf, 0.5f));
}
