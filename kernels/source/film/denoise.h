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
// instruction, fma_ is a function call, and these are innermost loops. They go over rows of tiles,
// one operation each, because that is what host compilers turn into vectors.
#pragma once

#include "math/logarithm.h"

const i32 DENOISE_TILE_WIDTH = 64;
const i32 DENOISE_TILE_HEIGHT = 16;
const i32 DENOISE_RADIUS = 18;  // of the disc whose pixels make a pixel
const i32 DENOISE_DENSE = 3;    // within which all of them do
const i32 DENOISE_SPARSE = 8;   // and every second one; beyond, every fifth
const i32 DENOISE_PATCH = 3;   // radius of the patches that are compared
// radius of the mean that makes a variance out of squared differences
const i32 DENOISE_SMOOTH = 2;
const i32 DENOISE_REACH = DENOISE_RADIUS + DENOISE_PATCH + DENOISE_SMOOTH;
// Squared radiance, for pixels that have no noise at all.
const float DENOISE_FLOOR = 1e-9f;
// Added to the diagonal, besides as much of itself, beyond what the sums' rounding can make of it:
// directions in which the guides vary by less than three thousandths in a disc are not fitted.
const float DENOISE_RIDGE = 1e-5f;

const i32 DENOISE_GUIDES = 7;  // albedo, normal, log2 of the depth
const i32 DENOISE_TERMS = 1 + DENOISE_GUIDES + 2;  // and the place, across and down, in radii
const i32 DENOISE_MATRIX = DENOISE_TERMS * (DENOISE_TERMS + 1) / 2;
const i32 DENOISE_COLORS = 6;  // that are fitted: the mean of all samples, and the second half
const i32 DENOISE_SUMS = DENOISE_MATRIX + DENOISE_COLORS * DENOISE_TERMS;

// Channels of the input.
enum DenoiseChannel : u32 {
    DENOISE_COLOR = 0,   // mean of all samples
    DENOISE_HALF = 3,    // sum of the second half of them over their whole number
    DENOISE_ALBEDO = 6,
    DENOISE_NORMAL = 9,
    DENOISE_DEPTH = 12,
    DENOISE_CHANNELS = 13
};

// Some rows of a frame, and which tile of them is wanted. Mirrored in src/denoise.rs.
struct DenoiseParams {
    const float* channels[DENOISE_CHANNELS];  // each width * rows, row by row
    u32 width;       // of the frame
    u32 height;
    u32 first_row;   // of the frame, that stands first in the channels
    // all that are at most DENOISE_REACH away from the tile, as far as the frame has them
    u32 rows;
    u32 x;           // of the tile; it is cut at the frame's edges
    u32 y;
    float first_scale;   // all samples over those of the first half
    float second_scale;  // and over those of the second
    u32 pass;            // 0 first, 1 second
};

// Pixels around a tile that are needed, and those whose variance is.
const i32 DENOISE_MARGIN = DENOISE_RADIUS + DENOISE_PATCH;
const i32 DENOISE_LOCAL_WIDTH = DENOISE_TILE_WIDTH + 2 * DENOISE_MARGIN;
const i32 DENOISE_LOCAL_HEIGHT = DENOISE_TILE_HEIGHT + 2 * DENOISE_MARGIN;
const i32 DENOISE_LOCAL = DENOISE_LOCAL_WIDTH * DENOISE_LOCAL_HEIGHT;
const i32 DENOISE_RAW_WIDTH = DENOISE_LOCAL_WIDTH + 2 * DENOISE_SMOOTH;
const i32 DENOISE_RAW_HEIGHT = DENOISE_LOCAL_HEIGHT + 2 * DENOISE_SMOOTH;
const i32 DENOISE_PATCH_WIDTH = DENOISE_TILE_WIDTH + 2 * DENOISE_PATCH;
const i32 DENOISE_PATCH_HEIGHT = DENOISE_TILE_HEIGHT + 2 * DENOISE_PATCH;
const i32 DENOISE_SIDE = 2 * DENOISE_RADIUS + 1;
// pixels of the disc that are added while a sum is at hand, one after the other
const i32 DENOISE_TOGETHER = 4;
const i32 DENOISE_LANES = 16;    // columns whose weights are at hand meanwhile

