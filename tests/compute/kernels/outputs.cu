// Four outputs of widths 1, 8, 4 and 8.
#include "tessera.cuh"

extern "C" __constant__ TesseraOutput parity;
extern "C" __constant__ TesseraOutput total;
extern "C" __constant__ TesseraOutput place;
extern "C" __constant__ TesseraOutput wave;

extern "C" __global__ void compute(TesseraChunk chunk) {
    const TesseraIndex at = tessera_index(chunk);
    if (!at.valid) return;
    tessera_store(parity, at, 0, (unsigned char)(at.index % 3));
    tessera_store(total, at, 0, 0.5 * (double)at.index);
    tessera_store(place, at, 0, at.x);
    tessera_store(place, at, 1, at.y);
    // Beyond the output's channels: it does nothing.
    tessera_store(place, at, 2, 7u);
    tessera_store(wave, at, 0, make_float2((float)at.x, -(float)at.y));
}
