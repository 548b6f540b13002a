// The random numbers of four counters at each index, as they are.
#include "tessera.cuh"

extern "C" __constant__ unsigned int first_counter = 0;

extern "C" __global__ void compute(TesseraChunk chunk) {
    const TesseraIndex at = tessera_index(chunk);
    if (!at.valid) return;
    for (unsigned int channel = 0; channel < 4; channel++) {
        tessera_store(chunk, at, channel, tessera_random(chunk, at, first_counter + channel));
    }
}
