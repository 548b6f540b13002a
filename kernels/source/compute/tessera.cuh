// What a compute kernel of Tessera sees. It is there for every kernel by `#include "tessera.cuh"`;
// `tessera compute --header` prints it.
//
// A kernel is one function, and what it reads are variables of the module, bound by their names:
//
//     #include "tessera.cuh"
//     extern "C" __constant__ TesseraArray image;      // --input image=FILE.npy
//     extern "C" __constant__ float exposure;          // --arg exposure=2.5
//     extern "C" __global__ void compute(TesseraChunk chunk) {
//         const TesseraIndex at = tessera_index(chunk);
//         if (!at.valid) return;
//         tessera_store(chunk, at, 0, exposure * tessera_load<float>(image, at.index));
//     }
//
// A kernel with several results names them, in place of storing into the chunk:
//
//     extern "C" __constant__ TesseraOutput flux;      // --output flux=f64
//     extern "C" __constant__ TesseraOutput id;        // --output id=u32x3
//     ...
//         tessera_store(flux, at, 0, 2.5);
//         tessera_store(id, at, 2, 7u);
//
// It is launched with at least `chunk.count` threads, once for each chunk of the domain, and with
// --steps once for each step. A block is a range of indices. With --block XxY or XxYxZ it is a
// rectangle or a box of them: then a chunk is whole rows, or whole layers of a domain of three
// axes, and the grid's axes are those of the domain. Beyond the domain's edge `x`, `y` and `z` go
// on.
#pragma once

#include "stdint.h"

// A contiguous range of the domain, and where its values go.
struct TesseraChunk {
    unsigned long long first;  // first index of the chunk
    unsigned int count;        // indices in it
    unsigned int width;        // the domain's edges: index = (z * height + y) * width + x
    unsigned int height;
    unsigned int depth;
    unsigned int channels;     // values at each index
    unsigned int frame;        // number of the frame
    unsigned int step;         // number of the launch within the frame, from 0
    unsigned int steps;        // launches of the frame (--steps)
    unsigned long long seed;   // --seed
    void* out;                 // count * channels values of the job's element type, all zero before
                               // (null, and channels 0, where the kernel has named outputs)
};
static_assert(sizeof(TesseraChunk) == 56, "the launcher passes 56 bytes");

enum TesseraElement {
    TESSERA_F32 = 0,
    TESSERA_F64 = 1,
    TESSERA_I32 = 2,
    TESSERA_U32 = 3,
    TESSERA_I64 = 4,
    TESSERA_U64 = 5,
    TESSERA_F16 = 6,  // __half of <cuda_fp16.h>
    TESSERA_U8 = 7,
    TESSERA_I8 = 8,
    TESSERA_U16 = 9,
    TESSERA_I16 = 10,
    TESSERA_BOOL = 11,
    TESSERA_COMPLEX64 = 12,  // float2: real and imaginary part
    TESSERA_COMPLEX128 = 13,  // double2
};

// An input, in C order: shape[0] is the slowest axis.
//
// PTX has no names of types. Tessera knows a variable for an array by this size and alignment,
// which no other structure should have.
struct alignas(256) TesseraArray {
    const void* data;
    unsigned int element;         // a TesseraElement
    unsigned int rank;            // axes, 0 to 4
    unsigned long long shape[4];  // 1 beyond the rank
    unsigned long long length;    // values in all
};
static_assert(sizeof(TesseraArray) == 256, "the binder knows an array by its size");

// A named output: values of one type at each index of the chunk, index by index. It is known by its
// size and alignment, too.
struct alignas(128) TesseraOutput {
    void* data;             // the chunk's values, all zero before
    unsigned int element;   // a TesseraElement
    unsigned int channels;  // values at each index
    unsigned int reserved[92];
};
static_assert(sizeof(TesseraOutput) == 384, "the binder knows an output by its size");

// Where a thread is in the domain.
struct TesseraIndex {
    bool valid;                // false beyond the chunk's end: return
    unsigned int local;        // position in the chunk
    unsigned long long index;  // position in the domain
    unsigned int x;
    unsigned int y;
    unsigned int z;
};

