// Random numbers: Owen-scrambled Sobol points keyed by (pixel, sample index, dimension), after
// Burley 2020, "Practical Hash-based Owen Scrambling". Every dimension of the integrand has a name;
// each name gets its own two-dimensional (0, 2)-sequence, shuffled and scrambled on its own, so
// that any prefix of 2^k samples of a pixel is stratified. So are those of a square of neighbouring
// pixels together: their errors cancel out, and what is left of them is of high frequency.
#pragma once

#include "math/hash.h"
#include "math/vector.h"

// Draws of a path before its first scattering, and the first of those that repeat at every
// scattering.
enum Dimension : u32 { DIMENSION_PIXEL = 0, DIMENSION_LENS = 1, DIMENSION_SCATTER = 2 };

// Draws at one scattering, counted from DIMENSION_SCATTER + depth * SCATTER_COUNT.
enum ScatterDimension : u32 {
    SCATTER_CHOICE = 0,       // x: which light, y: which lobe
    SCATTER_LIGHT = 1,        // where on the light
    SCATTER_DIRECTION = 2,    // where in the lobe
    SCATTER_ROULETTE = 3,     // x: whether the path goes on
    SCATTER_COUNT = 4
};

// Aligned squares of 4 x 4 pixels share shuffles and scrambling. Of any aligned square of 2^m x 2^m
// pixels in them, the first 2^k samples are together a (0, k + 2m, 2)-net, whatever k is
// (docs/kernels.md, "Random numbers").
const u32 NET_SIDE_LOG2 = 2;
const u32 NET_SIDE_MASK = (1u << NET_SIDE_LOG2) - 1u;
const u32 NET_PLACE_MASK = (1u << (2u * NET_SIDE_LOG2)) - 1u;

// 1 / Q and 1 / Q^2 with Q = x^2 + x + 1 as power series over GF(2), the constant term lowest. In x
// + 1 they are the same.
const u32 NET_NEAR = 0xdb6db6dbu;
const u32 NET_FAR = 0x45145145u;

// Which numbers a path gets.
template <class Word>
struct SamplerOf {
    // of square, seed and frame; the lowest bits are the pixel's place in the square, x before y
    Word key;
    Word reversed_index;  // the sample index, lowest bit first
};
typedef SamplerOf<u32> Sampler;

// A hash in which a bit of the result depends on that bit and lower ones only (Laine and Karras
// 2011): between two bit reversals it permutes an elementary interval at every level at once, which
// is Owen's scrambling.
template <class Word>
TESSERA_FN Word laine_karras(Word value, Word seed) {
    value ^= value * 0x3d20adeau;
    value += seed;
    value *= (seed >> 16) | 1u;
    value ^= value * 0x05526c56u;
    value ^= value * 0x53a22864u;
    return value;
}

// Second coordinate of the Sobol sequence, lowest bit first: with the index as a polynomial p over
// GF(2), p(x + 1).
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
    // A sum, so that x left of the frame, with all its high bits set, keeps the bits of y distinct.
    const Word square = (x >> NET_SIDE_LOG2) + ((y >> NET_SIDE_LOG2) << 16);
    const Word place = (x & NET_SIDE_MASK) | ((y & NET_SIDE_MASK) << NET_SIDE_LOG2);
    return (hash_pair(hash_pair(square, seed), frame) & ~NET_PLACE_MASK) | place;
}

template <class Word>
TESSERA_FN SamplerOf<Word> make_sampler(Word key, Word sample_index) {
    SamplerOf<Word> sampler;
    sampler.key = key;
    sampler.reversed_index = reverse_bits(sample_index);
    return sampler;
}

// Whether a sample belongs to the second half of a pixel's samples, by its index alone: films of
// any length can be joined. Of the samples [2^k, 2^(k+1)) the latter half does, and of the first
// two samples the second. So the halves of 2^k samples are as large as each other, and consist of
// aligned blocks of 2^(k-2), 2^(k-3), ... samples, each of which is stratified by itself. Shuffles
// leave nothing else so: samples of which every second one is left out are as good as random ones.
TESSERA_FN bool in_second_half(u32 index) {
    u32 ones = index;  // below the highest one, and there
    ones |= ones >> 1;
    ones |= ones >> 2;
    ones |= ones >> 4;
    ones |= ones >> 8;
    ones |= ones >> 16;
    return index > 0 && index >= ones - (ones >> 2);
}

// A sampler of the same pixel and sample that shares no dimension with this one.
template <class Word>
TESSERA_FN SamplerOf<Word> split_sampler(const SamplerOf<Word>& sampler, Same<Word> which) {
    SamplerOf<Word> split = sampler;
    split.key = (hash_pair(sampler.key & ~NET_PLACE_MASK, which) & ~NET_PLACE_MASK) |
                (sampler.key & NET_PLACE_MASK);
    return split;
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

// What is added, digit by digit, to the points of a pixel by its place in the square; first digits
// are lowest. The place goes through a random linear map first, one that takes squares of 2 x 2 to
// such squares: without, all dimensions of a pixel would have the same part of their nets.
template <class Word>
TESSERA_FN Bits2Of<Word> net_shift(Word place, Word random) {
    // bit 0 within a square of 2 x 2, bit 1 among those
    Word x = place & NET_SIDE_MASK, y = (place >> NET_SIDE_LOG2) & NET_SIDE_MASK;
    x = x ^ ((y >> 1) & random);
    y = y ^ ((x >> 1) & (random >> 1));
    x = x ^ (y & (random >> 2));
    y = y ^ (x & (random >> 4));
    x = x ^ (y & (random >> 6));
    const Word of_x = (x & 1u) * NET_NEAR ^ (x >> 1) * NET_FAR;
    const Word of_y = (y & 1u) * NET_NEAR ^ (y >> 1) * NET_FAR;
    const Word first = of_x ^ (of_y << 1);
    return bits2<Word>(first, first ^ of_y);
}

// The two random numbers of a dimension, as 32-bit fractions.
template <class Word>
TESSERA_FN Bits2Of<Word> draw_bits(const SamplerOf<Word>& sampler, Same<Word> dimension) {
    const Word key = hash_u32<Word>((sampler.key & ~NET_PLACE_MASK) + dimension * 0x9e3779b9u);
    const Word index = reverse_bits(laine_karras(sampler.reversed_index, key));
    const Bits2Of<Word> shift = net_shift<Word>(sampler.key, key);
    return bits2<Word>(
        reverse_bits(laine_karras<Word>(index ^ shift.x, hash_u32<Word>(key ^ 0x68bc21ebu))),
        reverse_bits(laine_karras<Word>(sobol_second_reversed(index) ^ shift.y,
                                        hash_u32<Word>(key ^ 0x02e5be93u))));
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
