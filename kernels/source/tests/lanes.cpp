// A door for proofs: what is computed in lanes beside what is computed alone, by every instruction
// set. Not part of the product and not in the fingerprint.
#include "bsdf/metallic_roughness.h"
#include "integrator/path.h"
#include "math/lanes.h"
#include "sampling/filter.h"

const u32 LANE_WORDS_IN = 8;
const u32 LANE_WORDS_OUT = 64;

// Where results go, one after the other.
template <class F>
struct Results {
    WordOf<F>* out;
    u32 count;
};

template <class F>
static void give(Results<F>& results, WordOf<F> word) {
    results.out[results.count++] = word;
}

template <class F>
static void give(Results<F>& results, Same<F> value) {
    give(results, bits_from_float(value));
}

template <class F>
static void give3(Results<F>& results, Vector3<F> value) {
    give(results, value.x);
    give(results, value.y);
    give(results, value.z);
}

// Of any floats at all.
template <class F>
static void compute_anything(const WordOf<F>* in, Results<F>& results) {
    const F x = float_from_bits(in[0]), y = float_from_bits(in[1]), z = float_from_bits(in[2]);
    give<F>(results, fma_(x, y, z));
    give<F>(results, sqrt_(x));
    give<F>(results, min_(x, y));
    give<F>(results, max_(x, y));
    give<F>(results, clamp_(z, x, y));
    give<F>(results, abs_(x));
    give<F>(results, copysign_(x, y));
    give<F>(results, lerp_(x, y, z));
    give<F>(results, x / y - z);
    give<F>(results, word_from_int(floor_to_int(x)));
    give<F>(results, select(x < y || x >= z, x, y));
    give<F>(results, select(!(x == y) && z > 0.0f, x, y));
    give<F>(results, atan2_(x, y));
    give3(results, normalize_or(vec3(x, y, z), vec3<F>(0.0f, 0.0f, 1.0f)));
}

template <class Word>
static void compute_words(const Word* in, Word* out) {
    out[0] = hash_pair(in[3], in[4]);
    out[1] = reverse_bits(in[3]);
    out[2] = min_u32(in[3], in[4]);
    out[3] = select_word(in[3] <= in[4], in[3], in[4] >> 3);
    const Bits2Of<Word> bits = draw_bits(make_sampler(in[3], in[4]), in[5]);
    out[4] = bits.x;
    out[5] = bits.y;
}

template <class F>
static Vector3<F> direction_of(F x, F y, F z) {
    return normalize_or(vec3(x - 0.5f, y - 0.5f, z - 0.5f), vec3<F>(0.0f, 0.0f, 1.0f));
}

// Of numbers from 0 to 1, as shading has them.
template <class F>
static void compute_shading(const WordOf<F>* in, Results<F>& results) {
    F unit[LANE_WORDS_IN];
    for (u32 k = 0; k < LANE_WORDS_IN; k++) unit[k] = unit_from_bits(in[k]);
    const Vector2<F> random = vec2(unit[0], unit[1]);
    const Vector3<F> direction = direction_of(unit[2], unit[3], unit[4]);
    const Vector3<F> point = vec3(unit[5] * 8.0f - 4.0f, unit[6] * 0.125f - 0.0625f, unit[7]);
    const SinCosOf<F> angle = sincos_turns<F>(unit[0] * 64.0f - 32.0f);
    give<F>(results, angle.sine);
    give<F>(results, angle.cosine);
    give3(results, offset_ray_origin(point, direction));
    const BasisOf<F> basis = basis_about(direction);
    give3(results, world_from_local(basis, point));
    give3(results, local_from_world(basis, point));
    const PackedVantageOf<F> packed = pack_vantage(point, direction);
    give<F>(results, packed.normal);
    give3(results, vantage_of(packed).normal);
    for (u32 filter = 0; filter < 3; filter++) give<F>(results, filter_sample(filter, random).x);
    give<F>(results, sample_triangle(random).y);
    give<F>(results, sample_tent(unit[1]));
    for (u32 corners = 3; corners <= 9; corners += 3) {
        const SinCos half = sincos_turns(0.5f / (float)corners);
        const Polygon polygon = {corners, 0.125f * (float)corners, half.cosine, half.sine};
        const Vector2<F> at = sample_polygon(polygon, random);
        give<F>(results, at.x);
        give<F>(results, at.y);
    }

    const Vector3<F> wo = vec3(direction.x, direction.y, max_(abs_(direction.z), 1e-3f));
    const BsdfOf<F> bsdf =
        make_bsdf(vec3(unit[5], unit[6], unit[7]), unit[1], unit[0], F(0.04f), wo);
    const BsdfValueOf<F> value = bsdf_evaluate(bsdf, direction_of(unit[4], unit[5], unit[6]));
    give3(results, value.value);
    give<F>(results, value.pdf);
    const BsdfSampleOf<F> sample = bsdf_sample(bsdf, unit[7], random);
    give3(results, sample.wi);
    give3(results, sample.weight);
    give<F>(results, sample.pdf);
}

template <class F>
static void compute(const WordOf<F>* in, WordOf<F>* out) {
    compute_words(in, out);
    Results<F> results;
    results.out = out;
    results.count = 6;
    compute_anything(in, results);
    compute_shading(in, results);
    while (results.count < LANE_WORDS_OUT) give<F>(results, WordOf<F>(0u));
}

// `in`: eight lanes of LANE_WORDS_IN words; `alone` and `lanes`: of LANE_WORDS_OUT each, the last
// ones 0.
#define TESSERA_JOIN(name, isa) name##_##isa
#define TESSERA_ENTRY(name, isa) TESSERA_JOIN(name, isa)
extern "C" void TESSERA_ENTRY(tessera_test, TESSERA_ISA)(const u32* in, u32* alone, u32* lanes) {
    LaneWords from[LANE_WORDS_IN], to[LANE_WORDS_OUT];
    for (u32 lane = 0; lane < 8; lane++) {
        compute<float>(in + lane * LANE_WORDS_IN, alone + lane * LANE_WORDS_OUT);
        for (u32 k = 0; k < LANE_WORDS_IN; k++) from[k].value[lane] = in[lane * LANE_WORDS_IN + k];
    }
    compute<Lanes>(from, to);
    for (u32 lane = 0; lane < 8; lane++)
        for (u32 k = 0; k < LANE_WORDS_OUT; k++)
            lanes[lane * LANE_WORDS_OUT + k] = to[k].value[lane];
}