// A tile and its surroundings, and what becomes of them. Mirrored in src/denoise.rs by its size.
struct DenoiseScratch {
    float color[DENOISE_COLORS][DENOISE_LOCAL];
    float variance[3][DENOISE_LOCAL];
    float guides[DENOISE_GUIDES][DENOISE_LOCAL];
    float inside[DENOISE_LOCAL];  // 1 in the frame, 0 outside
    float raw[DENOISE_RAW_WIDTH * DENOISE_RAW_HEIGHT];
    float raw_across[DENOISE_LOCAL_WIDTH * DENOISE_RAW_HEIGHT];
    float none[DENOISE_TILE_WIDTH];  // weights of nothing
    float distance[DENOISE_PATCH_WIDTH];
    float across[DENOISE_TILE_WIDTH * DENOISE_PATCH_HEIGHT];
    float weight[DENOISE_SIDE][DENOISE_TILE_HEIGHT][DENOISE_TILE_WIDTH];
    float terms[DENOISE_TERMS][DENOISE_TOGETHER][DENOISE_TILE_WIDTH];
    float apart[DENOISE_COLORS][DENOISE_TOGETHER][DENOISE_TILE_WIDTH];
    float sums[DENOISE_TILE_HEIGHT][DENOISE_SUMS][DENOISE_TILE_WIDTH];
};

static_assert(sizeof(DenoiseScratch) == 1116776 && sizeof(DenoiseParams) == 144,
              "mirrored in src/denoise.rs");
static_assert(DENOISE_TILE_WIDTH == 64 && DENOISE_TILE_HEIGHT == 16 && DENOISE_REACH == 23,
              "mirrored in src/denoise.rs");
// Sums are written out for these.
static_assert(DENOISE_PATCH == 3 && DENOISE_SMOOTH == 2, "seven and five terms");

TESSERA_FN i32 denoise_clamp(i32 value, u32 size) {
    return value < 0 ? 0 : value >= (i32)size ? (i32)size - 1 : value;
}

