// Everything that depends on the compiler: the one file with `#if`. Fixed-width types, function
// markers, and the handful of operations that each compiler spells its own way.
#pragma once

#if defined(__CUDACC__) || defined(__CUDA__)
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef int i32;
typedef unsigned long long u64;
typedef long long i64;
#if defined(__CUDACC__)
#define TESSERA_FN __device__ static __forceinline__
#define TESSERA_SMALL_FN TESSERA_FN
#define TESSERA_RARE_FN __device__ static __forceinline__
#define TESSERA_UNROLL _Pragma("unroll")
#define TESSERA_ROLLED _Pragma("unroll 1")
#define TESSERA_TABLE __device__ static const
// A kernel of at most `threads` a block, of which `blocks` shall fit on a multiprocessor.
#define TESSERA_KERNEL(threads, blocks) \
    extern "C" __global__ void __launch_bounds__(threads, blocks)
TESSERA_FN float float_from_bits(u32 bits) { return __uint_as_float(bits); }
TESSERA_FN u32 bits_from_float(float value) { return __float_as_uint(value); }
TESSERA_FN float fma_(float a, float b, float c) { return __fmaf_rn(a, b, c); }
TESSERA_FN float sqrt_(float value) { return __fsqrt_rn(value); }
TESSERA_FN u32 reverse_bits(u32 value) { return __brev(value); }
TESSERA_FN u32 count_trailing_zeros(u32 value) { return (u32)__ffs((int)value) - 1u; }
TESSERA_FN u32 count_ones(u32 value) { return (u32)__popc(value); }
// Four of the eight bytes of `low` and `high`: byte k of the result is the one that the selector's
// k-th group of four bits numbers, from 0 to 7.
TESSERA_FN u32 permuted_bytes(u32 low, u32 high, u32 selector) {
    return __byte_perm(low, high, selector);
}
// Four bytes, the first lowest (every machine here is little-endian), at a multiple of 4 from an
// aligned start.
TESSERA_FN u32 load_u32(const u8* at) { return *(const u32*)at; }
// Where neither is a NaN and the sign of a zero cannot matter.
TESSERA_FN float either_min(float a, float b) { return fminf(a, b); }
TESSERA_FN float either_max(float a, float b) { return fmaxf(a, b); }
TESSERA_FN u32 thread_index() { return blockIdx.x * blockDim.x + threadIdx.x; }
TESSERA_FN u32 thread_count() { return gridDim.x * blockDim.x; }
TESSERA_FN u32 lane_index() { return threadIdx.x & 31u; }
// What all threads of a block share, and the barrier at which they wait for each other.
#define TESSERA_SHARED __shared__
TESSERA_FN u32 thread_in_block() { return threadIdx.x; }
TESSERA_FN u32 block_index() { return blockIdx.x; }
TESSERA_FN u32 block_count() { return gridDim.x; }
TESSERA_FN void wait_for_block() { __syncthreads(); }
TESSERA_FN u32 ballot(bool vote) { return __ballot_sync(0xffffffffu, vote); }
TESSERA_FN u32 broadcast(u32 value, u32 lane) { return __shfl_sync(0xffffffffu, value, (int)lane); }
TESSERA_FN u32 take(u32* counter, u32 count) { return atomicAdd(counter, count); }
TESSERA_FN void add_to_sum(i64* sum, i64 value) { atomicAdd((u64*)sum, (u64)value); }
TESSERA_FN void add_to_count(u64* count, u64 value) { atomicAdd(count, value); }
#else
// clang without any header of CUDA's.
#define TESSERA_FN static inline __attribute__((device, always_inline))
#define TESSERA_SMALL_FN TESSERA_FN
#define TESSERA_RARE_FN static inline __attribute__((device, always_inline))
#define TESSERA_UNROLL _Pragma("unroll")
#define TESSERA_ROLLED _Pragma("unroll 1")
#define TESSERA_TABLE static __attribute__((device)) const
#define TESSERA_KERNEL(threads, blocks) \
    extern "C" __attribute__((global, launch_bounds(threads, blocks))) void
