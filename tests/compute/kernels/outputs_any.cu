// An output of two types, chosen at run time, in memory that a kernel can write.
#include "tessera.cuh"

extern "C" __device__ TesseraOutput either;

extern "C" __global__ void compute(TesseraChunk chunk) {
    const TesseraIndex at = tessera_index(chunk);
    if (!at.valid) return;
    if (either.element == TESSERA_F32) {
        tessera_store(either, at, 0, 0.5f * (float)at.index);
    } else {
        tessera_store(either, at, 0, (unsigned int)at.index);
    }
}
