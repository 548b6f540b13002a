// The Mandelbrot set: how many steps each point of the plane takes to leave a circle of radius 2.
// Only +, - and * on 64-bit floats, so that every GPU gives the same counts.
#include "tessera.cuh"

extern "C" __constant__ double center_x = -0.75;
extern "C" __constant__ double center_y = 0.0;
extern "C" __constant__ double span = 3.0;  // width of the picture in the plane
extern "C" __constant__ unsigned int steps = 256;

extern "C" __global__ void compute(TesseraChunk chunk) {
    const TesseraIndex at = tessera_index(chunk);
    if (!at.valid) return;
    const double pixel = span / chunk.width;
    const double cx = center_x + ((double)at.x + 0.5 - 0.5 * chunk.width) * pixel;
    const double cy = center_y + ((double)at.y + 0.5 - 0.5 * chunk.height) * pixel;
    double x = 0.0, y = 0.0;
    unsigned int step = 0;
    while (step < steps && x * x + y * y <= 4.0) {
        const double next = x * x - y * y + cx;
        y = 2.0 * x * y + cy;
        x = next;
        step++;
    }
    tessera_store(chunk, at, 0, step);
}
