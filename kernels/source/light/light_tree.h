// Choosing one of many lights: a tree over those that have a place, walked from the root with
// chances in proportion to what each of up to eight parts may send to where the surface is (Conty
// Estevez and Kulla 2018, "Importance Sampling of Many Lights with Adaptive Tree Splitting",
// section 4).
//
// Chances are integers: a walk narrows a range of 31-bit numbers, and a light's probability is the
// width of what is left. So the probability with which a light is chosen, and the one that a ray
// computes which meets it by chance, are the same number.
#pragma once

#include "integrator/path.h"
#include "layout.h"
#include "math/hash.h"
#include "math/vector.h"

// Bounds of directions are kept this much wider than they are, so that rounding hides no light.
const float COSINE_SLACK = 1e-3f;
// A part that may shine here at all keeps this much of each cosine: bounds by spheres and shading
// normals are rough.
const float COSINE_LEAST = 0x1p-6f;
// And this much of the strongest part's chance, so that it has a number of its own in every range.
const float CHANCE_LEAST = 0x1p-14f;
// A range narrower than this begins anew.
const u32 RANGE_LEAST = 1u << 20;
const u32 RANGE_WHOLE = 0x7fffffffu;
// The greatest float below that.
const float RANGE_FLOAT_MAX = 2147483520.0f;
const float RANGE_UNIT = 0x1p-31f;

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
    const float cosine = fma_(a.cosine, b.cosine, a.sine * b.sine);
    const float sine = max_(fma_(a.sine, b.cosine, -(a.cosine * b.sine)), 0.0f);
    Angle angle;
    angle.cosine = none ? 1.0f : cosine;
    angle.sine = none ? 0.0f : sine;
    return angle;
}

// Half of the angle under which a sphere is seen of which this is the sine; all around from its
// inside.
TESSERA_FN Angle angle_of_sphere(float sine, bool outside) {
    const float cosine = sqrt_(max_(fma_(-sine, sine, 1.0f), 0.0f));
    Angle angle;
    angle.cosine = outside ? cosine : -1.0f;
    angle.sine = outside ? sine : 0.0f;
    return angle;
}

// A bound of what the lights of part `k` send to a surface, in any unit. 0 only where that is
// nothing. Without a branch, so that host compilers do eight at once.
TESSERA_FN float light_importance(const LightNode& node, u32 k, const Vantage& from) {
    const float x = node.center[0][k] - from.point.x, y = node.center[1][k] - from.point.y,
                z = node.center[2][k] - from.point.z;
    const float squared = fma_(x, x, fma_(y, y, z * z));
    const float radius = node.radius[k];
    const float squared_radius = radius * radius;
    const float inverse = 1.0f / sqrt_(max_(max_(squared, squared_radius), 1e-30f));
    const Angle seen = angle_of_sphere(radius * inverse, squared > squared_radius);
    const float along =
        -inverse * fma_(x, node.axis[0][k], fma_(y, node.axis[1][k], z * node.axis[2][k]));
    const float facing = (node.child[k] & LIGHT_CHILD_BOTH_SIDES) != 0 ? abs_(along) : along;
    Angle spread;
    spread.cosine = node.spread_cosine[k];
    spread.sine = node.spread_sine[k];
    const Angle beyond = angle_less(angle_less(angle_of_cosine(facing), spread), seen);
    const float incidence =
        inverse * fma_(x, from.normal.x, fma_(y, from.normal.y, z * from.normal.z));
    const Angle arriving = angle_less(angle_of_cosine(abs_(incidence)), seen);
    const float cosines = max_(beyond.cosine, COSINE_LEAST) * max_(arriving.cosine, COSINE_LEAST);
    const float bound = min_(node.power[k] * cosines * inverse * inverse, 1e30f);
    return beyond.cosine >= node.emission_cosine[k] - COSINE_SLACK ? bound : 0.0f;
}

// A place in the tree, and the numbers that lead there: `width` from `base` on, of those that
// chance has left since `probability`.
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

// Where a node's parts begin among the walk's numbers: part k has those from first[k] up to first[k
// + 1].
struct LightRanges {
    alignas(32) u32 first[9];
};

