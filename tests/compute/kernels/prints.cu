// Every index prints a line; the last one with what could take over a terminal.
#include "tessera.cuh"

extern "C" __global__ void compute(TesseraChunk chunk) {
    const TesseraIndex at = tessera_index(chunk);
    if (!at.valid) return;
    printf("i %d\n", (int)at.index);
    if (at.index == 7) printf("\033[2Jend\n");
    tessera_store(chunk, at, 0, 1.0f);
}
