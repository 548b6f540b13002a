// Built-in kernel `denoise`: a pass of the denoiser over a picture, by tiles of it. Owns how a
// block of threads goes about a tile: for each place of the disc, the tile's pixels are compared
// once with those that lie there, and distances are added up to patches. What is computed, and
// hosts' way, are denoise.h's. Sums are added up in the same order, so that the bits are the same.
#pragma once

#include "compute/array.h"
#include "film/denoise.h"
#include "layout.h"

struct DenoiseInputs {
    ComputeArray picture;  // [half,] row, column, channel: DENOISE_COLOR, and then DENOISE_HALF
    ComputeArray albedo;
    ComputeArray normal;
    ComputeArray depth;
    u32 samples;
    u32 pass;
};

// Pixels of a tile, a thread each.
const i32 DENOISE_BLOCK_WIDTH = 32;
const i32 DENOISE_BLOCK_HEIGHT = 4;
const i32 DENOISE_THREADS = DENOISE_BLOCK_WIDTH * DENOISE_BLOCK_HEIGHT;
// The tile with what patches reach beyond it.
const i32 DENOISE_OWN_WIDTH = DENOISE_BLOCK_WIDTH + 2 * DENOISE_PATCH;
const i32 DENOISE_OWN_HEIGHT = DENOISE_BLOCK_HEIGHT + 2 * DENOISE_PATCH;
const i32 DENOISE_OWN = DENOISE_OWN_WIDTH * DENOISE_OWN_HEIGHT;
// And with what a row of the discs reaches.
const i32 DENOISE_WINDOW_WIDTH = DENOISE_OWN_WIDTH + 2 * DENOISE_RADIUS;
const i32 DENOISE_WINDOW = DENOISE_WINDOW_WIDTH * DENOISE_OWN_HEIGHT;

// The tile with what a row of the discs reaches.
const i32 DENOISE_NEAR_WIDTH = DENOISE_BLOCK_WIDTH + 2 * DENOISE_RADIUS;
const i32 DENOISE_NEAR = DENOISE_NEAR_WIDTH * DENOISE_BLOCK_HEIGHT;

// The colours that are fitted here: of all samples, or of their second half.
const i32 DENOISE_CHANNELS_OF_PIXEL = 3;
const i32 DENOISE_FITTED = DENOISE_GUIDES + DENOISE_CHANNELS_OF_PIXEL;

// What a block shares. Of a window there are the rows that one row of the discs needs; the next
// row takes the place of the first.
struct DenoiseShared {
    float own[6][DENOISE_OWN];        // three colours of each pixel, and then their variances
    float window[6][DENOISE_WINDOW];  // those of the pixels that are compared with them
    float distance[DENOISE_OWN];      // between both
    float down[DENOISE_BLOCK_HEIGHT * DENOISE_OWN_WIDTH];  // sums of seven, down
    float near[DENOISE_FITTED][DENOISE_NEAR];  // guides and fitted colours of the window's middle
};
static_assert(sizeof(DenoiseShared) == 39888, "less than 48 KiB, which any device has");

// A frame as threads see it.
struct DenoiseFrame {
    const DenoiseInputs& inputs;
    u32 width;
    u32 height;
    float first_scale;
    float second_scale;
    float strength_squared;
};

TESSERA_FN DenoiseFrame denoise_frame(const ComputeChunk& chunk, const DenoiseInputs& inputs) {
    const u32 first = inputs.samples / 2;
    const float samples = (float)inputs.samples;
    return {inputs,
            chunk.width,
            chunk.height,
            samples / (float)first,
            samples / (float)(inputs.samples - first),
            denoise_strength_squared(inputs.pass)};
}

// Index of a pixel; beyond an edge stands the edge's own.
TESSERA_FN u64 denoise_pixel_at(const DenoiseFrame& frame, i32 x, i32 y) {
    return (u64)denoise_clamp(y, frame.height) * frame.width + (u64)denoise_clamp(x, frame.width);
}

// A value as a film may have it: what is no number is 0.
TESSERA_FN float denoise_value(const ComputeArray& array, u64 index) {
    const float value = value_at(array, index);
    return value == value ? clamp_(value, -FILM_VALUE_MAX, FILM_VALUE_MAX) : 0.0f;
}

