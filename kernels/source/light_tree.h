// Choosing one of many lights: a tree over those that have a place, walked from the root with chances in proportion to what each half
// may send to where the surface is (Conty Estevez and Kulla 2018, "Importance Sampling of Many Lights with Adaptive Tree
// Splitting", section 4).
//
// Chances are integers: a walk narrows a range of 32-bit numbers, and a light's probability is the width of what is left. So the
// probability with which a light is chosen, and the one that a ray computes which meets it by chance, are the same number.
#pragma once

#include "hash.h"
#include "layout.h"
#include "path.h"
#include "vector.h"

// Bounds of directions are kept this much wider than they are, so that rounding hides no light.
const float COSINE_SLACK = 1e-3f;
// A half that may shine here at all keeps this much of each cosine: bounds by spheres and shading normals are rough.
const float COSINE_LEAST = 0x1p-6f;
// A range narrower than this begins anew.
const u32 RANGE_LEAST = 1u << 20;
const u32 RANGE_WHOLE = 0xffffffffu;

// An angle in [0, pi].
struct Angle {
    float cosine, sine;
};

TESSERA_FN Angle angle_of_cosine(float cosine) {
    Angle angle;
    angle.cosine = clamp_(cosine, -1.0f, 1.0f);
    angle.sine = sqrt_(max_(fma_(-angle.cosine, angle.cosine, 1.0f), 0.0f));
    return angle;
}

// a - b, or 0 where b is greater.
TESSERA_FN Angle angle_less(Angle a, Angle b) {
    const bool none = a.cosine > b.cosine;
    Angle angle;
    angle.cosine = none ? 1.0f : fma_(a.cosine, b.cosine, a.sine * b.sine);
    angle.sine = none ? 0.0f : max_(fma_(a.sine, b.cosine, -(a.cosine * b.sine)), 0.0f);
    return angle;
}

// Half of the angle under which a sphere is seen; all around from its inside.
TESSERA_FN Angle angle_of_sphere(float squared_radius, float squared_distance) {
    const bool outside = squared_distance > squared_radius;
    const float squared = outside ? squared_radius / squared_distance : 0.0f;
    Angle angle;
    angle.cosine = outside ? sqrt_(max_(1.0f - squared, 0.0f)) : -1.0f;
    angle.sine = sqrt_(squared);
    return angle;
}

// A bound of what the lights of a node send to a surface, in any unit. 0 only where that is nothing.
TESSERA_FN float light_importance(const LightNode& node, const Vantage& from) {
    const Vec3 half = (vec3_from(node.upper) - vec3_from(node.lower)) * 0.5f;
    const Vec3 towards = vec3_from(node.lower) + half - from.point;
    const float squared_radius = dot(half, half);
    const float squared = dot(towards, towards);
    const Vec3 direction = normalize_or(towards, from.normal);
    const Angle seen = angle_of_sphere(squared_radius, squared);
    float facing = -dot(vec3_from(node.axis), direction);
    if (node.flags & LIGHT_NODE_BOTH_SIDES) facing = abs_(facing);
    Angle spread;
    spread.cosine = node.spread_cosine;
    spread.sine = node.spread_sine;
    const Angle beyond = angle_less(angle_less(angle_of_cosine(facing), spread), seen);
    if (beyond.cosine < node.emission_cosine - COSINE_SLACK) return 0.0f;
    const Angle arriving = angle_less(angle_of_cosine(abs_(dot(from.normal, direction))), seen);
    const float cosines = max_(beyond.cosine, COSINE_LEAST) * max_(arriving.cosine, COSINE_LEAST);
    return node.power * cosines / max_(max_(squared, squared_radius), 1e-20f);
}

// A place in the tree, and the numbers that lead there: `width` from `base` on, of those that chance has left since `probability`.
struct LightWalk {
    u32 node;
    u32 base;
    u32 width;
    float probability;
};

TESSERA_FN LightWalk light_walk() {
    LightWalk walk;
    walk.node = walk.base = 0;
    walk.width = RANGE_WHOLE;
    walk.probability = 1.0f;
    return walk;
}

TESSERA_FN bool is_at_light(const SceneView& scene, const LightWalk& walk) {
    return (scene.light_nodes[walk.node].flags & LIGHT_NODE_LEAF) != 0;
}

