// CUDA entries of the built-in compute kernels: their variables by name, one kernel each.
#include "compute/denoise.h"
#include "compute/merge.h"
#include "compute/resize.h"
#include "compute/tone.h"

extern "C" {
__constant__ ComputeArray a;
__constant__ ComputeArray b;
__constant__ ComputeArray image;
__constant__ ComputeArray picture;
__constant__ ComputeArray albedo;
__constant__ ComputeArray normal;
__constant__ ComputeArray depth;
__constant__ float weight_a;
__constant__ float weight_b;
__constant__ float exposure;
__constant__ u32 curve;
__constant__ u32 filter;
__constant__ u32 samples;
__constant__ u32 pass;
}

TESSERA_KERNEL(128, 3) denoise(ComputeChunk chunk) {
    static_assert(DENOISE_THREADS == 128, "a thread for each pixel of a tile");
    TESSERA_SHARED static DenoiseShared shared;
    DenoiseInputs inputs;
    inputs.picture = picture;
    inputs.albedo = albedo;
    inputs.normal = normal;
    inputs.depth = depth;
    inputs.samples = samples;
    inputs.pass = pass;
    denoise_chunk(chunk, inputs, shared);
}

TESSERA_KERNEL(256, 1) merge(ComputeChunk chunk) {
    const u32 local = thread_index();
    MergeParams params;
    params.a = a;
    params.b = b;
    params.weight_a = weight_a;
    params.weight_b = weight_b;
    if (local < chunk.count) merge_index(chunk, params, local);
}

TESSERA_KERNEL(256, 1) tonemap(ComputeChunk chunk) {
    const u32 local = thread_index();
    ToneParams params;
    params.image = image;
    params.exposure = exposure;
    params.curve = curve;
    if (local < chunk.count) tone_index(chunk, params, local);
}

TESSERA_KERNEL(256, 1) resize(ComputeChunk chunk) {
    const u32 local = thread_index();
    ResizeParams params;
    params.image = image;
    params.filter = filter;
    if (local < chunk.count) resize_index(chunk, params, local);
}