TESSERA_FN float float_from_bits(u32 bits) { return __builtin_bit_cast(float, bits); }
TESSERA_FN u32 bits_from_float(float value) { return __builtin_bit_cast(u32, value); }
TESSERA_FN float fma_(float a, float b, float c) { return __nvvm_fma_rn_f(a, b, c); }
TESSERA_FN float sqrt_(float value) { return __nvvm_sqrt_rn_f(value); }
TESSERA_FN u32 reverse_bits(u32 value) { return __builtin_bitreverse32(value); }
TESSERA_FN u32 count_trailing_zeros(u32 value) { return (u32)__builtin_ctz(value); }
TESSERA_FN u32 count_ones(u32 value) { return (u32)__builtin_popcount(value); }
TESSERA_FN u32 permuted_bytes(u32 low, u32 high, u32 selector) {
    return (u32)__nvvm_prmt((i32)low, (i32)high, (i32)selector);
}
TESSERA_FN u32 load_u32(const u8* at) { return *(const u32*)at; }
TESSERA_FN float either_min(float a, float b) { return __nvvm_fmin_f(a, b); }
TESSERA_FN float either_max(float a, float b) { return __nvvm_fmax_f(a, b); }
TESSERA_FN u32 thread_index() {
    return __nvvm_read_ptx_sreg_ctaid_x() * __nvvm_read_ptx_sreg_ntid_x() +
           __nvvm_read_ptx_sreg_tid_x();
}
TESSERA_FN u32 thread_count() {
    return __nvvm_read_ptx_sreg_nctaid_x() * __nvvm_read_ptx_sreg_ntid_x();
}
TESSERA_FN u32 lane_index() { return __nvvm_read_ptx_sreg_tid_x() & 31u; }
#define TESSERA_SHARED __attribute__((shared))
TESSERA_FN u32 thread_in_block() { return __nvvm_read_ptx_sreg_tid_x(); }
TESSERA_FN u32 block_index() { return __nvvm_read_ptx_sreg_ctaid_x(); }
TESSERA_FN u32 block_count() { return __nvvm_read_ptx_sreg_nctaid_x(); }
TESSERA_FN void wait_for_block() { __syncthreads(); }
TESSERA_FN u32 ballot(bool vote) { return __nvvm_vote_ballot_sync(0xffffffffu, vote); }
TESSERA_FN u32 broadcast(u32 value, u32 lane) {
    return (u32)__nvvm_shfl_sync_idx_i32(0xffffffffu, (int)value, (int)lane, 0x1f);
}
TESSERA_FN u32 take(u32* counter, u32 count) {
    return (u32)__nvvm_atom_add_gen_i((int*)counter, (int)count);
}
TESSERA_FN void add_to_sum(i64* sum, i64 value) { __nvvm_atom_add_gen_ll(sum, value); }
TESSERA_FN void add_to_count(u64* count, u64 value) {
    __nvvm_atom_add_gen_ll((i64*)count, (i64)value);
}
#endif
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
// what has to be where it is called: a call costs more
#define TESSERA_SMALL_FN static inline __attribute__((always_inline))
// what most scenes never call must not slow down what they do
#define TESSERA_RARE_FN static __attribute__((noinline))
#define TESSERA_UNROLL  // host compilers do as they like
#define TESSERA_ROLLED
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
// The value is not zero.
TESSERA_FN u32 count_trailing_zeros(u32 value) { return (u32)__builtin_ctz(value); }
TESSERA_FN u32 count_ones(u32 value) { return (u32)__builtin_popcount(value); }
TESSERA_FN u32 permuted_bytes(u32 low, u32 high, u32 selector) {
    const u64 bytes = (u64)high << 32 | low;
    u32 result = 0;
    for (u32 k = 0; k < 4; k++)
        result |= ((u32)(bytes >> (8 * (selector >> (4 * k) & 7u))) & 0xffu) << (8 * k);
    return result;
}
TESSERA_FN u32 load_u32(const u8* at) {
    u32 value;
    __builtin_memcpy(&value, at, 4);
    return value;
}
TESSERA_FN float either_min(float a, float b) { return a < b ? a : b; }
TESSERA_FN float either_max(float a, float b) { return a > b ? a : b; }
// Where threads share a sum these are atomic; on the host every thread has its own.
TESSERA_FN void add_to_sum(i64* sum, i64 value) { *sum += value; }
TESSERA_FN void add_to_count(u64* count, u64 value) { *count += value; }
#endif

