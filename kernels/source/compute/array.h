// Chunks and arrays as built-in kernels see them: the layouts of tessera.cuh, for both compilers.
#pragma once

#include "compiler.h"

struct ComputeChunk {
    u64 first;
    u32 count;
    u32 width;
    u32 height;
    u32 depth;
    u32 channels;
    u32 frame;
    u32 step;
    u32 steps;
    u64 seed;
    float* out;
};
static_assert(sizeof(ComputeChunk) == 56, "mirrored in compute.rs and tessera.cuh");

struct ComputeArray {
    const float* data;
    u32 element;
    u32 rank;
    u64 shape[4];
    u64 length;
};
static_assert(sizeof(ComputeArray) == 56, "mirrored in compute.rs and tessera.cuh");

// A value of an array; 0 outside of it.
TESSERA_FN float value_at(const ComputeArray& array, u64 index) {
    return index < array.length ? array.data[index] : 0.0f;
}

// Writes a result. Every NaN is one and the same: machines differ in the signs and payloads of
// those that they make.
TESSERA_FN void store_value(const ComputeChunk& chunk, u64 place, float value) {
    const u32 bits = bits_from_float(value);
    chunk.out[place] = float_from_bits((bits & 0x7fffffffu) > 0x7f800000u ? 0x7fc00000u : bits);
}
