// Writes far outside of its memory: for a test of what becomes of such kernels.
#include "tessera.cuh"

extern "C" __global__ void compute(TesseraChunk chunk) {
    const TesseraIndex at = tessera_index(chunk);
    ((float*)chunk.out)[(unsigned long long)at.local + (1ull << 40)] = 1.0f;
}
