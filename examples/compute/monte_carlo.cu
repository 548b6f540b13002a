// Monte-Carlo integration: four times the share of points of the unit square that lie in the
// circle's quarter is pi. Every index throws `points` of them and writes 1/points of its estimate,
// so that the mean of all indices is the sum divided by their number.
#include "tessera.cuh"

extern "C" __constant__ unsigned int points = 64;

extern "C" __global__ void compute(TesseraChunk chunk) {
    const TesseraIndex at = tessera_index(chunk);
    if (!at.valid) return;
    unsigned int inside = 0;
    for (unsigned int point = 0; point < points; point++) {
        const double x = tessera_uniform_double(chunk, at, 2 * point);
        const double y = tessera_uniform_double(chunk, at, 2 * point + 1);
        inside += x * x + y * y < 1.0 ? 1u : 0u;
    }
    const double indices = (double)chunk.width * chunk.height * chunk.depth;
    tessera_store(chunk, at, 0, 4.0 * inside / ((double)points * indices));
}
