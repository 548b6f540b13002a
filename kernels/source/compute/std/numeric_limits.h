// <limits> for kernels that NVRTC compiles. Written for Tessera from the C++ standard, section
// [numeric.limits].
#pragma once

#include "float.h"

namespace std {

enum float_round_style {
    round_indeterminate = -1,
    round_toward_zero = 0,
    round_to_nearest = 1,
    round_toward_infinity = 2,
    round_toward_neg_infinity = 3,
};

// What holds for every type until it is said otherwise.
struct __tessera_no_limits {
    static constexpr bool is_specialized = false;
    static constexpr int digits = 0;
    static constexpr int digits10 = 0;
    static constexpr int max_digits10 = 0;
    static constexpr bool is_signed = false;
    static constexpr bool is_integer = false;
    static constexpr bool is_exact = false;
    static constexpr int radix = 0;
    static constexpr int min_exponent = 0;
    static constexpr int min_exponent10 = 0;
    static constexpr int max_exponent = 0;
    static constexpr int max_exponent10 = 0;
    static constexpr bool has_infinity = false;
    static constexpr bool has_quiet_NaN = false;
    static constexpr bool has_signaling_NaN = false;
    static constexpr bool is_iec559 = false;
    static constexpr bool is_bounded = false;
    static constexpr bool is_modulo = false;
    static constexpr bool traps = false;
    static constexpr bool tinyness_before = false;
    static constexpr float_round_style round_style = round_toward_zero;
};

template <class T>
struct numeric_limits : __tessera_no_limits {
    __host__ __device__ static constexpr T min() noexcept { return T(); }
    __host__ __device__ static constexpr T max() noexcept { return T(); }
    __host__ __device__ static constexpr T lowest() noexcept { return T(); }
    __host__ __device__ static constexpr T epsilon() noexcept { return T(); }
    __host__ __device__ static constexpr T round_error() noexcept { return T(); }
    __host__ __device__ static constexpr T infinity() noexcept { return T(); }
    __host__ __device__ static constexpr T quiet_NaN() noexcept { return T(); }
    __host__ __device__ static constexpr T signaling_NaN() noexcept { return T(); }
    __host__ __device__ static constexpr T denorm_min() noexcept { return T(); }
};

template <class T>
struct numeric_limits<const T> : numeric_limits<T> {};
template <class T>
struct numeric_limits<volatile T> : numeric_limits<T> {};
template <class T>
struct numeric_limits<const volatile T> : numeric_limits<T> {};

template <class T>
struct __tessera_integer_limits : __tessera_no_limits {
    static constexpr bool is_specialized = true;
    static constexpr bool is_signed = T(-1) < T(0);
    static constexpr bool is_integer = true;
    static constexpr bool is_exact = true;
    static constexpr bool is_bounded = true;
    static constexpr bool is_modulo = !is_signed;
    static constexpr int radix = 2;
    static constexpr int digits = int(sizeof(T)) * 8 - (is_signed ? 1 : 0);
    static constexpr int digits10 = digits * 30103 / 100000;

    __host__ __device__ static constexpr T max() noexcept {
        return T(~0ull >> (64 - digits));
    }
    __host__ __device__ static constexpr T min() noexcept {
        return is_signed ? T(-max() - 1) : T(0);
    }
    __host__ __device__ static constexpr T lowest() noexcept { return min(); }
    __host__ __device__ static constexpr T epsilon() noexcept { return T(0); }
    __host__ __device__ static constexpr T round_error() noexcept { return T(0); }
    __host__ __device__ static constexpr T infinity() noexcept { return T(0); }
    __host__ __device__ static constexpr T quiet_NaN() noexcept { return T(0); }
    __host__ __device__ static constexpr T signaling_NaN() noexcept { return T(0); }
    __host__ __device__ static constexpr T denorm_min() noexcept { return T(0); }
};

template <>
struct numeric_limits<char> : __tessera_integer_limits<char> {};
template <>
struct numeric_limits<signed char> : __tessera_integer_limits<signed char> {};
template <>
struct numeric_limits<unsigned char> : __tessera_integer_limits<unsigned char> {};
template <>
struct numeric_limits<wchar_t> : __tessera_integer_limits<wchar_t> {};
template <>
struct numeric_limits<char16_t> : __tessera_integer_limits<char16_t> {};
template <>
struct numeric_limits<char32_t> : __tessera_integer_limits<char32_t> {};
template <>
struct numeric_limits<short> : __tessera_integer_limits<short> {};
template <>
struct numeric_limits<unsigned short> : __tessera_integer_limits<unsigned short> {};
template <>
struct numeric_limits<int> : __tessera_integer_limits<int> {};
template <>
struct numeric_limits<unsigned int> : __tessera_integer_limits<unsigned int> {};
template <>
struct numeric_limits<long> : __tessera_integer_limits<long> {};
template <>
struct numeric_limits<unsigned long> : __tessera_integer_limits<unsigned long> {};
template <>
struct numeric_limits<long long> : __tessera_integer_limits<long long> {};
template <>
struct numeric_limits<unsigned long long> : __tessera_integer_limits<unsigned long long> {};

template <>
struct numeric_limits<bool> : __tessera_no_limits {
    static constexpr bool is_specialized = true;
    static constexpr bool is_integer = true;
    static constexpr bool is_exact = true;
    static constexpr bool is_bounded = true;
    static constexpr int radix = 2;
    static constexpr int digits = 1;

