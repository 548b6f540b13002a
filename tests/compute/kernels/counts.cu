// Counts in variables of the module, which no chunk may have from another one.
#include "tessera.cuh"

__device__ int counter;
__device__ int from_seven = 7;
extern "C" __device__ int from_argument = 1;

extern "C" __global__ void compute(TesseraChunk chunk) {
    const TesseraIndex at = tessera_index(chunk);
    if (!at.valid) return;
    tessera_store(chunk, at, 0, atomicAdd(&counter, 1));
    tessera_store(chunk, at, 1, atomicAdd(&from_seven, 1));
    tessera_store(chunk, at, 2, atomicAdd(&from_argument, 1));
}
