// Random numbers: Owen-scrambled Sobol points keyed by (pixel, sample index, dimension), after Burley 2020, "Practical
// Hash-based Owen Scrambling". Every dimension of the integrand has a name; each name gets its own two-dimensional
// (0, 2)-sequence, shuffled and scrambled on its own, so that any prefix of 2^k samples of a pixel is stratified.
#pragma once

#include "hash.h"
#include "vector.h"

// Draws of a path before its first scattering, and the first of those that repeat at every scattering.
enum Dimension : u32 { DIMENSION_PIXEL = 0, DIMENSION_LENS = 1, DIMENSION_SCATTER = 2 };

// Draws at one scattering, counted from DIMENSION_SCATTER + depth * SCATTER_COUNT.
enum ScatterDimension : u32 {
    SCATTER_CHOICE = 0,       // x: which light, y: which lobe
    SCATTER_LIGHT = 1,        // where on the light
    SCATTER_DIRECTION = 2,    // where in the lobe
    SCATTER_ROULETTE = 3,     // x: whether the path goes on
    SCATTER_COUNT = 4
};

// Which numbers a path gets.
template <class Word>
struct SamplerOf {
    Word key;             // of pixel, seed and frame
    Word reversed_index;  // the sample index, lowest bit first
};
typedef SamplerOf<u32> Sampler;

// A hash in which a bit of the result depends on that bit and lower ones only (Laine and Karras 2011): between two bit
// reversals it permutes an elementary interval at every level at once, which is Owen's scrambling.
template <class Word>
TESSERA_FN Word laine_karras(Word value, Word seed) {
    value ^= value * 0x3d20adeau;
    value += seed;
    value *= (seed >> 16) | 1u;
    value ^= value * 0x05526c56u;
    value ^= value * 0x53a22864u;
    return value;
}

// Second coordinate of the Sobol sequence, lowest bit first: with the index as a polynomial p over GF(2), p(x + 1).
template <class Word>
TESSERA_FN Word sobol_second_reversed(Word index) {
    index ^= index >> 16;
    index ^= (index & 0xff00ff00u) >> 8;
    index ^= (index & 0xf0f0f0f0u) >> 4;
    index ^= (index & 0xccccccccu) >> 2;
    index ^= (index & 0xaaaaaaaau) >> 1;
    return index;
}

template <class Word>
TESSERA_FN Word pixel_key(Word x, Word y, u32 seed, u32 frame) {
    return hash_pair(hash_pair(x | (y << 16), seed), frame);
}

template <class Word>
TESSERA_FN SamplerOf<Word> make_sampler(Word key, Word sample_index) {
    SamplerOf<Word> sampler;
    sampler.key = key;
    sampler.reversed_index = reverse_bits(sample_index);
    return sampler;
}

template <class Word>
struct Bits2Of {
    Word x, y;
};
typedef Bits2Of<u32> Bits2;

template <class Word>
TESSERA_FN Bits2Of<Word> bits2(Word x, Word y) {
    Bits2Of<Word> bits;
    bits.x = x;
    bits.y = y;
    return bits;
}

// The two random numbers of a dimension, as 32-bit fractions.
template <class Word>
TESSERA_FN Bits2Of<Word> draw_bits(const SamplerOf<Word>& sampler, Same<Word> dimension) {
    const Word key = hash_u32<Word>(sampler.key + dimension * 0x9e3779b9u);
    const Word index = reverse_bits(laine_karras(sampler.reversed_index, key));
    return bits2<Word>(reverse_bits(laine_karras(index, hash_u32<Word>(key ^ 0x68bc21ebu))),
                       reverse_bits(laine_karras(sobol_second_reversed(index), hash_u32<Word>(key ^ 0x02e5be93u))));
}

template <class Word>
TESSERA_FN auto units_from_bits(Bits2Of<Word> bits) {
    return vec2(unit_from_bits(bits.x), unit_from_bits(bits.y));
}

// The two random numbers of a dimension, in [0, 1).
template <class Word>
TESSERA_FN auto draw(const SamplerOf<Word>& sampler, Same<Word> dimension) {
    return units_from_bits(draw_bits(sampler, dimension));
}

// `which`: a ScatterDimension.
template <class Word>
TESSERA_FN Word scatter_dimension(Word depth, u32 which) {
    return depth * SCATTER_COUNT + (DIMENSION_SCATTER + which);
}
