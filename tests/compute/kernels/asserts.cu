// An assertion fails at the fifth index.
#include "tessera.cuh"

extern "C" __global__ void compute(TesseraChunk chunk) {
    const TesseraIndex at = tessera_index(chunk);
    if (!at.valid) return;
    assert(at.index != 5);
    tessera_store(chunk, at, 0, 1.0f);
}
