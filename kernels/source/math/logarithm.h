// Powers of two and their inverse in 32 bits, for both compilers. Owns no other function.
#pragma once

#include "math/arithmetic.h"

const float LOG2_E = 0x1.715476p+0f;

// log2 of a positive normal number, absolute error below 3e-7: m in [sqrt(1/2), sqrt(2)), then the
// series of the inverse hyperbolic tangent of (m - 1) / (m + 1).
TESSERA_FN float log2_(float value) {
    const u32 bits = bits_from_float(max_(value, 0x1p-126f));
    // 0x3f3504f3 is sqrt(1/2): what lies above counts from the next power.
    const i32 exponent = (i32)(bits - 0x3f3504f3u) >> 23;
    const float mantissa = float_from_bits(bits - ((u32)exponent << 23));
    const float ratio = (mantissa - 1.0f) / (mantissa + 1.0f);
    const float squared = ratio * ratio;
    float series = fma_(squared, 0x1.484b14p-2f, 0x1.a61762p-2f);  // 2 / (9 ln 2) and so on
    series = fma_(squared, series, 0x1.2776c6p-1f);
    series = fma_(squared, series, 0x1.ec709ep-1f);
    series = fma_(squared, series, 0x1.715476p+1f);
    return fma_(ratio, series, (float)exponent);
}

// 2^value, relative error below 3e-7; clamped to [2^-126, 2^127].
TESSERA_FN float exp2_(float value) {
    const float bounded = clamp_(value, -126.0f, 127.0f);
    const i32 whole = floor_to_int(bounded + 0.5f);
    const float rest = bounded - (float)whole;
    float series = fma_(rest, 0x1.ffcbfcp-17f, 0x1.430912p-13f);
    series = fma_(rest, series, 0x1.5d87fep-10f);
    series = fma_(rest, series, 0x1.3b2ab6p-7f);
    series = fma_(rest, series, 0x1.c6b08ep-5f);
    series = fma_(rest, series, 0x1.ebfbep-3f);
    series = fma_(rest, series, 0x1.62e43p-1f);
    series = fma_(rest, series, 1.0f);
    return series * float_from_bits((u32)(whole + 127) << 23);
}

// base^exponent for base >= 0; 0 for 0.
TESSERA_FN float pow_(float base, float exponent) {
    return base > 0.0f ? exp2_(exponent * log2_(base)) : 0.0f;
}
