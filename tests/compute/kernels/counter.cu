// Gives each index the number of those that came before it: another result each time.
#include "tessera.cuh"

__device__ int counter;

extern "C" __global__ void compute(TesseraChunk chunk) {
    const TesseraIndex at = tessera_index(chunk);
    if (!at.valid) return;
    tessera_store(chunk, at, 0, atomicAdd(&counter, 1));
}