static __device__ __forceinline__ TesseraIndex tessera_index(const TesseraChunk& chunk) {
    TesseraIndex at;
    const unsigned int x = blockIdx.x * blockDim.x + threadIdx.x;
    if (blockDim.y == 1 && blockDim.z == 1) {
        at.local = x;
        at.valid = x < chunk.count;
        at.index = chunk.first + at.local;
        const unsigned long long row = at.index / chunk.width;
        at.x = (unsigned int)(at.index - row * chunk.width);
        at.y = (unsigned int)(row % chunk.height);
        at.z = (unsigned int)(row / chunk.height);
        return at;
    }
    const unsigned int y = blockIdx.y * blockDim.y + threadIdx.y;
    const unsigned int z = blockIdx.z * blockDim.z + threadIdx.z;
    const bool flat = chunk.depth == 1;
    const unsigned int first_row = (unsigned int)(chunk.first / chunk.width);
    const unsigned int rows = flat ? chunk.count / chunk.width : chunk.height;
    at.local = (z * rows + y) * chunk.width + x;
    at.valid = x < chunk.width && y < rows && at.local < chunk.count;
    at.index = chunk.first + at.local;
    at.x = x;
    at.y = flat ? first_row + y : y;
    at.z = flat ? z : first_row / chunk.height + z;
    return at;
}

// Of <cuda_fp16.h>, which a kernel that uses it includes.
struct __half;

// The types of values. What tessera_store writes and tessera_load reads stands as a comment in the
// PTX: from it `tessera compute` knows the job's element type, and which type each input must have.
template <class T>
struct TesseraType {
    static_assert(sizeof(T) == 0,
        "tessera_store and tessera_load take float, double, __half, integers of 8 to 64 bits, "
        "bool, float2 or double2");
};
#define TESSERA_TYPE(type, number, name) \
    template <> \
    struct TesseraType<type> { \
        enum : unsigned int { element = number }; \
        static __device__ __forceinline__ void stored() { \
            asm volatile("// tessera_store " name); \
        } \
        static __device__ __forceinline__ void stored_in(const void* data) { \
            asm volatile("// tessera_output " name " %0" ::"l"(data)); \
        } \
        static __device__ __forceinline__ void loaded(const void* data) { \
            asm volatile("// tessera_load " name " %0" ::"l"(data)); \
        } \
    };
TESSERA_TYPE(float, TESSERA_F32, "f32")
TESSERA_TYPE(double, TESSERA_F64, "f64")
TESSERA_TYPE(int, TESSERA_I32, "i32")
TESSERA_TYPE(unsigned int, TESSERA_U32, "u32")
TESSERA_TYPE(long, TESSERA_I64, "i64")
TESSERA_TYPE(unsigned long, TESSERA_U64, "u64")
TESSERA_TYPE(long long, TESSERA_I64, "i64")
TESSERA_TYPE(unsigned long long, TESSERA_U64, "u64")
TESSERA_TYPE(__half, TESSERA_F16, "f16")
TESSERA_TYPE(unsigned char, TESSERA_U8, "u8")
TESSERA_TYPE(signed char, TESSERA_I8, "i8")
TESSERA_TYPE(char, TESSERA_I8, "i8")
TESSERA_TYPE(unsigned short, TESSERA_U16, "u16")
TESSERA_TYPE(short, TESSERA_I16, "i16")
TESSERA_TYPE(bool, TESSERA_BOOL, "bool")
TESSERA_TYPE(float2, TESSERA_COMPLEX64, "complex64")
TESSERA_TYPE(double2, TESSERA_COMPLEX128, "complex128")
#undef TESSERA_TYPE
static_assert(sizeof(long) == 8, "kernels are compiled for 64 bits");

// A kernel whose blocks work together says, once and outside of functions, what its chunks must
// hold: a multiple of `count` indices, or of `count` whole rows of the domain. Only the chunk at
// the domain's end may hold less. `--chunk-align` says the same for one job.
#define TESSERA_CHUNK_ALIGN(count) extern "C" __constant__ unsigned int tessera_chunk_align = count
#define TESSERA_CHUNK_ROWS(count) extern "C" __constant__ unsigned int tessera_chunk_rows = count

// Writes one value; does nothing outside of the chunk or its channels. T is the job's element type.
template <class T>
static __device__ __forceinline__ void tessera_store(
    const TesseraChunk& chunk, const TesseraIndex& at, unsigned int channel, T value) {
    TesseraType<T>::stored();
    if (at.valid && channel < chunk.channels) {
        ((T*)chunk.out)[(unsigned long long)at.local * chunk.channels + channel] = value;
    }
}

