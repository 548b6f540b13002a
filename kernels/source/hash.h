// Integer hashing: how keys are made of pixels, samples and ids. The same on every machine, and never of an address or a clock.
#pragma once

#include "compiler.h"

// A bijection of 32 bits with low bias (Wellons 2018, "Prospecting for Hash Functions").
TESSERA_FN u32 hash_u32(u32 value) {
    value ^= value >> 16;
    value *= 0x7feb352du;
    value ^= value >> 15;
    value *= 0x846ca68bu;
    value ^= value >> 16;
    return value;
}

// A key made of two, in order.
TESSERA_FN u32 hash_pair(u32 first, u32 second) { return hash_u32(first * 0x9e3779b1u + hash_u32(second ^ 0x5bd1e995u)); }
