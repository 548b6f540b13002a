// Built-in kernel `merge`: two arrays of one shape, added by weights.
#pragma once

#include "compute/array.h"

struct MergeParams {
    ComputeArray a;
    ComputeArray b;
    float weight_a;
    float weight_b;
};

TESSERA_FN void merge_index(const ComputeChunk& chunk, const MergeParams& params, u32 local) {
    for (u32 channel = 0; channel < chunk.channels; channel++) {
        const u64 place = (chunk.first + local) * chunk.channels + channel;
        const float a = params.weight_a * value_at(params.a, place);
        const float b = params.weight_b * value_at(params.b, place);
        store_value(chunk, (u64)local * chunk.channels + channel, a + b);
    }
}
