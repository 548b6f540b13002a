// Does not compile: for a test of where the error is said to be.
#include "tessera.cuh"

extern "C" __global__ void compute(TesseraChunk chunk) {
    const TesseraIndex at = tessera_index(chunk);
    if (!at.valid) return;
    tessera_store(chunk, at, 0, nowhere);
}