// One channel of the colours, or of their second half.
TESSERA_FN float denoise_color(const DenoiseFrame& frame, u32 half, u32 channel, u64 pixel) {
    return denoise_value(frame.inputs.picture,
                         ((u64)half * frame.width * frame.height + pixel) * 3 + channel);
}

TESSERA_FN float denoise_guide(const DenoiseFrame& frame, u32 guide, u64 pixel) {
    if (guide < 3) return denoise_value(frame.inputs.albedo, pixel * 3 + guide);
    if (guide < 6) return denoise_value(frame.inputs.normal, pixel * 3 + guide - 3);
    return log2_(max_(denoise_value(frame.inputs.depth, pixel), 0x1p-20f));
}

// A tile of a half, by its first pixel.
struct DenoiseTile {
    i32 x;
    i32 y;
    u32 half;
};

// The variance of a channel at a pixel, of which those around it tell.
TESSERA_FN float denoise_variance_at(const DenoiseFrame& frame, u32 channel, i32 x, i32 y) {
    float sum = 0.0f;
    TESSERA_ROLLED
    for (i32 row = 0; row < 2 * DENOISE_SMOOTH + 1; ++row) {
        float raw[2 * DENOISE_SMOOTH + 1];
        TESSERA_UNROLL
        for (i32 column = 0; column < 2 * DENOISE_SMOOTH + 1; ++column) {
            const u64 pixel =
                denoise_pixel_at(frame, x + column - DENOISE_SMOOTH, y + row - DENOISE_SMOOTH);
            raw[column] = denoise_variance_between(denoise_color(frame, 0, channel, pixel),
                                                   denoise_color(frame, 1, channel, pixel),
                                                   frame.first_scale, frame.second_scale);
        }
        const float across = denoise_sum5(raw, 1);
        sum = row == 0 ? across : sum + across;
    }
    return denoise_variance(sum);
}

// Where a row of a window lies that has so many, and has gone down by `turn`.
template <i32 ROWS>
TESSERA_FN i32 denoise_slot(i32 row, i32 turn) {
    return (row + turn) % ROWS;
}

// The block loads some rows of pixels to where they are compared, planes of DENOISE_OWN_HEIGHT rows
// of WIDTH pixels. (x, y) is the first pixel of row 0.
template <i32 WIDTH>
TESSERA_FN void denoise_load_rows(const DenoiseFrame& frame, i32 x, i32 y, i32 first, i32 turn,
                                  float* to) {
    const i32 plane = WIDTH * DENOISE_OWN_HEIGHT;
    const i32 rows = DENOISE_OWN_HEIGHT - first;
    TESSERA_ROLLED
    for (i32 at = (i32)thread_in_block(); at < 3 * rows * WIDTH; at += DENOISE_THREADS) {
        const i32 line = at / WIDTH, column = at - line * WIDTH;
        const i32 channel = line / rows, row = first + line - channel * rows;
        const i32 slot = denoise_slot<DENOISE_OWN_HEIGHT>(row, turn);
        const i32 place = channel * plane + slot * WIDTH + column;
        const u64 pixel = denoise_pixel_at(frame, x + column, y + row);
        to[place] = denoise_color(frame, 0, (u32)channel, pixel);
        to[place + 3 * plane] = denoise_variance_at(frame, (u32)channel, x + column, y + row);
    }
}

// The block loads the guides and fitted colours of some rows, of which (x, y) is the first pixel.
TESSERA_FN void denoise_load_near(const DenoiseFrame& frame, const DenoiseTile& tile, i32 y,
                                  i32 first, i32 turn, DenoiseShared& shared) {
    const i32 rows = DENOISE_BLOCK_HEIGHT - first;
    TESSERA_ROLLED
    for (i32 at = (i32)thread_in_block(); at < rows * DENOISE_NEAR_WIDTH; at += DENOISE_THREADS) {
        const i32 line = at / DENOISE_NEAR_WIDTH, column = at - line * DENOISE_NEAR_WIDTH;
        const i32 row = first + line, slot = denoise_slot<DENOISE_BLOCK_HEIGHT>(row, turn);
        const u64 pixel = denoise_pixel_at(frame, tile.x - DENOISE_RADIUS + column, y + row);
        float* to = shared.near[0] + slot * DENOISE_NEAR_WIDTH + column;
        TESSERA_UNROLL
        for (i32 k = 0; k < DENOISE_GUIDES; ++k)
            to[k * DENOISE_NEAR] = denoise_guide(frame, (u32)k, pixel);
        TESSERA_UNROLL
        for (i32 c = 0; c < DENOISE_CHANNELS_OF_PIXEL; ++c) {
            const i32 k = DENOISE_GUIDES + c;
            to[k * DENOISE_NEAR] = denoise_color(frame, tile.half, (u32)c, pixel);
        }
    }
}