// Writes one value of a named output; does nothing outside of the chunk or the output's channels. T
// must be the output's type: where it is seen that it is not, the job is refused, else the kernel
// traps here.
template <class T>
static __device__ __forceinline__ void tessera_store(
    const TesseraOutput& output, const TesseraIndex& at, unsigned int channel, T value) {
    TesseraType<T>::stored_in(output.data);
    if (output.element != TesseraType<T>::element) __trap();
    if (at.valid && channel < output.channels) {
        ((T*)output.data)[(unsigned long long)at.local * output.channels + channel] = value;
    }
}

// What a load gives outside of the array. A complex value has its real part in x.
template <class T>
static __device__ __forceinline__ T tessera_zero() {
    return T(0);
}
template <>
__device__ __forceinline__ float2 tessera_zero<float2>() {
    return make_float2(0.0f, 0.0f);
}
template <>
__device__ __forceinline__ double2 tessera_zero<double2>() {
    return make_double2(0.0, 0.0);
}

// Reads one value; 0 outside of the array. T must be the array's element type: where it is seen
// that it is not, the job is refused, else the kernel traps here.
template <class T>
static __device__ __forceinline__ T tessera_load(const TesseraArray& array,
                                                 unsigned long long index) {
    TesseraType<T>::loaded(array.data);
    if (array.element != TesseraType<T>::element) __trap();
    return index < array.length ? ((const T*)array.data)[index] : tessera_zero<T>();
}

// Philox 4x32-10: J. Salmon, M. Moraes, R. Dror, D. Shaw, "Parallel random numbers: as easy as
// 1, 2, 3", SC 2011. Replaces the counter by its 128 random bits.
static __device__ __forceinline__ void tessera_philox(unsigned int (&counter)[4],
                                                      unsigned long long key) {
    unsigned int low = (unsigned int)key, high = (unsigned int)(key >> 32);
#pragma unroll
    for (int round = 0; round < 10; round++) {
        const unsigned int first = 0xd2511f53u * counter[0], second = 0xcd9e8d57u * counter[2];
        const unsigned int upper_of_first = __umulhi(0xd2511f53u, counter[0]);
        const unsigned int upper_of_second = __umulhi(0xcd9e8d57u, counter[2]);
        counter[0] = upper_of_second ^ counter[1] ^ low;
        counter[1] = second;
        counter[2] = upper_of_first ^ counter[3] ^ high;
        counter[3] = first;
        low += 0x9e3779b9u;
        high += 0xbb67ae85u;
    }
}

// 64 random bits for (seed, frame, step, index, counter): the same for the same five, whoever asks
// and when; independent where one of them differs. Philox's key is the seed, and its counter (index
// and step, frame, counter / 2): an index has at most 40 bits, a step 24. An even counter takes the
// lower half of its bits, an odd one the upper half.
static __device__ __forceinline__ unsigned long long tessera_random(
    const TesseraChunk& chunk, const TesseraIndex& at, unsigned int counter) {
    const unsigned int upper_of_index = (unsigned int)(at.index >> 32);
    unsigned int bits[4] = {(unsigned int)at.index, upper_of_index | chunk.step << 8, chunk.frame,
                            counter / 2};
    tessera_philox(bits, chunk.seed);
    const unsigned long long lower = bits[0] | (unsigned long long)bits[1] << 32;
    const unsigned long long upper = bits[2] | (unsigned long long)bits[3] << 32;
    return counter % 2 == 0 ? lower : upper;
}

// Uniform in [0, 1): 24 bits.
static __device__ __forceinline__ float tessera_uniform(
    const TesseraChunk& chunk, const TesseraIndex& at, unsigned int counter) {
    return (float)(tessera_random(chunk, at, counter) >> 40) * 0x1p-24f;
}

// Uniform in [0, 1): 53 bits.
static __device__ __forceinline__ double tessera_uniform_double(
    const TesseraChunk& chunk, const TesseraIndex& at, unsigned int counter) {
    return (double)(tessera_random(chunk, at, counter) >> 11) * 0x1p-53;
}
