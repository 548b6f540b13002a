// Reads an array as f32.
#include "tessera.cuh"

extern "C" __constant__ TesseraArray a;

extern "C" __global__ void compute(TesseraChunk chunk) {
    const TesseraIndex at = tessera_index(chunk);
    if (!at.valid) return;
    tessera_store(chunk, at, 0, tessera_load<float>(a, at.index));
}
