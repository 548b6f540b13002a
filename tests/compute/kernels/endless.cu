// Never ends: for a test of the time limit.
#include "tessera.cuh"

extern "C" __global__ void compute(TesseraChunk chunk) {
    const TesseraIndex at = tessera_index(chunk);
    volatile float* out = (float*)chunk.out;
    while (out[at.local] < 1.0f) out[at.local] = 0.0f;
}
