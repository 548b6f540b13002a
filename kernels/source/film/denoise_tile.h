// The denoiser on hosts: a tile at once, and eight pixels of a row together. Owns where a tile's
// numbers lie; what is computed is denoise.h's, and sums are added up in its order.
#pragma once

#include "film/denoise.h"
#include "math/lanes.h"

const i32 DENOISE_TILE_WIDTH = 64;
const i32 DENOISE_TILE_HEIGHT = 16;
const i32 DENOISE_LANES = 8;
const i32 DENOISE_COLORS = 6;  // that a pass can fit: the mean of all samples, and the second half
const i32 DENOISE_SUMS = DENOISE_MATRIX + DENOISE_COLORS * DENOISE_TERMS;
// pixels of the disc that are added while a sum is at hand, one after the other
const i32 DENOISE_TOGETHER = 8;
const i32 DENOISE_DISC = 301;  // pixels that make a pixel

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
    u32 colors;          // how many are fitted: 3, without the second half, or 6
};

// A tile and its surroundings, so that all rows begin in a whole vector.
const i32 DENOISE_LOCAL_WIDTH = DENOISE_TILE_WIDTH + 2 * DENOISE_REACH + 2;
const i32 DENOISE_LOCAL_HEIGHT = DENOISE_TILE_HEIGHT + 2 * DENOISE_REACH;
const i32 DENOISE_LOCAL = DENOISE_LOCAL_WIDTH * DENOISE_LOCAL_HEIGHT;
// Columns whose patches are summed down, of which those of the tile are summed across.
const i32 DENOISE_PATCH_WIDTH = DENOISE_TILE_WIDTH + DENOISE_LANES;

// A tile and its surroundings, and what becomes of them. Mirrored in src/denoise.rs by its size.
struct DenoiseScratch {
    float color[DENOISE_COLORS][DENOISE_LOCAL];
    float variance[3][DENOISE_LOCAL];
    float guides[DENOISE_GUIDES][DENOISE_LOCAL];
    float inside[DENOISE_LOCAL];  // 1 in the frame, 0 outside
    float raw[DENOISE_LOCAL];
    float across[DENOISE_LOCAL];
    float down[DENOISE_TILE_HEIGHT][DENOISE_PATCH_WIDTH];
    float weight[DENOISE_TILE_HEIGHT][DENOISE_DISC][DENOISE_TILE_WIDTH];
    i32 disc[DENOISE_DISC][2];  // across and down
};

static_assert(sizeof(DenoiseScratch) == 1767656 && sizeof(DenoiseParams) == 144,
              "mirrored in src/denoise.rs");
static_assert(DENOISE_TILE_WIDTH == 64 && DENOISE_TILE_HEIGHT == 16, "mirrored in src/denoise.rs");
static_assert(DENOISE_TILE_WIDTH % DENOISE_LANES == 0, "tiles are whole vectors");

TESSERA_SMALL_FN Lanes denoise_lanes_at(const float* from) {
    Float8 lanes;
    __builtin_memcpy(&lanes, from, sizeof lanes);
    return lanes;
}
TESSERA_SMALL_FN void denoise_put(float* to, Lanes lanes) {
    __builtin_memcpy(to, &lanes.value, sizeof lanes.value);
}

// Index in a channel of a pixel of the frame; beyond an edge stands the edge's own pixel.
TESSERA_FN u64 denoise_place(const DenoiseParams& params, i32 x, i32 y) {
    const u64 row = (u64)denoise_clamp(y, params.height) - params.first_row;
    return row * params.width + (u64)denoise_clamp(x, params.width);
}

// Loads a channel of the tile and its surroundings.
TESSERA_FN void denoise_load_channel(const DenoiseParams& params, u32 channel, float* to) {
    const float* from = params.channels[channel];
    const i32 left = (i32)params.x - DENOISE_REACH, top = (i32)params.y - DENOISE_REACH;
    const bool whole = left >= 0 && left + DENOISE_LOCAL_WIDTH <= (i32)params.width;
    for (i32 y = 0; y < DENOISE_LOCAL_HEIGHT; ++y, to += DENOISE_LOCAL_WIDTH) {
        if (whole) {
            __builtin_memcpy(to, from + denoise_place(params, left, top + y),
                             DENOISE_LOCAL_WIDTH * sizeof(float));
            continue;
        }
        for (i32 x = 0; x < DENOISE_LOCAL_WIDTH; ++x)
            to[x] = from[denoise_place(params, left + x, top + y)];
    }
}