// Eight numbers at once, which only hosts compute with (lanes.h): vectors of GNU C++ that any
// machine's compiler takes apart as it must.
#if !defined(__CUDACC__) && !defined(__CUDA__)
typedef float Float8 __attribute__((vector_size(32)));
// as part of an array of floats
typedef float Float8InMemory __attribute__((vector_size(32), may_alias));
typedef u32 Word8 __attribute__((vector_size(32)));
typedef i32 Int8 __attribute__((vector_size(32)));
typedef i32 Int8InMemory __attribute__((vector_size(32), may_alias));
#if defined(__AVX2__) && defined(__FMA__)
TESSERA_SMALL_FN Float8 fma8(Float8 a, Float8 b, Float8 c) {
    return (Float8)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
}
TESSERA_SMALL_FN Float8 sqrt8(Float8 value) { return (Float8)_mm256_sqrt_ps((__m256)value); }
TESSERA_SMALL_FN Float8 lesser_(Float8 a, Float8 b) {
    return (Float8)_mm256_min_ps((__m256)a, (__m256)b);
}
TESSERA_SMALL_FN Float8 greater_(Float8 a, Float8 b) {
    return (Float8)_mm256_max_ps((__m256)a, (__m256)b);
}
TESSERA_SMALL_FN bool any8(Int8 mask) { return _mm256_movemask_ps((__m256)mask) != 0; }
TESSERA_SMALL_FN Word8 swap_bytes8(Word8 value) {
    const __m256i order = _mm256_setr_epi8(3, 2, 1, 0, 7, 6, 5, 4, 11, 10, 9, 8, 15, 14, 13, 12, 3,
                                           2, 1, 0, 7, 6, 5, 4, 11, 10, 9, 8, 15, 14, 13, 12);
    return (Word8)_mm256_shuffle_epi8((__m256i)value, order);
}
#else
TESSERA_SMALL_FN Float8 fma8(Float8 a, Float8 b, Float8 c) {
    Float8 result;
    for (u32 k = 0; k < 8; k++) result[k] = __builtin_fmaf(a[k], b[k], c[k]);
    return result;
}
TESSERA_SMALL_FN Float8 sqrt8(Float8 value) {
    Float8 result;
    for (u32 k = 0; k < 8; k++) result[k] = __builtin_sqrtf(value[k]);
    return result;
}
TESSERA_SMALL_FN Float8 lesser_(Float8 a, Float8 b) {
    Float8 result;
    for (u32 k = 0; k < 8; k++) result[k] = a[k] < b[k] ? a[k] : b[k];
    return result;
}
TESSERA_SMALL_FN Float8 greater_(Float8 a, Float8 b) {
    Float8 result;
    for (u32 k = 0; k < 8; k++) result[k] = a[k] > b[k] ? a[k] : b[k];
    return result;
}
TESSERA_SMALL_FN bool any8(Int8 mask) {
    i32 any = 0;
    for (u32 k = 0; k < 8; k++) any |= mask[k];
    return any != 0;
}
TESSERA_SMALL_FN Word8 swap_bytes8(Word8 value) {
    return value << 24 | (value & 0xff00u) << 8 | (value >> 8 & 0xff00u) | value >> 24;
}
#endif
#endif

// Whether scenes here may hold instances (instance.h). A device has kernels of its own for those
// that do, so that the others, which most are, pay nothing for them.
#if (defined(__CUDACC__) || defined(__CUDA__)) && !defined(TESSERA_INSTANCES)
const bool HAS_INSTANCES = false;
#else
const bool HAS_INSTANCES = true;
#endif