    __host__ __device__ static constexpr bool min() noexcept { return false; }
    __host__ __device__ static constexpr bool max() noexcept { return true; }
    __host__ __device__ static constexpr bool lowest() noexcept { return false; }
    __host__ __device__ static constexpr bool epsilon() noexcept { return false; }
    __host__ __device__ static constexpr bool round_error() noexcept { return false; }
    __host__ __device__ static constexpr bool infinity() noexcept { return false; }
    __host__ __device__ static constexpr bool quiet_NaN() noexcept { return false; }
    __host__ __device__ static constexpr bool signaling_NaN() noexcept { return false; }
    __host__ __device__ static constexpr bool denorm_min() noexcept { return false; }
};

struct __tessera_float_limits : __tessera_no_limits {
    static constexpr bool is_specialized = true;
    static constexpr bool is_signed = true;
    static constexpr int radix = 2;
    static constexpr bool has_infinity = true;
    static constexpr bool has_quiet_NaN = true;
    static constexpr bool has_signaling_NaN = true;
    static constexpr bool is_iec559 = true;
    static constexpr bool is_bounded = true;
    static constexpr float_round_style round_style = round_to_nearest;
};

template <>
struct numeric_limits<float> : __tessera_float_limits {
    static constexpr int digits = FLT_MANT_DIG;
    static constexpr int digits10 = FLT_DIG;
    static constexpr int max_digits10 = FLT_DECIMAL_DIG;
    static constexpr int min_exponent = FLT_MIN_EXP;
    static constexpr int min_exponent10 = FLT_MIN_10_EXP;
    static constexpr int max_exponent = FLT_MAX_EXP;
    static constexpr int max_exponent10 = FLT_MAX_10_EXP;

    __host__ __device__ static constexpr float min() noexcept { return FLT_MIN; }
    __host__ __device__ static constexpr float max() noexcept { return FLT_MAX; }
    __host__ __device__ static constexpr float lowest() noexcept { return -FLT_MAX; }
    __host__ __device__ static constexpr float epsilon() noexcept { return FLT_EPSILON; }
    __host__ __device__ static constexpr float round_error() noexcept { return 0.5f; }
    __host__ __device__ static constexpr float infinity() noexcept {
        return __builtin_bit_cast(float, 0x7f800000u);
    }
    __host__ __device__ static constexpr float quiet_NaN() noexcept {
        return __builtin_bit_cast(float, 0x7fc00000u);
    }
    __host__ __device__ static constexpr float signaling_NaN() noexcept {
        return __builtin_bit_cast(float, 0x7fa00000u);
    }
    __host__ __device__ static constexpr float denorm_min() noexcept { return FLT_TRUE_MIN; }
};

template <>
struct numeric_limits<double> : __tessera_float_limits {
    static constexpr int digits = DBL_MANT_DIG;
    static constexpr int digits10 = DBL_DIG;
    static constexpr int max_digits10 = DBL_DECIMAL_DIG;
    static constexpr int min_exponent = DBL_MIN_EXP;
    static constexpr int min_exponent10 = DBL_MIN_10_EXP;
    static constexpr int max_exponent = DBL_MAX_EXP;
    static constexpr int max_exponent10 = DBL_MAX_10_EXP;

    __host__ __device__ static constexpr double min() noexcept { return DBL_MIN; }
    __host__ __device__ static constexpr double max() noexcept { return DBL_MAX; }
    __host__ __device__ static constexpr double lowest() noexcept { return -DBL_MAX; }
    __host__ __device__ static constexpr double epsilon() noexcept { return DBL_EPSILON; }
    __host__ __device__ static constexpr double round_error() noexcept { return 0.5; }
    __host__ __device__ static constexpr double infinity() noexcept {
        return __builtin_bit_cast(double, 0x7ff0000000000000ull);
    }
    __host__ __device__ static constexpr double quiet_NaN() noexcept {
        return __builtin_bit_cast(double, 0x7ff8000000000000ull);
    }
    __host__ __device__ static constexpr double signaling_NaN() noexcept {
        return __builtin_bit_cast(double, 0x7ff4000000000000ull);
    }
    __host__ __device__ static constexpr double denorm_min() noexcept { return DBL_TRUE_MIN; }
};

}  // namespace std
