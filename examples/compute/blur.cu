// An image filter: the mean of the pixels within `radius`, weighed by a tent. Beyond an edge stands
// the edge's own pixel.
#include "tessera.cuh"

// (height, width, channels) of the domain and of --channels
extern "C" __constant__ TesseraArray image;
extern "C" __constant__ int radius = 2;

extern "C" __global__ void compute(TesseraChunk chunk) {
    const TesseraIndex at = tessera_index(chunk);
    if (!at.valid) return;
    for (unsigned int channel = 0; channel < chunk.channels; channel++) {
        float sum = 0.0f, total = 0.0f;
        for (int dy = -radius; dy <= radius; dy++) {
            for (int dx = -radius; dx <= radius; dx++) {
                const int x = min(max((int)at.x + dx, 0), (int)chunk.width - 1);
                const int y = min(max((int)at.y + dy, 0), (int)chunk.height - 1);
                const float weight = (float)((radius + 1 - abs(dx)) * (radius + 1 - abs(dy)));
                const unsigned long long pixel = (unsigned long long)y * chunk.width + x;
                sum += weight * tessera_load<float>(image, pixel * chunk.channels + channel);
                total += weight;
            }
        }
        tessera_store(chunk, at, channel, sum / total);
    }
}
