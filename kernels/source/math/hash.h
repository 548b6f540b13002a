// Integer hashing: how keys are made of pixels, samples and ids. The same on every machine, and
// never of an address or a clock.
#pragma once

#include "math/arithmetic.h"

// A bijection of 32 bits with low bias (Wellons 2018, "Prospecting for Hash Functions").
template <class Word>
TESSERA_FN Word hash_u32(Word value) {
    value ^= value >> 16;
    value *= 0x7feb352du;
    value ^= value >> 15;
    value *= 0x846ca68bu;
    value ^= value >> 16;
    return value;
}

// A key made of two, in order.
template <class Word>
TESSERA_FN Word hash_pair(Word first, Same<Word> second) {
    return hash_u32<Word>(first * 0x9e3779b1u + hash_u32<Word>(second ^ 0x5bd1e995u));
}