template <i32 PLANE>
TESSERA_FN DenoiseColor<float> denoise_compared(const float* from) {
    DenoiseColor<float> color;
    TESSERA_UNROLL
    for (i32 c = 0; c < 3; ++c) {
        color.value[c] = from[c * PLANE];
        color.variance[c] = from[(3 + c) * PLANE];
    }
    return color;
}

// The block compares the tile's patches with those that lie `across` beside the window's middle,
// and adds up distances down.
TESSERA_FN void denoise_compare(DenoiseShared& shared, i32 across, i32 turn) {
    const i32 thread = (i32)thread_in_block();
    TESSERA_ROLLED
    for (i32 at = thread; at < DENOISE_OWN; at += DENOISE_THREADS) {
        const i32 row = at / DENOISE_OWN_WIDTH, column = at - row * DENOISE_OWN_WIDTH;
        const i32 slot = denoise_slot<DENOISE_OWN_HEIGHT>(row, turn);
        const i32 other = slot * DENOISE_WINDOW_WIDTH + column + DENOISE_RADIUS + across;
        shared.distance[at] =
            denoise_distance(denoise_compared<DENOISE_OWN>(&shared.own[0][at]),
                             denoise_compared<DENOISE_WINDOW>(&shared.window[0][other]));
    }
    wait_for_block();
    TESSERA_ROLLED
    for (i32 at = thread; at < DENOISE_BLOCK_HEIGHT * DENOISE_OWN_WIDTH; at += DENOISE_THREADS) {
        const float* from = shared.distance + at;
        const i32 row = DENOISE_OWN_WIDTH;
        shared.down[at] = denoise_sum7(from[0], from[row], from[2 * row], from[3 * row],
                                       from[4 * row], from[5 * row], from[6 * row]);
    }
    wait_for_block();
}

// The weight of the pixel that this thread's was compared with.
TESSERA_FN float denoise_weight_here(const DenoiseFrame& frame, const DenoiseShared& shared) {
    const i32 thread = (i32)thread_in_block();
    const i32 row = thread / DENOISE_BLOCK_WIDTH, column = thread % DENOISE_BLOCK_WIDTH;
    const float* from = shared.down + row * DENOISE_OWN_WIDTH + column;
    const float sum = denoise_sum7(from[0], from[1], from[2], from[3], from[4], from[5], from[6]);
    return denoise_weight(sum, frame.strength_squared);
}

const i32 DENOISE_SUMS_OF_PIXEL = DENOISE_MATRIX + DENOISE_CHANNELS_OF_PIXEL * DENOISE_TERMS;

// A thread's pixel, and the sums of its regressions.
struct DenoisePixel {
    i32 x;
    i32 y;
    bool is_wanted;  // else the thread helps others
    float own[DENOISE_FITTED];  // guides and colours
    float sums[DENOISE_SUMS_OF_PIXEL];
};

TESSERA_FN void denoise_begin(const DenoiseFrame& frame, const DenoiseTile& tile,
                              DenoisePixel& pixel) {
    const i32 thread = (i32)thread_in_block();
    pixel.x = tile.x + thread % DENOISE_BLOCK_WIDTH;
    pixel.y = tile.y + thread / DENOISE_BLOCK_WIDTH;
    const u64 at = denoise_pixel_at(frame, pixel.x, pixel.y);
    TESSERA_UNROLL
    for (i32 k = 0; k < DENOISE_GUIDES; ++k) pixel.own[k] = denoise_guide(frame, (u32)k, at);
    TESSERA_UNROLL
    for (i32 c = 0; c < DENOISE_CHANNELS_OF_PIXEL; ++c)
        pixel.own[DENOISE_GUIDES + c] = denoise_color(frame, tile.half, (u32)c, at);
    TESSERA_UNROLL
    for (i32 k = 0; k < DENOISE_SUMS_OF_PIXEL; ++k) pixel.sums[k] = 0.0f;
}

