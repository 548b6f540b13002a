// A convolution with 5 x 5 weights, of every channel of an image of (height, width, channels).
// Beyond its edge the image goes on as it ends.
#include "tessera.cuh"

extern "C" __constant__ TesseraArray image;
extern "C" __constant__ float weights[25];  // --arg weights=f32:..., row by row

static __device__ unsigned int inside(int place, unsigned int edge) {
    return place < 0 ? 0 : min((unsigned int)place, edge - 1);
}

extern "C" __global__ void compute(TesseraChunk chunk) {
    const TesseraIndex at = tessera_index(chunk);
    if (!at.valid) return;
    for (unsigned int channel = 0; channel < chunk.channels; channel++) {
        float sum = 0.0f;
#pragma unroll 1
        for (int tap = 0; tap < 25; tap++) {
            const unsigned int y = inside((int)at.y + tap / 5 - 2, chunk.height);
            const unsigned int x = inside((int)at.x + tap % 5 - 2, chunk.width);
            const unsigned long long pixel = (unsigned long long)y * chunk.width + x;
            sum += weights[tap] * tessera_load<float>(image, pixel * chunk.channels + channel);
        }
        tessera_store(chunk, at, channel, sum);
    }
}
