// The compiler warns of the comparison.
#include "tessera.cuh"

extern "C" __global__ void compute(TesseraChunk chunk) {
    const TesseraIndex at = tessera_index(chunk);
    if (!at.valid) return;
    unsigned count = chunk.count;
    if (count < 0) return;
    tessera_store(chunk, at, 0, 1.0f);
}
