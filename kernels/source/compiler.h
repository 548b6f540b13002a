// Everything that depends on the compiler: the one file with `#if`. Fixed-width types, function markers, and the
// handful of operations that each compiler spells its own way.
#pragma once

#if defined(__CUDACC__)
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef int i32;
typedef unsigned long long u64;
typedef long long i64;
#define TESSERA_FN __device__ static inline
#define TESSERA_TABLE __device__ static const
TESSERA_FN float float_from_bits(u32 bits) { return __uint_as_float(bits); }
TESSERA_FN u32 bits_from_float(float value) { return __float_as_uint(value); }
TESSERA_FN float fma_(float a, float b, float c) { return __fmaf_rn(a, b, c); }
TESSERA_FN float sqrt_(float value) { return __fsqrt_rn(value); }
TESSERA_FN u32 reverse_bits(u32 value) { return __brev(value); }
TESSERA_FN u64 multiply_wide(u32 a, u32 b) { return (u64)a * b; }
TESSERA_FN u32 count_trailing_zeros(u32 value) { return (u32)__ffs((int)value) - 1u; }
#else
#include <stdint.h>
#if defined(__SSE2__)
#include <immintrin.h>
#endif
typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef int32_t i32;
typedef uint64_t u64;
typedef int64_t i64;
#define TESSERA_FN static inline
#define TESSERA_TABLE static const
TESSERA_FN float float_from_bits(u32 bits) {
    float value;
    __builtin_memcpy(&value, &bits, 4);
    return value;
}
TESSERA_FN u32 bits_from_float(float value) {
    u32 bits;
    __builtin_memcpy(&bits, &value, 4);
    return bits;
}
TESSERA_FN float fma_(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
TESSERA_FN float sqrt_(float value) { return __builtin_sqrtf(value); }
TESSERA_FN u32 reverse_bits(u32 value) {
    value = ((value >> 1) & 0x55555555u) | ((value & 0x55555555u) << 1);
    value = ((value >> 2) & 0x33333333u) | ((value & 0x33333333u) << 2);
    value = ((value >> 4) & 0x0f0f0f0fu) | ((value & 0x0f0f0f0fu) << 4);
    return __builtin_bswap32(value);
}
TESSERA_FN u64 multiply_wide(u32 a, u32 b) { return (u64)a * b; }
// The value is not zero.
TESSERA_FN u32 count_trailing_zeros(u32 value) { return (u32)__builtin_ctz(value); }
#endif

// The comparisons below turn lanes into bits, which compilers do not find by themselves: bit k is a[k] <= b[k] (false
// where either is NaN). Pointers are aligned to all the lanes together.
#if defined(__AVX__) && !defined(__CUDACC__)
TESSERA_FN u32 lanes_not_above8(const float* a, const float* b) {
    return (u32)_mm256_movemask_ps(_mm256_cmp_ps(_mm256_load_ps(a), _mm256_load_ps(b), _CMP_LE_OQ));
}
TESSERA_FN u32 lanes_not_above4(const float* a, const float* b) {
    return (u32)_mm_movemask_ps(_mm_cmple_ps(_mm_load_ps(a), _mm_load_ps(b)));
}
#elif defined(__SSE2__) && !defined(__CUDACC__)
TESSERA_FN u32 lanes_not_above4(const float* a, const float* b) {
    return (u32)_mm_movemask_ps(_mm_cmple_ps(_mm_load_ps(a), _mm_load_ps(b)));
}
TESSERA_FN u32 lanes_not_above8(const float* a, const float* b) {
    return lanes_not_above4(a, b) | lanes_not_above4(a + 4, b + 4) << 4;
}
#else
TESSERA_FN u32 lanes_not_above4(const float* a, const float* b) {
    u32 mask = 0;
    for (u32 k = 0; k < 4; k++) mask |= (a[k] <= b[k] ? 1u : 0u) << k;
    return mask;
}
TESSERA_FN u32 lanes_not_above8(const float* a, const float* b) {
    return lanes_not_above4(a, b) | lanes_not_above4(a + 4, b + 4) << 4;
}
#endif