// The variance of one channel, as far as five rows and columns are there.
TESSERA_FN void denoise_load_variance(const DenoiseParams& params, u32 channel, const float* half,
                                      DenoiseScratch& scratch) {
    const float* color = scratch.color[channel];
    for (i32 at = 0; at < DENOISE_LOCAL; ++at) {
        scratch.raw[at] = denoise_variance_between(color[at], half[at], params.first_scale,
                                                   params.second_scale);
    }
    const i32 row = DENOISE_LOCAL_WIDTH, middle = DENOISE_SMOOTH * (row + 1);
    for (i32 at = 0; at < DENOISE_LOCAL - 4; ++at)
        scratch.across[at] = denoise_sum5(scratch.raw + at, 1);
    float* variance = scratch.variance[channel];
    for (i32 at = 0; at < DENOISE_LOCAL; ++at) variance[at] = DENOISE_FLOOR;
    for (i32 at = 0; at < DENOISE_LOCAL - 4 * row - 4; ++at)
        variance[at + middle] = denoise_variance(denoise_sum5(scratch.across + at, row));
}

// Loads the tile and its surroundings.
TESSERA_FN void denoise_load(const DenoiseParams& params, DenoiseScratch& scratch) {
    for (u32 k = 0; k < 6; ++k) denoise_load_channel(params, DENOISE_COLOR + k, scratch.color[k]);
    for (u32 k = 0; k < 7; ++k)
        denoise_load_channel(params, DENOISE_ALBEDO + k, scratch.guides[k]);
    float* depth = scratch.guides[6];
    for (i32 at = 0; at < DENOISE_LOCAL; ++at) depth[at] = log2_(max_(depth[at], 0x1p-20f));
    for (u32 c = 0; c < 3; ++c) denoise_load_variance(params, c, scratch.color[3 + c], scratch);
    for (i32 y = 0; y < DENOISE_LOCAL_HEIGHT; ++y) {
        const i32 frame_y = (i32)params.y + y - DENOISE_REACH;
        const bool row = frame_y >= 0 && frame_y < (i32)params.height;
        for (i32 x = 0; x < DENOISE_LOCAL_WIDTH; ++x) {
            const i32 frame_x = (i32)params.x + x - DENOISE_REACH;
            const bool inside = row && frame_x >= 0 && frame_x < (i32)params.width;
            scratch.inside[y * DENOISE_LOCAL_WIDTH + x] = inside ? 1.0f : 0.0f;
        }
    }
    i32 taken = 0;
    for (i32 down = -DENOISE_RADIUS; down <= DENOISE_RADIUS; ++down) {
        const i32 reach = denoise_half_width(down);
        for (i32 across = -reach; across <= reach; ++across) {
            if (!denoise_taken(across, down)) continue;
            scratch.disc[taken][0] = across;
            scratch.disc[taken++][1] = down;
        }
    }
}

TESSERA_SMALL_FN DenoiseColor<Lanes> denoise_color_at(const DenoiseScratch& scratch, i32 at) {
    DenoiseColor<Lanes> color;
    for (i32 c = 0; c < 3; ++c) {
        color.value[c] = denoise_lanes_at(scratch.color[c] + at);
        color.variance[c] = denoise_lanes_at(scratch.variance[c] + at);
    }
    return color;
}

// Sums of seven distances down, in some columns: each sum of two and of four is found once.
TESSERA_FN void denoise_sum_down(DenoiseScratch& scratch, i32 offset, i32 x) {
    i32 at = (DENOISE_REACH - DENOISE_PATCH) * (DENOISE_LOCAL_WIDTH + 1) + x;
    Lanes last(0.0f), pair1(0.0f), pair2(0.0f), four1(0.0f), four2(0.0f), four3(0.0f);
    for (i32 y = -2 * DENOISE_PATCH; y < DENOISE_TILE_HEIGHT; ++y, at += DENOISE_LOCAL_WIDTH) {
        const Lanes distance = denoise_distance(denoise_color_at(scratch, at),
                                                denoise_color_at(scratch, at + offset));
        const Lanes pair = last + distance, four = pair2 + pair;
        if (y >= 0) denoise_put(scratch.down[y] + x, four3 + (pair1 + distance));
        four3 = four2;
        four2 = four1;
        four1 = four;
        pair2 = pair1;
        pair1 = pair;
        last = distance;
    }
}

