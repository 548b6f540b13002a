// Where each index thinks that it is, and in which thread.
#include "tessera.cuh"

extern "C" __global__ void compute(TesseraChunk chunk) {
    const TesseraIndex at = tessera_index(chunk);
    const unsigned int values[6] = {at.x, at.y, at.z, threadIdx.x, threadIdx.y, threadIdx.z};
    for (unsigned int channel = 0; channel < 6; channel++)
        tessera_store(chunk, at, channel, values[channel]);
}
