// Scalar arithmetic with one meaning on every compiler: selects for min and max, clamped conversions, and our own
// polynomials where others call libm. Owns no vectors and no random numbers.
#pragma once

#include "compiler.h"

const float PI = 0x1.921fb6p+1f;
const float TWO_PI = 0x1.921fb6p+2f;
const float INVERSE_PI = 0x1.45f306p-2f;
const float INVERSE_TWO_PI = 0x1.45f306p-3f;
const float HALF_PI = 0x1.921fb6p+0f;
const float INFINITE = 0x1.fffffep+127f;  // the largest finite float: nothing here needs a true infinity

// Selects, so that NaN and signed zero mean the same everywhere: a NaN in `a` yields `b`.
TESSERA_FN float min_(float a, float b) { return a < b ? a : b; }
TESSERA_FN float max_(float a, float b) { return a > b ? a : b; }
TESSERA_FN float clamp_(float value, float low, float high) { return min_(max_(value, low), high); }
TESSERA_FN float saturate_(float value) { return clamp_(value, 0.0f, 1.0f); }
TESSERA_FN float abs_(float value) { return float_from_bits(bits_from_float(value) & 0x7fffffffu); }
TESSERA_FN float copysign_(float magnitude, float sign) {
    return float_from_bits((bits_from_float(magnitude) & 0x7fffffffu) | (bits_from_float(sign) & 0x80000000u));
}
TESSERA_FN float lerp_(float a, float b, float t) { return fma_(t, b - a, a); }
TESSERA_FN float square_(float value) { return value * value; }
TESSERA_FN u32 min_u32(u32 a, u32 b) { return a < b ? a : b; }
TESSERA_FN u32 max_u32(u32 a, u32 b) { return a > b ? a : b; }

// Neither infinite nor NaN.
TESSERA_FN bool is_finite(float value) { return (bits_from_float(value) & 0x7f800000u) != 0x7f800000u; }

// Truncates; out-of-range values and NaN are clamped first, because machines disagree about them.
TESSERA_FN i32 int_from_float(float value) { return (i32)clamp_(value, -2147483520.0f, 2147483520.0f); }

// Largest integer not above `value`, for |value| <= 2^30 (clamped beyond).
TESSERA_FN i32 floor_to_int(float value) {
    const float bounded = clamp_(value, -1073741824.0f, 1073741824.0f);
    const i32 truncated = (i32)bounded;
    return truncated - (i32)((float)truncated > bounded);
}

// 32 random bits to [0, 1): the upper 24 bits, exact.
TESSERA_FN float unit_from_bits(u32 bits) { return (float)(bits >> 8) * 0x1p-24f; }

// (1 - x)^5 of Schlick's approximation.
TESSERA_FN float pow5(float value) {
    const float squared = value * value;
    return squared * squared * value;
}

struct SinCos {
    float sine;
    float cosine;
};

// Sine and cosine of 2 pi `turns` for |turns| <= 2^20: reduced exactly to an eighth of a turn, then minimax polynomials.
// Absolute error below 1.2e-7.
TESSERA_FN SinCos sincos_turns(float turns) {
    const i32 quarter = floor_to_int(fma_(turns, 4.0f, 0.5f));
    const float rest = fma_((float)quarter, -0.25f, turns) * TWO_PI;  // within a quarter of pi
    const float squared = rest * rest;
    float sine = fma_(squared, 0x1.6c8986p-19f, -0x1.a00e0ep-13f);
    sine = fma_(squared, sine, 0x1.111106p-7f);
    sine = fma_(squared, sine, -0x1.555556p-3f);
    sine = fma_(squared * rest, sine, rest);
    float cosine = fma_(squared, 0x1.9a0258p-16f, -0x1.6c0c8cp-10f);
    cosine = fma_(squared, cosine, 0x1.55554ap-5f);
    cosine = fma_(squared, cosine, -0.5f);
    cosine = fma_(squared, cosine, 1.0f);
    const bool swap = (quarter & 1) != 0;
    const float first = swap ? cosine : sine;
    const float second = swap ? sine : cosine;
    SinCos result;
    result.sine = (quarter & 2) ? -first : first;
    result.cosine = ((quarter + 1) & 2) ? -second : second;
    return result;
}

// Angle of (x, y) in (-pi, pi]; 0 for the origin. Absolute error below 5e-7.
TESSERA_FN float atan2_(float y, float x) {
    const float across = abs_(x);
    const float up = abs_(y);
    const bool steep = up > across;
    const float low = steep ? across : up;
    const float high = steep ? up : across;
    const float ratio = high > 0.0f ? low / high : 0.0f;
    const float squared = ratio * ratio;
    float angle = fma_(squared, -0x1.1d6e4cp-8f, 0x1.797c2ap-6f);
    angle = fma_(squared, angle, -0x1.d94728p-5f);
    angle = fma_(squared, angle, 0x1.912bb0p-4f);
    angle = fma_(squared, angle, -0x1.1e3d7cp-3f);
    angle = fma_(squared, angle, 0x1.98d60ep-3f);
    angle = fma_(squared, angle, -0x1.5550f2p-2f);
    angle = fma_(squared * ratio, angle, ratio);
    angle = steep ? HALF_PI - angle : angle;
    angle = x < 0.0f ? PI - angle : angle;
    return copysign_(angle, y);
}
