// Scalar arithmetic with one meaning on every compiler: selects for min and max, clamped
// conversions, and our own polynomials where others call libm. Owns no vectors and no random
// numbers.
//
// Functions over a type `F` are for one number, and for eight in lanes (lanes.h), where a host
// takes paths together. Both kinds of number are given the same operations, so that both give the
// same bits.
#pragma once

#include "compiler.h"

const float PI = 0x1.921fb6p+1f;
const float TWO_PI = 0x1.921fb6p+2f;
const float INVERSE_PI = 0x1.45f306p-2f;
const float INVERSE_TWO_PI = 0x1.45f306p-3f;
const float HALF_PI = 0x1.921fb6p+0f;
// the largest finite float: nothing here needs a true infinity
const float INFINITE = 0x1.fffffep+127f;

// The integers and the truth values that belong to a kind of number.
template <class F>
struct Kinds;
template <>
struct Kinds<float> {
    typedef u32 Word;
    typedef i32 Int;
    typedef bool Mask;
};
template <class F>
using WordOf = typename Kinds<F>::Word;
template <class F>
using MaskOf = typename Kinds<F>::Mask;

// An argument that says nothing about which kind of number is meant.
template <class T>
struct SameType {
    typedef T Type;
};
template <class T>
using Same = typename SameType<T>::Type;

// What numbers in lanes do lane by lane. `select` computes both; what is worth skipping asks `any`
// first.
TESSERA_SMALL_FN bool any(bool mask) { return mask; }
TESSERA_SMALL_FN float select(bool mask, float yes, float no) { return mask ? yes : no; }
TESSERA_SMALL_FN i32 select(bool mask, i32 yes, i32 no) { return mask ? yes : no; }
TESSERA_SMALL_FN u32 select_word(bool mask, u32 yes, u32 no) { return mask ? yes : no; }
TESSERA_SMALL_FN float float_from_int(i32 value) { return (float)value; }
// truncates; the value is within i32
TESSERA_SMALL_FN i32 int_from_bounded(float value) { return (i32)value; }
TESSERA_SMALL_FN u32 word_from_int(i32 value) { return (u32)value; }
TESSERA_SMALL_FN i32 int_from_word(u32 value) { return (i32)value; }
TESSERA_SMALL_FN float look_up(const float* table, u32 index) { return table[index]; }

// Selects, so that NaN and signed zero mean the same everywhere: a NaN in `a` yields `b`.
TESSERA_SMALL_FN float min_(float a, float b) { return a < b ? a : b; }
TESSERA_SMALL_FN float max_(float a, float b) { return a > b ? a : b; }
template <class F>
TESSERA_SMALL_FN F clamp_(F value, Same<F> low, Same<F> high) {
    return min_(max_(value, low), high);
}
template <class F>
TESSERA_SMALL_FN F saturate_(F value) {
    return clamp_(value, 0.0f, 1.0f);
}
template <class F>
TESSERA_SMALL_FN F abs_(F value) {
    return float_from_bits(bits_from_float(value) & 0x7fffffffu);
}
template <class F>
TESSERA_SMALL_FN F copysign_(F magnitude, Same<F> sign) {
    return float_from_bits((bits_from_float(magnitude) & 0x7fffffffu) |
                           (bits_from_float(sign) & 0x80000000u));
}
template <class F>
TESSERA_SMALL_FN F lerp_(F a, Same<F> b, Same<F> t) {
    return fma_(t, b - a, a);
}
template <class F>
TESSERA_SMALL_FN F square_(F value) {
    return value * value;
}
TESSERA_SMALL_FN u32 min_u32(u32 a, u32 b) { return a < b ? a : b; }
TESSERA_SMALL_FN u32 max_u32(u32 a, u32 b) { return a > b ? a : b; }

// Neither infinite nor NaN.
TESSERA_SMALL_FN bool is_finite(float value) {
    return (bits_from_float(value) & 0x7f800000u) != 0x7f800000u;
}

// Truncates; out-of-range values and NaN are clamped first, because machines disagree about them.
TESSERA_SMALL_FN i32 int_from_float(float value) {
    return (i32)clamp_(value, -2147483520.0f, 2147483520.0f);
}

// Largest integer not above `value`, for |value| <= 2^30 (clamped beyond).
TESSERA_SMALL_FN i32 floor_to_int(float value) {
    const float bounded = clamp_(value, -1073741824.0f, 1073741824.0f);
    const i32 truncated = (i32)bounded;
    return truncated - (i32)((float)truncated > bounded);
}

// 32 random bits to [0, 1): the upper 24 bits, exact.
template <class Word>
TESSERA_SMALL_FN auto unit_from_bits(Word bits) {
    return float_from_int(int_from_word(bits >> 8)) * 0x1p-24f;
}

// (1 - x)^5 of Schlick's approximation.
template <class F>
TESSERA_SMALL_FN F pow5(F value) {
    const F squared = value * value;
    return squared * squared * value;
}

template <class F>
struct SinCosOf {
    F sine;
    F cosine;
};
typedef SinCosOf<float> SinCos;

// Sine and cosine of 2 pi `turns` for |turns| <= 2^20: reduced exactly to an eighth of a turn, then
// minimax polynomials. Absolute error below 1.2e-7.
template <class F>
TESSERA_SMALL_FN SinCosOf<F> sincos_turns(F turns) {
    const auto quarter = floor_to_int(fma_(turns, 4.0f, 0.5f));
    const F rest = fma_(float_from_int(quarter), -0.25f, turns) * TWO_PI;  // within a quarter of pi
    const F squared = rest * rest;
    F sine = fma_(squared, 0x1.6c8986p-19f, -0x1.a00e0ep-13f);
    sine = fma_(squared, sine, 0x1.111106p-7f);
    sine = fma_(squared, sine, -0x1.555556p-3f);
    sine = fma_(squared * rest, sine, rest);
    F cosine = fma_(squared, 0x1.9a0258p-16f, -0x1.6c0c8cp-10f);
    cosine = fma_(squared, cosine, 0x1.55554ap-5f);
    cosine = fma_(squared, cosine, -0.5f);
    cosine = fma_(squared, cosine, 1.0f);
    const auto swap = (quarter & 1) != 0;
    const F first = select(swap, cosine, sine);
    const F second = select(swap, sine, cosine);
    SinCosOf<F> result;
    result.sine = select((quarter & 2) != 0, -first, first);
    result.cosine = select(((quarter + 1) & 2) != 0, -second, second);
    return result;
}

// Angle of (x, y) in (-pi, pi]; 0 for the origin. Absolute error below 5e-7.
template <class F>
TESSERA_SMALL_FN F atan2_(F y, F x) {
    const F across = abs_(x);
    const F up = abs_(y);
    const auto steep = up > across;
    const F low = select(steep, across, up);
    const F high = select(steep, up, across);
    const F ratio = select(high > 0.0f, low / high, 0.0f);
    const F squared = ratio * ratio;
    F angle = fma_(squared, -0x1.1d6e4cp-8f, 0x1.797c2ap-6f);
    angle = fma_(squared, angle, -0x1.d94728p-5f);
    angle = fma_(squared, angle, 0x1.912bb0p-4f);
    angle = fma_(squared, angle, -0x1.1e3d7cp-3f);
    angle = fma_(squared, angle, 0x1.98d60ep-3f);
    angle = fma_(squared, angle, -0x1.5550f2p-2f);
    angle = fma_(squared * ratio, angle, ratio);
    angle = select(steep, HALF_PI - angle, angle);
    angle = select(x < 0.0f, PI - angle, angle);
    return copysign_(angle, y);
}
