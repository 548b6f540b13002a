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
// It is launched with at least `chunk.count` threads in one dimension, once for each chunk of the
// domain.
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
    unsigned long long seed;   // --seed
    void* out;                 // count * channels values of the job's element type, all zero before
};
static_assert(sizeof(TesseraChunk) == 48, "the launcher passes 48 bytes");

enum TesseraElement {
    TESSERA_F32 = 0,
    TESSERA_F64 = 1,
    TESSERA_I32 = 2,
    TESSERA_U32 = 3,
    TESSERA_I64 = 4,
    TESSERA_U64 = 5,
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
    at.local = blockIdx.x * blockDim.x + threadIdx.x;
    at.valid = at.local < chunk.count;
    at.index = chunk.first + at.local;
    const unsigned long long row = at.index / chunk.width;
    at.x = (unsigned int)(at.index - row * chunk.width);
    at.y = (unsigned int)(row % chunk.height);
    at.z = (unsigned int)(row / chunk.height);
    return at;
}

// The types of values. What tessera_store writes and tessera_load reads stands as a comment in the
// PTX: from it `tessera compute` knows the job's element type, and which type each input must have.
template <class T>
struct TesseraType {
    static_assert(sizeof(T) == 0,
        "tessera_store and tessera_load take float, double, int, unsigned int, long long or "
        "unsigned long long");
};
#define TESSERA_TYPE(type, number, name) \
    template <> \
    struct TesseraType<type> { \
        enum : unsigned int { element = number }; \
        static __device__ __forceinline__ void stored() { \
            asm volatile("// tessera_store " name); \
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

// Reads one value; 0 outside of the array. T must be the array's element type: where it is seen
// that it is not, the job is refused, else the kernel traps here.
template <class T>
static __device__ __forceinline__ T tessera_load(const TesseraArray& array,
                                                 unsigned long long index) {
    TesseraType<T>::loaded(array.data);
    if (array.element != TesseraType<T>::element) __trap();
    return index < array.length ? ((const T*)array.data)[index] : T(0);
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

// 64 random bits for (seed, frame, index, counter): the same for the same four, whoever asks and
// when; independent where one of them differs. Philox's key is the seed, and its counter (index,
// frame, counter / 2). An even counter takes the lower half of its bits, an odd one the upper half.
static __device__ __forceinline__ unsigned long long tessera_random(
    const TesseraChunk& chunk, const TesseraIndex& at, unsigned int counter) {
    unsigned int bits[4] = {(unsigned int)at.index, (unsigned int)(at.index >> 32), chunk.frame,
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