// Weights of the pixels of the tile's discs that are the `which`th.
TESSERA_FN void denoise_weigh(float strength, DenoiseScratch& scratch, i32 which) {
    const i32 offset =
        scratch.disc[which][1] * DENOISE_LOCAL_WIDTH + scratch.disc[which][0];
    for (i32 x = 0; x < DENOISE_PATCH_WIDTH; x += DENOISE_LANES)
        denoise_sum_down(scratch, offset, x);
    const i32 corner = DENOISE_REACH * (DENOISE_LOCAL_WIDTH + 1) + offset;
    for (i32 y = 0; y < DENOISE_TILE_HEIGHT; ++y) {
        const float* inside = scratch.inside + corner + y * DENOISE_LOCAL_WIDTH;
        for (i32 x = 0; x < DENOISE_TILE_WIDTH; x += DENOISE_LANES) {
            const float* down = scratch.down[y] + x;
            const Lanes sum = denoise_sum7(
                denoise_lanes_at(down), denoise_lanes_at(down + 1), denoise_lanes_at(down + 2),
                denoise_lanes_at(down + 3), denoise_lanes_at(down + 4), denoise_lanes_at(down + 5),
                denoise_lanes_at(down + 6));
            denoise_put(scratch.weight[y][which] + x,
                        denoise_weight(sum, strength) * denoise_lanes_at(inside + x));
        }
    }
}

// Some pixels of the discs of eight neighbours: what the regressions are given of them. Terms and
// colours are differences from the pixel itself: sums stay small, and where all colours are one
// there is nothing to round.
namespace {
struct DenoiseTaken {
    Lanes weight[DENOISE_TOGETHER];
    Lanes terms[DENOISE_TERMS][DENOISE_TOGETHER];
    Lanes apart[DENOISE_COLORS][DENOISE_TOGETHER];
};
}  // namespace

// Takes the pixels of the disc that are `others` places into the tile's surroundings.
template <i32 COLORS>
TESSERA_FN void denoise_take(const DenoiseScratch& scratch, i32 at, const i32* others,
                             DenoiseTaken& taken) {
    for (i32 k = 0; k < DENOISE_GUIDES; ++k) {
        const float* guide = scratch.guides[k];
        const Lanes own = denoise_lanes_at(guide + at);
        for (i32 slot = 0; slot < DENOISE_TOGETHER; ++slot)
            taken.terms[k + 1][slot] = denoise_lanes_at(guide + others[slot]) - own;
    }
    for (i32 k = 0; k < COLORS; ++k) {
        const float* color = scratch.color[k];
        const Lanes own = denoise_lanes_at(color + at);
        for (i32 slot = 0; slot < DENOISE_TOGETHER; ++slot)
            taken.apart[k][slot] = denoise_lanes_at(color + others[slot]) - own;
    }
}

// A sum, and what the pixels that were taken bring to it.
TESSERA_SMALL_FN Lanes denoise_added(Lanes sum, const Lanes (&weighted)[DENOISE_TOGETHER],
                                     const Lanes (&values)[DENOISE_TOGETHER]) {
    sum = sum + weighted[0] * values[0];
    sum = sum + weighted[1] * values[1];
    sum = sum + weighted[2] * values[2];
    sum = sum + weighted[3] * values[3];
    sum = sum + weighted[4] * values[4];
    sum = sum + weighted[5] * values[5];
    sum = sum + weighted[6] * values[6];
    return sum + weighted[7] * values[7];
}

// Adds the pixels that were taken to the regressions.
template <i32 COLORS>
TESSERA_FN void denoise_add(const DenoiseTaken& taken, Lanes* sums) {
    for (i32 j = 0; j < DENOISE_TERMS; ++j) {
        const Lanes(&weight)[DENOISE_TOGETHER] = taken.weight;
        const Lanes(&term)[DENOISE_TOGETHER] = taken.terms[j];
        // which compilers keep in registers
        const Lanes weighted[DENOISE_TOGETHER] = {
            weight[0] * term[0], weight[1] * term[1], weight[2] * term[2], weight[3] * term[3],
            weight[4] * term[4], weight[5] * term[5], weight[6] * term[6], weight[7] * term[7]};
        for (i32 k = 0; k <= j; ++k, ++sums)
            *sums = denoise_added(*sums, weighted, taken.terms[k]);
        for (i32 k = 0; k < COLORS; ++k, ++sums)
            *sums = denoise_added(*sums, weighted, taken.apart[k]);
    }
}