// Adds the pixel of the disc that lies so many pixels away, and has these guides and colours, to
// the regressions.
TESSERA_FN void denoise_add_pixel(const float* near, float weight, i32 across, i32 down,
                                  DenoisePixel& pixel) {
    float terms[DENOISE_TERMS], apart[DENOISE_CHANNELS_OF_PIXEL];
    terms[0] = 1.0f;
    TESSERA_UNROLL
    for (i32 k = 0; k < DENOISE_GUIDES; ++k)
        terms[k + 1] = near[k * DENOISE_NEAR] - pixel.own[k];
    terms[DENOISE_GUIDES + 1] = denoise_place_term(across);
    terms[DENOISE_GUIDES + 2] = denoise_place_term(down);
    TESSERA_UNROLL
    for (i32 c = 0; c < DENOISE_CHANNELS_OF_PIXEL; ++c) {
        const i32 k = DENOISE_GUIDES + c;
        apart[c] = near[k * DENOISE_NEAR] - pixel.own[k];
    }
    i32 at = 0;
    TESSERA_UNROLL
    for (i32 j = 0; j < DENOISE_TERMS; ++j) {
        const float weighted = weight * terms[j];
        TESSERA_UNROLL
        for (i32 k = 0; k <= j; ++k, ++at)
            pixel.sums[at] = pixel.sums[at] + weighted * terms[k];
        TESSERA_UNROLL
        for (i32 c = 0; c < DENOISE_CHANNELS_OF_PIXEL; ++c, ++at)
            pixel.sums[at] = pixel.sums[at] + weighted * apart[c];
    }
}

// One row of the discs, which lies `down` below their middles and is in the window.
TESSERA_FN void denoise_take_row(const DenoiseFrame& frame, i32 down, i32 turn,
                                 DenoiseShared& shared, DenoisePixel& pixel) {
    const i32 reach = denoise_half_width(down), y = pixel.y + down;
    const i32 thread = (i32)thread_in_block();
    const i32 slot = denoise_slot<DENOISE_BLOCK_HEIGHT>(thread / DENOISE_BLOCK_WIDTH, turn);
    const float* near =
        shared.near[0] + slot * DENOISE_NEAR_WIDTH + thread % DENOISE_BLOCK_WIDTH;
    const bool is_row = pixel.is_wanted && y >= 0 && y < (i32)frame.height;
    TESSERA_ROLLED
    for (i32 across = -reach; across <= reach; ++across) {
        if (!denoise_taken(across, down)) continue;
        denoise_compare(shared, across, turn);
        const i32 x = pixel.x + across;
        if (!is_row || x < 0 || x >= (i32)frame.width) continue;
        const float weight = denoise_weight_here(frame, shared);
        if (weight != 0.0f)
            denoise_add_pixel(near + DENOISE_RADIUS + across, weight, across, down, pixel);
    }
}

// All threads of a block make a tile; each writes its pixel, if that is wanted, to `out`.
TESSERA_FN void denoise_block(const DenoiseFrame& frame, const DenoiseTile& tile,
                              DenoiseShared& shared, DenoisePixel& pixel) {
    const i32 left = tile.x - DENOISE_PATCH, top = tile.y - DENOISE_PATCH;
    wait_for_block();  // until no thread compares the tile before
    denoise_load_rows<DENOISE_OWN_WIDTH>(frame, left, top, 0, 0, shared.own[0]);
    TESSERA_ROLLED
    for (i32 down = -DENOISE_RADIUS; down <= DENOISE_RADIUS; ++down) {
        const i32 turn = down + DENOISE_RADIUS;
        const i32 rows = turn == 0 ? DENOISE_OWN_HEIGHT : 1;  // that are new
        wait_for_block();  // until no thread needs the row whose place another takes
        denoise_load_rows<DENOISE_WINDOW_WIDTH>(frame, left - DENOISE_RADIUS, top + down,
                                                DENOISE_OWN_HEIGHT - rows, turn, shared.window[0]);
        denoise_load_near(frame, tile, tile.y + down,
                          turn == 0 ? 0 : DENOISE_BLOCK_HEIGHT - 1, turn, shared);
        wait_for_block();
        denoise_take_row(frame, down, turn, shared, pixel);
    }
}