TESSERA_FN u64 multiply_wide(u32 a, u32 b) { return (u64)a * b; }

// Four numbers at once, as the host's walk tests a leaf (wide.h): the selects of box.h, and what
// puts lanes in another order.
#if !defined(__CUDACC__) && !defined(__CUDA__)
typedef float Float4 __attribute__((vector_size(16)));
// as part of an array of floats
typedef float Float4InMemory __attribute__((vector_size(16), may_alias));
typedef i32 Int4 __attribute__((vector_size(16)));
#if defined(__FMA__)
TESSERA_SMALL_FN Float4 fma4(Float4 a, Float4 b, Float4 c) {
    return (Float4)_mm_fmadd_ps((__m128)a, (__m128)b, (__m128)c);
}
#else
TESSERA_SMALL_FN Float4 fma4(Float4 a, Float4 b, Float4 c) {
    Float4 result;
    for (u32 k = 0; k < 4; k++) result[k] = __builtin_fmaf(a[k], b[k], c[k]);
    return result;
}
#endif
#if defined(__AVX__)
TESSERA_SMALL_FN Float4 permuted4(Float4 values, Int4 order) {
    return (Float4)_mm_permutevar_ps((__m128)values, (__m128i)order);
}
#else
TESSERA_SMALL_FN Float4 permuted4(Float4 values, Int4 order) {
    return Float4{values[order[0]], values[order[1]], values[order[2]], values[order[3]]};
}
#endif
#if defined(__SSE2__)
TESSERA_SMALL_FN Float4 lesser_(Float4 a, Float4 b) {
    return (Float4)_mm_min_ps((__m128)a, (__m128)b);
}
TESSERA_SMALL_FN Float4 greater_(Float4 a, Float4 b) {
    return (Float4)_mm_max_ps((__m128)a, (__m128)b);
}
TESSERA_SMALL_FN u32 bits_of_lanes(Int4 mask) { return (u32)_mm_movemask_ps((__m128)mask); }
#else
TESSERA_SMALL_FN Float4 lesser_(Float4 a, Float4 b) { return a < b ? a : b; }
TESSERA_SMALL_FN Float4 greater_(Float4 a, Float4 b) { return a > b ? a : b; }
TESSERA_SMALL_FN u32 bits_of_lanes(Int4 mask) {
    u32 bits = 0;
    for (u32 k = 0; k < 4; k++) bits |= (u32)(mask[k] & 1) << k;
    return bits;
}
#endif
#endif

// Eight lanes, of which those count whose value is not above its limit. Pointers are aligned to all
// the lanes together, values not negative. `lanes_not_above8` has a bit for each lane that counts.
// `lane_of_least8` is where the least value of them is (there is one at least); those that differ
// by less than 2^-8 of themselves may count as alike, and of such the first is taken.
// `put_descending8` writes them one after the other, those of the greatest values first, and last
// the one that lane_of_least8 takes; eight places may be written.
#if defined(__AVX2__) && !defined(__CUDACC__) && !defined(__CUDA__)
TESSERA_SMALL_FN __m256i lanes_above8(const float* values, const float* limits) {
    return _mm256_castps_si256(
        _mm256_cmp_ps(_mm256_load_ps(values), _mm256_load_ps(limits), _CMP_NLE_UQ));
}
TESSERA_SMALL_FN u32 lanes_not_above8(const float* values, const float* limits) {
    return (u32)_mm256_movemask_ps(
        _mm256_cmp_ps(_mm256_load_ps(values), _mm256_load_ps(limits), _CMP_LE_OQ));
}
TESSERA_SMALL_FN u32 lane_of_least8(const float* values, const float* limits) {
    const __m256i value = _mm256_load_si256((const __m256i*)values);
    const __m256i keys =
        _mm256_srli_epi32(_mm256_or_si256(value, lanes_above8(values, limits)), 15);
    const __m128i halves =
        _mm_packus_epi32(_mm256_castsi256_si128(keys), _mm256_extracti128_si256(keys, 1));
    return (u32)_mm_extract_epi16(_mm_minpos_epu16(halves), 1);
}
// One layer of a bitonic network: each lane meets its partner, and keeps the greater or the lesser.
#define TESSERA_LAYER(keys, partner, lesser)                                                      \
    {                                                                                             \
        const __m256i met = partner;                                                              \
        keys =                                                                                    \
            _mm256_blend_epi32(_mm256_max_epi32(keys, met), _mm256_min_epi32(keys, met), lesser); \
    }