// The pixels of the disc that have a weight in one of eight neighbours, one after the other.
TESSERA_FN i32 denoise_choose(const DenoiseScratch& scratch, i32 x, i32 y, i32* chosen) {
    i32 count = 0;
    for (i32 which = 0; which < DENOISE_DISC; ++which) {
        chosen[count] = which;
        count += any(denoise_lanes_at(scratch.weight[y][which] + x) > Lanes(0.0f)) ? 1 : 0;
    }
    return count;
}

// The regressions of eight neighbours, less their own colours.
template <i32 COLORS>
TESSERA_FN void denoise_fit(const DenoiseScratch& scratch, i32 x, i32 y, Lanes* apart) {
    const i32 at = (y + DENOISE_REACH) * DENOISE_LOCAL_WIDTH + DENOISE_REACH + x;
    i32 chosen[DENOISE_DISC + 1];
    const i32 count = denoise_choose(scratch, x, y, chosen);
    Lanes sums[DENOISE_MATRIX + COLORS * DENOISE_TERMS];
    for (Lanes& sum : sums) sum = Lanes(0.0f);
    DenoiseTaken taken;
    for (Lanes& one : taken.terms[0]) one = Lanes(1.0f);
    for (i32 first = 0; first < count; first += DENOISE_TOGETHER) {
        i32 others[DENOISE_TOGETHER];
        for (i32 slot = 0; slot < DENOISE_TOGETHER; ++slot) {
            // Where there are no more, the pixel itself is taken for nothing.
            const bool is_one = first + slot < count;
            const i32 which = is_one ? chosen[first + slot] : 0;
            const i32 across = is_one ? scratch.disc[which][0] : 0;
            const i32 down = is_one ? scratch.disc[which][1] : 0;
            others[slot] = at + down * DENOISE_LOCAL_WIDTH + across;
            const Lanes weight = denoise_lanes_at(scratch.weight[y][which] + x);
            taken.weight[slot] = is_one ? weight : Lanes(0.0f);
            taken.terms[DENOISE_GUIDES + 1][slot] = Lanes(denoise_place_term(across));
            taken.terms[DENOISE_GUIDES + 2][slot] = Lanes(denoise_place_term(down));
        }
        denoise_take<COLORS>(scratch, at, others, taken);
        denoise_add<COLORS>(taken, sums);
    }
    denoise_solve<Lanes, COLORS>(sums, apart);
}

template <i32 COLORS>
TESSERA_FN void denoise_fit_tile(const DenoiseScratch& scratch, float* out) {
    for (i32 y = 0; y < DENOISE_TILE_HEIGHT; ++y) {
        for (i32 x = 0; x < DENOISE_TILE_WIDTH; x += DENOISE_LANES) {
            Lanes apart[COLORS];
            denoise_fit<COLORS>(scratch, x, y, apart);
            const i32 at = (y + DENOISE_REACH) * DENOISE_LOCAL_WIDTH + DENOISE_REACH + x;
            for (i32 c = 0; c < COLORS; ++c) {
                const Lanes value = denoise_lanes_at(scratch.color[c] + at) + apart[c];
                denoise_put(out + (c * DENOISE_TILE_HEIGHT + y) * DENOISE_TILE_WIDTH + x,
                            c < (i32)DENOISE_HALF ? max_(value, Lanes(0.0f)) : value);
            }
        }
    }
}

// One pass over a tile: red, green and blue of its pixels, and of their second half if that is
// fitted, to `out`, planes of DENOISE_TILE_WIDTH * DENOISE_TILE_HEIGHT. Pixels outside of the frame
// are written too and mean nothing.
TESSERA_FN void denoise_tile(const DenoiseParams& params, DenoiseScratch& scratch, float* out) {
    denoise_load(params, scratch);
    const float strength = denoise_strength_squared(params.pass);
    for (i32 which = 0; which < DENOISE_DISC; ++which) denoise_weigh(strength, scratch, which);
    if (params.colors == DENOISE_COLORS)
        denoise_fit_tile<DENOISE_COLORS>(scratch, out);
    else
        denoise_fit_tile<3>(scratch, out);
}