// The tiles of a chunk. Its pixels are consecutive, and their rows are those of one half or two.
struct DenoiseTiles {
    u32 first_row[2];  // of each half
    u32 rows[2];       // tiles down
    u32 columns;       // tiles across
};

TESSERA_FN DenoiseTiles denoise_tiles(const ComputeChunk& chunk) {
    const u64 first = chunk.first / chunk.width;
    const u64 last = (chunk.first + chunk.count - 1) / chunk.width;
    DenoiseTiles tiles;
    tiles.columns = (chunk.width + DENOISE_BLOCK_WIDTH - 1) / DENOISE_BLOCK_WIDTH;
    TESSERA_UNROLL
    for (u32 half = 0; half < 2; ++half) {
        const u64 begin = (u64)half * chunk.height, end = begin + chunk.height;
        const u64 from = first < begin ? begin : first, to = last + 1 < end ? last + 1 : end;
        const u32 rows = from < to ? (u32)(to - from) : 0u;
        tiles.first_row[half] = (u32)(from - begin);
        tiles.rows[half] = (rows + DENOISE_BLOCK_HEIGHT - 1) / DENOISE_BLOCK_HEIGHT;
    }
    return tiles;
}

TESSERA_FN DenoiseTile denoise_tile_at(const DenoiseTiles& tiles, u32 index) {
    const u32 row = index / tiles.columns;
    const u32 half = row < tiles.rows[0] ? 0u : 1u;
    const u32 down = half == 0 ? row : row - tiles.rows[0];
    const u32 first = half == 0 ? tiles.first_row[0] : tiles.first_row[1];
    return {(i32)(index - row * tiles.columns) * DENOISE_BLOCK_WIDTH,
            (i32)(first + down * DENOISE_BLOCK_HEIGHT), half};
}

// Index of a pixel in a chunk; beyond its count if the chunk does not have it.
TESSERA_FN u64 denoise_local(const ComputeChunk& chunk, u32 half, const DenoisePixel& pixel) {
    const bool is_inside = pixel.x < (i32)chunk.width && pixel.y < (i32)chunk.height;
    const u64 row = (u64)half * chunk.height + (u64)pixel.y;
    const u64 index = row * chunk.width + (u64)pixel.x;
    return is_inside && index >= chunk.first ? index - chunk.first : chunk.count;
}

// Writes the regressions' values.
TESSERA_FN void denoise_end(const ComputeChunk& chunk, u32 half, const DenoisePixel& pixel,
                            u64 local) {
    float apart[DENOISE_CHANNELS_OF_PIXEL];
    denoise_solve<float, DENOISE_CHANNELS_OF_PIXEL>(pixel.sums, apart);
    TESSERA_UNROLL
    for (i32 c = 0; c < DENOISE_CHANNELS_OF_PIXEL; ++c) {
        const float value = pixel.own[DENOISE_GUIDES + c] + apart[c];
        store_value(chunk, local * 3 + (u64)c, half == 0 ? max_(value, 0.0f) : value);
    }
}

// All tiles of a chunk, each by a block of DENOISE_THREADS threads. Depth 0 of the domain is the
// picture, depth 1 its second half.
TESSERA_FN void denoise_chunk(const ComputeChunk& chunk, const DenoiseInputs& inputs,
                              DenoiseShared& shared) {
    const DenoiseFrame frame = denoise_frame(chunk, inputs);
    const DenoiseTiles tiles = denoise_tiles(chunk);
    const u32 count = tiles.columns * (tiles.rows[0] + tiles.rows[1]);
    TESSERA_ROLLED
    for (u32 index = block_index(); index < count; index += block_count()) {
        const DenoiseTile tile = denoise_tile_at(tiles, index);
        DenoisePixel pixel;
        denoise_begin(frame, tile, pixel);
        const u64 local = denoise_local(chunk, tile.half, pixel);
        pixel.is_wanted = local < chunk.count;
        denoise_block(frame, tile, shared, pixel);
        if (pixel.is_wanted) denoise_end(chunk, tile.half, pixel, local);
    }
}