// How many of the numbers lead to the left.
TESSERA_FN u32 left_width(const SceneView& scene, const LightWalk& walk, const Vantage& from) {
    const float left = light_importance(scene.light_nodes[walk.node + 1], from);
    const float right = light_importance(scene.light_nodes[scene.light_nodes[walk.node].child], from);
    const float total = left + right;
    const bool known = total > 0.0f && is_finite(total);
    if (known && right == 0.0f) return walk.width;
    if (known && left == 0.0f) return 0;
    const float share = known ? left / total : 0.5f;
    const u32 most = walk.width - 1u;
    const float width = share * (float)most;
    const u32 whole = width < 4294967040.0f ? (u32)width : 4294967040u;
    return max_u32(min_u32(whole, most), 1u);
}

// One step down. True where a new number is needed.
TESSERA_FN bool step_down(const SceneView& scene, LightWalk& walk, u32 left, bool goes_left) {
    walk.base = goes_left ? walk.base : walk.base + left;
    walk.width = goes_left ? left : walk.width - left;
    walk.node = goes_left ? walk.node + 1 : scene.light_nodes[walk.node].child;
    if (walk.width >= RANGE_LEAST) return false;
    walk.probability *= (float)walk.width * 0x1p-32f;
    walk.base = 0;
    walk.width = RANGE_WHOLE;
    return true;
}

TESSERA_FN float probability_of(const LightWalk& walk) { return walk.probability * ((float)walk.width * 0x1p-32f); }

struct LightPick {
    u32 light;
    float probability;
};

// A light that has a place, by a random number.
TESSERA_FN LightPick pick_placed_light(const SceneView& scene, const Vantage& from, u32 bits) {
    LightWalk walk = light_walk();
    u32 number = min_u32(bits, RANGE_WHOLE - 1u);
    while (!is_at_light(scene, walk)) {
        const u32 left = left_width(scene, walk, from);
        if (step_down(scene, walk, left, number - walk.base < left)) number = min_u32(hash_pair(bits, walk.node), RANGE_WHOLE - 1u);
    }
    LightPick pick;
    pick.light = scene.light_nodes[walk.node].child;
    pick.probability = probability_of(walk);
    return pick;
}

// The probability with which pick_placed_light picks a light, 0 where it never does. Bit k of the light's trail says which way it is at
// level k: 0 left, 1 right.
TESSERA_FN float placed_light_probability(const SceneView& scene, const Vantage& from, const Light& light) {
    LightWalk walk = light_walk();
    u32 trail = light.trail;
    while (!is_at_light(scene, walk)) {
        const u32 left = left_width(scene, walk, from);
        const bool goes_left = (trail & 1u) == 0;
        if (goes_left ? left == 0 : left == walk.width) return 0.0f;
        step_down(scene, walk, left, goes_left);
        trail >>= 1;
    }
    return probability_of(walk);
}

// Any light: those without a place by their share of all power, and those with one together by theirs.
TESSERA_FN LightPick pick_light(const SceneView& scene, const Vantage& from, u32 bits) {
    const u32 placed = scene.placed_light_count;
    const u32 groups = scene.light_count - placed + (placed > 0 ? 1u : 0u);
    const u64 picked = multiply_wide(bits, groups);
    u32 group = (u32)(picked >> 32);
    const AliasEntry entry = scene.light_alias[group];
    const u32 rest = (u32)picked;
    const bool kept = rest < entry.threshold;
    group = kept ? group : entry.alias;
    if (placed == 0 || group > 0) {
        LightPick pick;
        pick.light = placed > 0 ? placed + group - 1u : group;
        pick.probability = scene.lights[pick.light].pick_probability;
        return pick;
    }
    // With nothing else to choose among, the number is as good as it came; else it has been used.
    LightPick pick = pick_placed_light(scene, from, groups == 1 ? rest : hash_pair(bits, groups));
    pick.probability *= scene.lights[pick.light].pick_probability;
    return pick;
}

// The probability with which pick_light picks this one.
TESSERA_FN float light_probability(const SceneView& scene, const Vantage& from, u32 index) {
    const Light& light = scene.lights[index];
    const float placed = index < scene.placed_light_count ? placed_light_probability(scene, from, light) : 1.0f;
    return light.pick_probability * placed;
}
