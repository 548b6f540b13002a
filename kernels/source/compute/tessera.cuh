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
// It is launched with at least `chunk.count` threads, once for each chunk of the domain, and with
// --steps once for each step. A block is a range of indices. With --block XxY or XxYxZ it is a
// rectangle or a box of them: then a chunk is whole rows, or whole layers of a domain of three
// axes, and the grid's axes are those of the domain. Beyond the domain's edge `x`, `y` and `z` go
// on.
#pragma once

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
};
static_assert(sizeof(TesseraChunk) == 56, "the launcher passes 56 bytes");

enum TesseraElement {
    TESSERA_F32 = 0,
    TESSERA_F64 = 1,
    TESSERA_I32 = 2,
    TESSERA_U32 = 3,
    TESSERA_I64 = 4,
    TESSERA_U64 = 5,
};

// An input, in C order: shape[0] is the slowest axis.
struct TesseraArray {
    const void* data;
    unsigned int element;         // a TesseraElement
    unsigned int rank;            // axes, 0 to 4
    unsigned long long shape[4];  // 1 beyond the rank
    unsigned long long length;    // values in all
};
static_assert(sizeof(TesseraArray) == 56, "the binder writes 56 bytes");

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

// What tessera_store writes stands as a comment in the PTX: from it `tessera compute` knows the
// job's element type.
template <class T>
struct TesseraStored {
    static_assert(sizeof(T) == 0,
        "tessera_store writes float, double, int, unsigned int, long long or unsigned long long");
};
#define TESSERA_STORED(type, name) \
    template <> \
    struct TesseraStored<type> { \
        static __device__ __forceinline__ void note() { asm volatile("// tessera_store " name); } \
    };
TESSERA_STORED(float, "f32")
TESSERA_STORED(double, "f64")
TESSERA_STORED(int, "i32")
TESSERA_STORED(unsigned int, "u32")
TESSERA_STORED(long, "i64")
TESSERA_STORED(unsigned long, "u64")
TESSERA_STORED(long long, "i64")
TESSERA_STORED(unsigned long long, "u64")
#undef TESSERA_STORED
static_assert(sizeof(long) == 8, "kernels are compiled for 64 bits");

// Writes one value; does nothing outside of the chunk or its channels. T is the job's element type.
template <class T>
static __device__ __forceinline__ void tessera_store(
    const TesseraChunk& chunk, const TesseraIndex& at, unsigned int channel, T value) {
    TesseraStored<T>::note();
    if (at.valid && channel < chunk.channels) {
        ((T*)chunk.out)[(unsigned long long)at.local * chunk.channels + channel] = value;
    }
}

// Reads one value; 0 outside of the array. T must be the array's element type.
template <class T>
static __device__ __forceinline__ T tessera_load(const TesseraArray& array,
                                                 unsigned long long index) {
    return index < array.length ? ((const T*)array.data)[index] : T(0);
}

// 64 random bits for (seed, index, counter): the same for the same three, whoever asks and when.
// SplitMix64's finalizer, twice.
static __device__ __forceinline__ unsigned long long tessera_random(
    const TesseraChunk& chunk, const TesseraIndex& at, unsigned int counter) {
    unsigned long long bits = chunk.seed ^ (unsigned long long)chunk.frame << 32;
    for (int round = 0; round < 2; round++) {
        bits += round == 0 ? at.index : 0x9e3779b97f4a7c15ull * (counter + 1ull);
        bits = (bits ^ bits >> 30) * 0xbf58476d1ce4e5b9ull;
        bits = (bits ^ bits >> 27) * 0x94d049bb133111ebull;
        bits ^= bits >> 31;
    }
    return bits;
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
