// The denoiser: a pixel as a weighted regression over its surroundings. Weights are those of
// non-local means, which compares patches by their noise (Rousselle, Knaus and Zwicker 2012,
// "Adaptive Rendering with Non-Local Means Filtering", section 4); the regression is of first order
// in what the first surfaces are (Moon, Carr and Yoon 2014; Bitterli et al. 2016, "Nonlinearly
// Weighted First-order Regression for Denoising Monte Carlo Renderings", section 3). A frame is
// denoised twice: what the first pass makes, both halves of it, is what the second compares and
// fits, with weights that are the surer the less noise is left.
//
// A pixel depends on the pixels at most DENOISE_REACH away and on the frame's edges, by sums in one
// order, so that no cut of a frame shows. Products are not fused here: where a processor lacks the
// instruction, fma_ is a function call, and these are innermost loops.
//
// Owns what is computed. Both go by tiles: devices with a block of threads (compute/denoise.h),
// hosts with eight pixels at once (denoise_tile.h). `F` is a float, or eight.
#pragma once

#include "math/logarithm.h"

const i32 DENOISE_RADIUS = 18;  // of the disc whose pixels make a pixel
const i32 DENOISE_DENSE = 3;    // within which all of them do
const i32 DENOISE_SPARSE = 8;   // and every second one; beyond, every fifth
const i32 DENOISE_PATCH = 3;   // radius of the patches that are compared
// radius of the mean that makes a variance out of squared differences
const i32 DENOISE_SMOOTH = 2;
const i32 DENOISE_REACH = DENOISE_RADIUS + DENOISE_PATCH + DENOISE_SMOOTH;
// Added to every variance, in squared radiance: pixels that have no noise at all are compared too.
const float DENOISE_FLOOR = 2.5e-10f;
// Added to the diagonal, besides as much of itself, beyond what the sums' rounding can make of it:
// directions in which the guides vary by less than three thousandths in a disc are not fitted.
const float DENOISE_RIDGE = 1e-5f;

const i32 DENOISE_GUIDES = 7;  // albedo, normal, log2 of the depth
const i32 DENOISE_TERMS = 1 + DENOISE_GUIDES + 2;  // and the place, across and down, in radii
const i32 DENOISE_MATRIX = DENOISE_TERMS * (DENOISE_TERMS + 1) / 2;

static_assert(DENOISE_REACH == 23, "mirrored in src/denoise.rs");
// Sums are written out for these.
static_assert(DENOISE_PATCH == 3 && DENOISE_SMOOTH == 2, "seven and five terms");

TESSERA_FN i32 denoise_clamp(i32 value, u32 size) {
    return value < 0 ? 0 : value >= (i32)size ? (i32)size - 1 : value;
}

// In units of so many variances differences of colours count. The second pass has less noise to be
// misled by, and may be led further by it.
TESSERA_FN float denoise_strength_squared(u32 pass) { return pass == 0 ? 0.5f : 2.0f; }

// A quarter of the squared difference of the two halves' means: the variance of the mean of all, by
// two observations. `half` is the second half's sum over the number of all samples; the scales are
// all samples over those of each half.
TESSERA_FN float denoise_variance_between(float color, float half, float first_scale,
                                          float second_scale) {
    const float first = (color - half) * first_scale;
    const float apart = 0.5f * (first - half * second_scale);
    return apart * apart;
}

// Numbers that stand `step` apart, one after the other.
TESSERA_FN float denoise_sum5(const float* from, i32 step) {
    return from[0] + from[step] + from[2 * step] + from[3 * step] + from[4 * step];
}

// The variance of a pixel, of the sum of squared differences around it.
TESSERA_FN float denoise_variance(float sum) { return sum * (1.0f / 25.0f) + DENOISE_FLOOR; }

// Seven numbers, by pairs.
template <class F>
TESSERA_SMALL_FN F denoise_sum7(F a, F b, F c, F d, F e, F f, F g) {
    return ((a + b) + (c + d)) + ((e + f) + g);
}

// A pixel as it is compared with others, and what its colours differ by.
template <class F>
struct DenoiseColor {
    F value[3];
    F variance[3];
};

