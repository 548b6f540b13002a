// Host entries of the built-in compute kernels: the same functions over the indices of a chunk, on
// one thread.
#include "compute/merge.h"
#include "compute/resize.h"
#include "compute/tone.h"

#define TESSERA_JOIN(a, b) a##_##b
#define TESSERA_NAME(a, b) TESSERA_JOIN(a, b)

extern "C" {
void TESSERA_NAME(tessera_merge, TESSERA_ISA)(const ComputeChunk* chunk,
                                              const MergeParams* params) {
    for (u32 local = 0; local < chunk->count; local++) merge_index(*chunk, *params, local);
}

void TESSERA_NAME(tessera_tonemap, TESSERA_ISA)(const ComputeChunk* chunk,
                                                const ToneParams* params) {
    for (u32 local = 0; local < chunk->count; local++) tone_index(*chunk, *params, local);
}

void TESSERA_NAME(tessera_resize, TESSERA_ISA)(const ComputeChunk* chunk,
                                               const ResizeParams* params) {
    for (u32 local = 0; local < chunk->count; local++) resize_index(*chunk, *params, local);
}
}
