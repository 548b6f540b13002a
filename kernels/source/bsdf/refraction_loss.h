// What rough refracting surfaces lose of the light that comes from the larger index: facets reflect
// it to the other side of the surface, or refract it to this side, where it meets further facets
// that a single-scattering model does not follow.
#pragma once

#include "bsdf/loss_table.h"
#include "bsdf/ggx.h"

// knots of the tables, as in make_tables.py
const u32 LOSS_COSINES = 16;
const u32 LOSS_ROUGHNESSES = 10;
const u32 LOSS_INDICES = 11;
const float LOSS_LEAST = 0.1f;

// Where a roughness and an index lie in the tables.
struct LossRow {
    u32 first;
    float rougher;  // share of the next roughness
    float denser;   // share of the next index
};

// `eta`: the index behind the surface over the one before it, below 1. At ALPHA_MIN nothing is
// lost.
TESSERA_FN LossRow loss_row(float alpha, float eta) {
    const float rough = sqrt_(max_(alpha - ALPHA_MIN, 0.0f) * (1.0f / (1.0f - ALPHA_MIN)));
    const float dense = (sqrt_(1.0f - eta) - LOSS_LEAST) * (1.0f / (1.0f - LOSS_LEAST));
    const float across = saturate_(rough) * (float)(LOSS_ROUGHNESSES - 1);
    const float down = saturate_(dense) * (float)(LOSS_INDICES - 1);
    const u32 roughness = min_u32((u32)(i32)across, LOSS_ROUGHNESSES - 2);
    const u32 index = min_u32((u32)(i32)down, LOSS_INDICES - 2);
    LossRow row;
    row.first = index * LOSS_ROUGHNESSES + roughness;
    row.rougher = across - (float)roughness;
    row.denser = down - (float)index;
    return row;
}

TESSERA_FN float between_losses(const LossRow& row, float first, float rougher, float denser,
                                float both) {
    return lerp_(lerp_(first, rougher, row.rougher), lerp_(denser, both, row.rougher), row.denser);
}

// Share of the light from a cosine that is lost.
TESSERA_FN float refraction_loss(const LossRow& row, float cosine) {
    const float at = sqrt_(saturate_(cosine)) * (float)(LOSS_COSINES - 1);
    const u32 column = min_u32((u32)(i32)at, LOSS_COSINES - 2);
    const float along = at - (float)column;
    const float* first = REFRACTION_LOSS + row.first * LOSS_COSINES + column;
    const float* denser = first + LOSS_ROUGHNESSES * LOSS_COSINES;
    return between_losses(row, lerp_(first[0], first[1], along),
                          lerp_(first[LOSS_COSINES], first[LOSS_COSINES + 1], along),
                          lerp_(denser[0], denser[1], along),
                          lerp_(denser[LOSS_COSINES], denser[LOSS_COSINES + 1], along));
}

// Cosine-weighted mean of refraction_loss over the hemisphere.
TESSERA_FN float refraction_loss_mean(const LossRow& row) {
    const float* first = REFRACTION_LOSS_MEAN + row.first;
    return between_losses(row, first[0], first[1], first[LOSS_ROUGHNESSES],
                          first[LOSS_ROUGHNESSES + 1]);
}