// How much more than noise two pixels differ by, as the sum over their channels of
// ((a - b)^2 + max(v_b - v_a, 0)) / (v_a + v_b): 1 is what noise explains. Equation 3 of Rousselle
// et al. is (sum / 3 - 1) / k^2. There is one division, because it takes as long as all the rest:
// variances are between DENOISE_FLOOR and 2^40, so that no product leaves the range of floats.
template <class F>
TESSERA_SMALL_FN F denoise_distance(const DenoiseColor<F>& a, const DenoiseColor<F>& b) {
    F over[3], under[3];
    TESSERA_UNROLL
    for (u32 c = 0; c < 3; ++c) {
        const F apart = a.value[c] - b.value[c];
        over[c] = apart * apart + max_(b.variance[c] - a.variance[c], F(0.0f));
        under[c] = a.variance[c] + b.variance[c];
    }
    const F both = under[0] * under[1];
    const F sum = (over[0] * under[1] + over[1] * under[0]) * under[2] + over[2] * both;
    return sum / (both * under[2]);
}

// exp(-d), but with an end: (1 - d/4)^4, of the distances' sum over the channels of a patch.
template <class F>
TESSERA_SMALL_FN F denoise_weight(F sum, float strength_squared) {
    const float slope = 0.25f / strength_squared;
    const F rest = saturate_(F(1.0f + slope) - sum * F(slope * (1.0f / (3.0f * 49.0f))));
    const F squared = rest * rest;
    return squared * squared;
}

// How far a disc reaches across, so many rows away from its middle.
TESSERA_FN i32 denoise_half_width(i32 down) {
    i32 across = 0;
    while (4 * ((across + 1) * (across + 1) + down * down) <
           (2 * DENOISE_RADIUS + 1) * (2 * DENOISE_RADIUS + 1))
        ++across;
    return across;
}

// Which pixels of the disc make a pixel. Those far away tell of light that changes slowly, and few
// of them tell enough. A disc is the same seen from either end, so that two pixels that are alike
// help each other.
TESSERA_FN bool denoise_taken(i32 across, i32 down) {
    const i32 squared = across * across + down * down;
    if (squared <= DENOISE_DENSE * DENOISE_DENSE) return true;
    if (squared <= DENOISE_SPARSE * DENOISE_SPARSE) return (across + down) % 2 == 0;
    return (across + 2 * down) % 5 == 0;
}

// The place of a pixel of the disc, in radii.
TESSERA_FN float denoise_place_term(i32 distance) {
    return (float)distance * (1.0f / (float)DENOISE_RADIUS);
}

// The regressions' values at the pixel itself, less the pixel's colours: Cholesky's way through the
// normal equations. `sums` are, for every term, its products with the terms up to it and then with
// the colours; the first is the sum of weights, at least the pixel's own, which is 1.
template <class F, i32 COLORS>
TESSERA_FN void denoise_solve(const F* sums, F* apart) {
    F matrix[DENOISE_TERMS][DENOISE_TERMS];
    F right[DENOISE_TERMS][COLORS];
    const F scale = F(1.0f) / sums[0];
    TESSERA_UNROLL
    for (i32 j = 0; j < DENOISE_TERMS; ++j) {
        TESSERA_UNROLL
        for (i32 k = 0; k <= j; ++k, ++sums) matrix[j][k] = *sums * scale;
        TESSERA_UNROLL
        for (i32 k = 0; k < COLORS; ++k, ++sums) right[j][k] = *sums * scale;
        if (j > 0)
            matrix[j][j] = matrix[j][j] + (matrix[j][j] * F(DENOISE_RIDGE) + F(DENOISE_RIDGE));
    }
    TESSERA_UNROLL
    for (i32 j = 0; j < DENOISE_TERMS; ++j) {  // the diagonal is kept inverted
        TESSERA_UNROLL
        for (i32 k = 0; k <= j; ++k) {
            F rest = matrix[j][k];
            TESSERA_UNROLL
            for (i32 i = 0; i < k; ++i) rest = rest - matrix[j][i] * matrix[k][i];
            matrix[j][k] = k < j ? rest * matrix[k][k] : F(1.0f) / sqrt_(max_(rest, F(1e-8f)));
        }
        TESSERA_UNROLL
        for (i32 c = 0; c < COLORS; ++c) {
            F rest = right[j][c];
            TESSERA_UNROLL
            for (i32 i = 0; i < j; ++i) rest = rest - matrix[j][i] * right[i][c];
            right[j][c] = rest * matrix[j][j];
        }
    }
    TESSERA_UNROLL
    for (i32 j = DENOISE_TERMS - 1; j >= 0; --j) {
        TESSERA_UNROLL
        for (i32 c = 0; c < COLORS; ++c) {
            F rest = right[j][c];
            TESSERA_UNROLL
            for (i32 i = j + 1; i < DENOISE_TERMS; ++i) rest = rest - matrix[i][j] * right[i][c];
            right[j][c] = rest * matrix[j][j];
        }
    }
    TESSERA_UNROLL
    for (i32 c = 0; c < COLORS; ++c) apart[c] = right[0][c];
}