// Index in a channel of a pixel of the frame; beyond an edge stands the edge's own pixel.
TESSERA_FN u64 denoise_place(const DenoiseParams& params, i32 x, i32 y) {
    const u64 row = (u64)denoise_clamp(y, params.height) - params.first_row;
    return row * params.width + (u64)denoise_clamp(x, params.width);
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

TESSERA_FN float denoise_raw_variance(const DenoiseParams& params, u32 channel, u64 place) {
    return denoise_variance_between(params.channels[DENOISE_COLOR + channel][place],
                                    params.channels[DENOISE_HALF + channel][place],
                                    params.first_scale, params.second_scale);
}

// Numbers that stand `step` apart, one after the other.
TESSERA_FN float denoise_sum5(const float* from, i32 step) {
    return from[0] + from[step] + from[2 * step] + from[3 * step] + from[4 * step];
}
TESSERA_FN float denoise_sum7(const float* from, i32 step) {
    return denoise_sum5(from, step) + from[5 * step] + from[6 * step];
}

// The squared difference of two values beyond what their noise explains, in units of that noise
// (equation 3 of Rousselle et al.).
TESSERA_FN float denoise_distance(float strength_squared, float a, float b, float variance_a,
                                  float variance_b) {
    const float apart = a - b;
    const float expected = variance_a + min_(variance_a, variance_b);
    return (apart * apart - expected) /
           (strength_squared * (variance_a + variance_b) + DENOISE_FLOOR);
}

// exp(-distance), but with an end: (1 - d/4)^4.
TESSERA_FN float denoise_weight(float distance) {
    const float rest = max_(1.0f - max_(distance, 0.0f) * 0.25f, 0.0f);
    const float squared = rest * rest;
    return squared * squared;
}

TESSERA_FN void denoise_fill(float* to, float value) {
    for (i32 x = 0; x < DENOISE_TILE_WIDTH; ++x) to[x] = value;
}

// Loads the variance of one channel around the tile.
TESSERA_FN void denoise_load_variance(const DenoiseParams& params, u32 channel,
                                      DenoiseScratch& scratch) {
    const i32 reach = DENOISE_MARGIN + DENOISE_SMOOTH;
    for (i32 y = 0; y < DENOISE_RAW_HEIGHT; ++y) {
        for (i32 x = 0; x < DENOISE_RAW_WIDTH; ++x) {
            const u64 place =
                denoise_place(params, (i32)params.x + x - reach, (i32)params.y + y - reach);
            scratch.raw[y * DENOISE_RAW_WIDTH + x] = denoise_raw_variance(params, channel, place);
        }
    }
    for (i32 y = 0; y < DENOISE_RAW_HEIGHT; ++y) {
        const float* from = scratch.raw + y * DENOISE_RAW_WIDTH;
        float* to = scratch.raw_across + y * DENOISE_LOCAL_WIDTH;
        for (i32 x = 0; x < DENOISE_LOCAL_WIDTH; ++x) to[x] = denoise_sum5(from + x, 1);
    }
    const i32 down = DENOISE_LOCAL_WIDTH;
    for (i32 at = 0; at < DENOISE_LOCAL; ++at) {
        scratch.variance[channel][at] =
            denoise_sum5(scratch.raw_across + at, down) * (1.0f / 25.0f);
    }
}

// Loads the tile and its surroundings.
TESSERA_FN void denoise_load(const DenoiseParams& params, DenoiseScratch& scratch) {
    for (i32 y = 0; y < DENOISE_LOCAL_HEIGHT; ++y) {
        for (i32 x = 0; x < DENOISE_LOCAL_WIDTH; ++x) {
            const i32 frame_x = (i32)params.x + x - DENOISE_MARGIN;
            const i32 frame_y = (i32)params.y + y - DENOISE_MARGIN;
            const u64 place = denoise_place(params, frame_x, frame_y);
            const i32 at = y * DENOISE_LOCAL_WIDTH + x;
            const bool inside = frame_x >= 0 && frame_y >= 0 && frame_x < (i32)params.width &&
                                frame_y < (i32)params.height;
            scratch.inside[at] = inside ? 1.0f : 0.0f;
            for (u32 k = 0; k < (u32)DENOISE_COLORS; ++k)
                scratch.color[k][at] = params.channels[DENOISE_COLOR + k][place];
            for (u32 k = 0; k < 6; ++k)
                scratch.guides[k][at] = params.channels[DENOISE_ALBEDO + k][place];
            scratch.guides[6][at] = log2_(max_(params.channels[DENOISE_DEPTH][place], 0x1p-20f));
        }
    }
    for (u32 channel = 0; channel < 3; ++channel) denoise_load_variance(params, channel, scratch);
    denoise_fill(scratch.none, 0.0f);
    for (i32 y = 0; y < DENOISE_TILE_HEIGHT; ++y) {
        for (i32 k = 0; k < DENOISE_SUMS; ++k) {
            for (i32 x = 0; x < DENOISE_TILE_WIDTH; ++x) scratch.sums[y][k][x] = 0.0f;
        }
    }
}

// Weights of the pixels that lie `offset` places further than the tile's: the distance of their
// patches, summed across and down.
TESSERA_FN void denoise_weigh(float strength, DenoiseScratch& scratch, i32 offset,
                              float (*weight)[DENOISE_TILE_WIDTH]) {
    const i32 corner = (DENOISE_MARGIN - DENOISE_PATCH) * (DENOISE_LOCAL_WIDTH + 1);
    for (i32 y = 0; y < DENOISE_PATCH_HEIGHT; ++y) {
        const i32 row = corner + y * DENOISE_LOCAL_WIDTH;
        const float *r = scratch.color[0] + row, *g = scratch.color[1] + row,
                    *b = scratch.color[2] + row;
        const float *vr = scratch.variance[0] + row, *vg = scratch.variance[1] + row,
                    *vb = scratch.variance[2] + row;
        float* distance = scratch.distance;
        for (i32 x = 0; x < DENOISE_PATCH_WIDTH; ++x) {
            const i32 other = x + offset;
            distance[x] = denoise_distance(strength, r[x], r[other], vr[x], vr[other]) +
                          denoise_distance(strength, g[x], g[other], vg[x], vg[other]) +
                          denoise_distance(strength, b[x], b[other], vb[x], vb[other]);
        }
        float* across = scratch.across + y * DENOISE_TILE_WIDTH;
        for (i32 x = 0; x < DENOISE_TILE_WIDTH; ++x) {
            across[x] = denoise_sum7(distance + x, 1);
        }
    }
    const i32 down = DENOISE_TILE_WIDTH;
    const float scale = 1.0f / (3.0f * 49.0f);
    for (i32 y = 0; y < DENOISE_TILE_HEIGHT; ++y) {
        const float* across = scratch.across + y * down;
        const float* inside =
            scratch.inside + (y + DENOISE_MARGIN) * DENOISE_LOCAL_WIDTH + DENOISE_MARGIN + offset;
        for (i32 x = 0; x < DENOISE_TILE_WIDTH; ++x) {
            weight[y][x] = denoise_weight(denoise_sum7(across + x, down) * scale) * inside[x];
        }
    }
}

TESSERA_FN void denoise_subtract(float* to, const float* a, const float* b) {
    for (i32 x = 0; x < DENOISE_TILE_WIDTH; ++x) to[x] = a[x] - b[x];
}

// What the regressions of a row of the tile are given of a pixel of the disc. Terms and colours are
// differences from the pixel itself: sums stay small, and where all colours are one there is
// nothing to round.
TESSERA_FN void denoise_take(DenoiseScratch& scratch, i32 slot, i32 y, i32 across, i32 down) {
    const i32 row = (y + DENOISE_MARGIN) * DENOISE_LOCAL_WIDTH + DENOISE_MARGIN,
              other = row + down * DENOISE_LOCAL_WIDTH + across;
    denoise_fill(scratch.terms[0][slot], 1.0f);
    for (i32 k = 0; k < DENOISE_GUIDES; ++k) {
        denoise_subtract(scratch.terms[k + 1][slot], scratch.guides[k] + other,
                         scratch.guides[k] + row);
    }
    denoise_fill(scratch.terms[DENOISE_GUIDES + 1][slot],
                 (float)across * (1.0f / (float)DENOISE_RADIUS));
    denoise_fill(scratch.terms[DENOISE_GUIDES + 2][slot],
                 (float)down * (1.0f / (float)DENOISE_RADIUS));
    for (i32 k = 0; k < DENOISE_COLORS; ++k) {
        denoise_subtract(scratch.apart[k][slot], scratch.color[k] + other, scratch.color[k] + row);
    }
}

// A row of the tile for each of the pixels of the disc that were taken.
typedef const float DenoiseRows[DENOISE_TOGETHER][DENOISE_TILE_WIDTH];

// Adds to a sum, in the columns from `first` on, what the pixels that were taken bring to it.
TESSERA_FN void denoise_accumulate(float* to, i32 first,
                                   const float (&weighted)[DENOISE_TOGETHER][DENOISE_LANES],
                                   DenoiseRows& values) {
    for (i32 x = 0; x < DENOISE_LANES; ++x) {
        float sum = to[first + x];
        for (i32 i = 0; i < DENOISE_TOGETHER; ++i)
            sum = sum + weighted[i][x] * values[i][first + x];
        to[first + x] = sum;
    }
}

// Adds the pixels that were taken to the regressions of a row of the tile, in the columns from
// `first` on.
TESSERA_FN void denoise_add_columns(DenoiseScratch& scratch, i32 y, i32 first,
                                    const float* const* weights) {
    float(*sums)[DENOISE_TILE_WIDTH] = scratch.sums[y];
    for (i32 j = 0; j < DENOISE_TERMS; ++j) {
        float weighted[DENOISE_TOGETHER][DENOISE_LANES];  // which compilers keep in registers
        for (i32 i = 0; i < DENOISE_TOGETHER; ++i) {
            for (i32 x = 0; x < DENOISE_LANES; ++x)
                weighted[i][x] = weights[i][first + x] * scratch.terms[j][i][first + x];
        }
        for (i32 k = 0; k <= j; ++k) denoise_accumulate(*sums++, first, weighted, scratch.terms[k]);
        for (i32 k = 0; k < DENOISE_COLORS; ++k)
            denoise_accumulate(*sums++, first, weighted, scratch.apart[k]);
    }
}

// Adds the pixels that were taken to the regressions of a row of the tile.
TESSERA_FN void denoise_add_taken(DenoiseScratch& scratch, i32 y, const float* const* weights) {
    for (i32 x = 0; x < DENOISE_TILE_WIDTH; x += DENOISE_LANES)
        denoise_add_columns(scratch, y, x, weights);
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

TESSERA_FN bool denoise_any(const float* weight) {
    u32 bits = 0;  // weights are not negative
    for (i32 x = 0; x < DENOISE_TILE_WIDTH; ++x) bits |= bits_from_float(weight[x]);
    return bits != 0;
}

// Adds a row of the disc to the regressions of a row of the tile.
TESSERA_FN void denoise_add_row(DenoiseScratch& scratch, i32 y, i32 reach, i32 down) {
    const float* weights[DENOISE_TOGETHER];
    i32 slot = 0;
    for (i32 across = -reach; across <= reach; ++across) {
        const float* weight = scratch.weight[across + DENOISE_RADIUS][y];
        if (!denoise_taken(across, down) || !denoise_any(weight)) continue;
        denoise_take(scratch, slot, y, across, down);
        weights[slot++] = weight;
        if (slot < DENOISE_TOGETHER) continue;
        denoise_add_taken(scratch, y, weights);
        slot = 0;
    }
    if (slot == 0) return;
    for (; slot < DENOISE_TOGETHER; ++slot) {  // nothing of the pixel itself
        denoise_take(scratch, slot, y, 0, 0);
        weights[slot] = scratch.none;
    }
    denoise_add_taken(scratch, y, weights);
}

// Adds a row of the disc to all regressions: weights first, so that the sums of one row of the tile
// stay at hand.
TESSERA_FN void denoise_add(float strength, DenoiseScratch& scratch, i32 down) {
    const i32 reach = denoise_half_width(down);
    for (i32 across = -reach; across <= reach; ++across) {
        if (!denoise_taken(across, down)) continue;
        denoise_weigh(strength, scratch, down * DENOISE_LOCAL_WIDTH + across,
                      scratch.weight[across + DENOISE_RADIUS]);
    }
    for (i32 y = 0; y < DENOISE_TILE_HEIGHT; ++y) denoise_add_row(scratch, y, reach, down);
}

// The regressions' values at the pixel itself, less the pixel's colours: Cholesky's way through the
// normal equations. `sums` are those of one pixel, STEP apart; the first is the sum of weights, at
// least the pixel's own, which is 1.
template <i32 STEP, i32 COLORS>
TESSERA_FN void denoise_solve(const float* sums, float* apart) {
    float matrix[DENOISE_TERMS][DENOISE_TERMS];
    float right[DENOISE_TERMS][COLORS];
    const float scale = 1.0f / sums[0];
    for (i32 j = 0; j < DENOISE_TERMS; ++j) {
        for (i32 k = 0; k <= j; ++k, sums += STEP) matrix[j][k] = *sums * scale;
        for (i32 k = 0; k < COLORS; ++k, sums += STEP) right[j][k] = *sums * scale;
        if (j > 0) matrix[j][j] = matrix[j][j] + (matrix[j][j] * DENOISE_RIDGE + DENOISE_RIDGE);
    }
    for (i32 j = 0; j < DENOISE_TERMS; ++j) {  // the diagonal is kept inverted
        for (i32 k = 0; k <= j; ++k) {
            float rest = matrix[j][k];
            for (i32 i = 0; i < k; ++i) rest = rest - matrix[j][i] * matrix[k][i];
            matrix[j][k] = k < j ? rest * matrix[k][k] : 1.0f / sqrt_(max_(rest, 1e-8f));
        }
        for (i32 c = 0; c < COLORS; ++c) {
            float rest = right[j][c];
            for (i32 i = 0; i < j; ++i) rest = rest - matrix[j][i] * right[i][c];
            right[j][c] = rest * matrix[j][j];
        }
    }
    for (i32 j = DENOISE_TERMS - 1; j >= 0; --j) {
        for (i32 c = 0; c < COLORS; ++c) {
            float rest = right[j][c];
            for (i32 i = j + 1; i < DENOISE_TERMS; ++i) rest = rest - matrix[i][j] * right[i][c];
            right[j][c] = rest * matrix[j][j];
        }
    }
    for (i32 c = 0; c < COLORS; ++c) apart[c] = right[0][c];
}

// One pass over a tile: red, green and blue of its pixels and of their second half to `out`, planes
// of DENOISE_TILE_WIDTH * DENOISE_TILE_HEIGHT. Pixels outside of the frame are written too and mean
// nothing.
TESSERA_FN void denoise_tile(const DenoiseParams& params, DenoiseScratch& scratch, float* out) {
    denoise_load(params, scratch);
    const float strength = denoise_strength_squared(params.pass);
    for (i32 down = -DENOISE_RADIUS; down <= DENOISE_RADIUS; ++down)
        denoise_add(strength, scratch, down);
    for (i32 y = 0; y < DENOISE_TILE_HEIGHT; ++y) {
        for (i32 x = 0; x < DENOISE_TILE_WIDTH; ++x) {
            float apart[DENOISE_COLORS];
            denoise_solve<DENOISE_TILE_WIDTH, DENOISE_COLORS>(scratch.sums[y][0] + x, apart);
            const i32 local = (y + DENOISE_MARGIN) * DENOISE_LOCAL_WIDTH + DENOISE_MARGIN + x;
            for (i32 c = 0; c < DENOISE_COLORS; ++c) {
                const i32 at = (c * DENOISE_TILE_HEIGHT + y) * DENOISE_TILE_WIDTH + x;
                const float value = scratch.color[c][local] + apart[c];
                out[at] = c < (i32)DENOISE_HALF ? max_(value, 0.0f) : value;
            }
        }
    }
}