TESSERA_FN LightRanges ranges_of(const LightNode& node, const Vantage& from, u32 width) {
    alignas(32) float chance[8];
    TESSERA_UNROLL
    for (u32 k = 0; k < 8; k++) chance[k] = light_importance(node, k, from);
    float most = 0.0f;
    TESSERA_UNROLL
    for (u32 k = 0; k < 8; k++) most = max_(chance[k], most);
    const bool known = most > 0.0f;
    const float least = most * CHANCE_LEAST;
    TESSERA_UNROLL
    for (u32 k = 0; k < 8; k++) {
        const float blind = node.child[k] != NONE ? 1.0f : 0.0f;
        const float bounded = chance[k] > 0.0f ? max_(chance[k], least) : 0.0f;
        chance[k] = known ? bounded : blind;
    }
    alignas(32) float sum[8];
    sum[0] = chance[0];
    TESSERA_UNROLL
    for (u32 k = 1; k < 8; k++) sum[k] = sum[k - 1] + chance[k];
    const float scale = (float)width / sum[7];
    LightRanges ranges;
    ranges.first[0] = 0;
    TESSERA_UNROLL
    for (u32 k = 0; k < 8; k++) {
        const u32 end = (u32)(i32)min_(sum[k] * scale, RANGE_FLOAT_MAX);
        ranges.first[k + 1] = sum[k] < sum[7] ? min_u32(end, width) : width;
    }
    return ranges;
}

// One step down, into part `k`. True where a new number is needed.
TESSERA_FN bool step_down(LightWalk& walk, const LightNode& node, const LightRanges& ranges,
                          u32 k) {
    walk.base += ranges.first[k];
    walk.width = ranges.first[k + 1] - ranges.first[k];
    walk.node = node.child[k];
    if (walk.width >= RANGE_LEAST) return false;
    walk.probability *= (float)walk.width * RANGE_UNIT;
    walk.base = 0;
    walk.width = RANGE_WHOLE;
    return true;
}

TESSERA_FN float probability_of(const LightWalk& walk) {
    return walk.probability * ((float)walk.width * RANGE_UNIT);
}

struct LightPick {
    u32 light;
    float probability;
};

TESSERA_FN u32 number_of(u32 bits) { return min_u32(bits >> 1, RANGE_WHOLE - 1u); }

// A light that has a place, by a random number. There are at least two.
TESSERA_FN LightPick pick_placed_light(const SceneView& scene, const Vantage& from, u32 bits) {
    LightWalk walk = light_walk();
    u32 number = number_of(bits);
    do {
        const LightNode& node = scene.light_nodes[walk.node & LIGHT_CHILD_INDEX];
        const LightRanges ranges = ranges_of(node, from, walk.width);
        const u32 place = number - walk.base;
        u32 k = 0;
        TESSERA_UNROLL
        for (u32 other = 1; other < 8; other++) k += place >= ranges.first[other] ? 1u : 0u;
        if (step_down(walk, node, ranges, k)) number = number_of(hash_pair(bits, walk.node));
    } while ((walk.node & LIGHT_CHILD_LEAF) == 0);
    LightPick pick;
    pick.light = walk.node & LIGHT_CHILD_INDEX;
    pick.probability = probability_of(walk);
    return pick;
}

// The probability with which pick_placed_light picks a light, 0 where it never does. Three bits of
// the light's trail say which part it is in at each level, the root's lowest.
TESSERA_FN float placed_light_probability(const SceneView& scene, const Vantage& from,
                                          const Light& light) {
    LightWalk walk = light_walk();
    u32 trail = light.trail;
    do {
        const LightNode& node = scene.light_nodes[walk.node & LIGHT_CHILD_INDEX];
        const LightRanges ranges = ranges_of(node, from, walk.width);
        const u32 k = trail & 7u;
        if (ranges.first[k] == ranges.first[k + 1]) return 0.0f;
        step_down(walk, node, ranges, k);
        trail >>= 3;
    } while ((walk.node & LIGHT_CHILD_LEAF) == 0);
    return probability_of(walk);
}

// Any light: those without a place by their share of all power, and those with one together by
// theirs.
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
    LightPick pick;
    pick.light = 0;
    pick.probability = 1.0f;
    if (placed > 1)
        pick = pick_placed_light(scene, from, groups == 1 ? rest : hash_pair(bits, groups));
    pick.probability *= scene.lights[pick.light].pick_probability;
    return pick;
}

// The probability with which pick_light picks this one.
TESSERA_FN float light_probability(const SceneView& scene, const Vantage& from, u32 index) {
    const Light& light = scene.lights[index];
    const bool in_tree = index < scene.placed_light_count && scene.placed_light_count > 1;
    return light.pick_probability * (in_tree ? placed_light_probability(scene, from, light) : 1.0f);
}