TESSERA_SMALL_FN void put_descending8(const float* values, const float* limits, const u32* others,
                                      float* to_values, u32* to_others) {
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    const __m256i value = _mm256_load_si256((const __m256i*)values);
    const __m256i sign = _mm256_set1_epi32((int)0x80000000u);
    __m256i keys = _mm256_or_si256(_mm256_and_si256(value, _mm256_set1_epi32(~0x7fff)), lane);
    // What does not count is below all others, and keeps its own number.
    keys = _mm256_or_si256(keys, _mm256_and_si256(lanes_above8(values, limits), sign));
    TESSERA_LAYER(keys, _mm256_shuffle_epi32(keys, 0xb1), 0xaa)
    TESSERA_LAYER(keys, _mm256_shuffle_epi32(keys, 0x1b), 0xcc)
    TESSERA_LAYER(keys, _mm256_shuffle_epi32(keys, 0xb1), 0xaa)
    TESSERA_LAYER(keys, _mm256_permute4x64_epi64(_mm256_shuffle_epi32(keys, 0x1b), 0x4e), 0xf0)
    TESSERA_LAYER(keys, _mm256_shuffle_epi32(keys, 0x4e), 0xcc)
    TESSERA_LAYER(keys, _mm256_shuffle_epi32(keys, 0xb1), 0xaa)
    // A permutation looks at the lowest three bits alone.
    _mm256_storeu_si256((__m256i*)to_values, _mm256_permutevar8x32_epi32(value, keys));
    const __m256i other = _mm256_load_si256((const __m256i*)others);
    _mm256_storeu_si256((__m256i*)to_others, _mm256_permutevar8x32_epi32(other, keys));
}
#undef TESSERA_LAYER
#else
#if defined(__SSE2__) && !defined(__CUDACC__) && !defined(__CUDA__)
TESSERA_SMALL_FN u32 lanes_not_above4(const float* values, const float* limits) {
    return (u32)_mm_movemask_ps(_mm_cmple_ps(_mm_load_ps(values), _mm_load_ps(limits)));
}
#else
TESSERA_SMALL_FN u32 lanes_not_above4(const float* values, const float* limits) {
    u32 mask = 0;
    for (u32 k = 0; k < 4; k++) mask |= (values[k] <= limits[k] ? 1u : 0u) << k;
    return mask;
}
#endif
TESSERA_SMALL_FN u32 lanes_not_above8(const float* values, const float* limits) {
    return lanes_not_above4(values, limits) | lanes_not_above4(values + 4, limits + 4) << 4;
}
TESSERA_SMALL_FN u32 lane_of_least8(const float* values, const float* limits) {
    u32 mask = lanes_not_above8(values, limits);
    u32 least = count_trailing_zeros(mask);
    while (mask &= mask - 1) {
        const u32 lane = count_trailing_zeros(mask);
        if (values[lane] < values[least]) least = lane;
    }
    return least;
}
TESSERA_SMALL_FN void put_descending8(const float* values, const float* limits, const u32* others,
                                      float* to_values, u32* to_others) {
    u32 count = 0;
    for (u32 mask = lanes_not_above8(values, limits); mask; mask &= mask - 1) {
        const u32 lane = count_trailing_zeros(mask);
        u32 at = count++;
        for (; at > 0 && to_values[at - 1] <= values[lane]; at--) {
            to_values[at] = to_values[at - 1];
            to_others[at] = to_others[at - 1];
        }
        to_values[at] = values[lane];
        to_others[at] = others[lane];
    }
}
#endif
