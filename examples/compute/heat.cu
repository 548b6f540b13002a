// Heat in a plate whose edge keeps its temperature: the explicit scheme with five points. A launch
// is one step; --steps K makes K of them in a frame.
#include "tessera.cuh"

extern "C" __constant__ TesseraArray plate;
extern "C" __constant__ double rate = 0.2;  // diffusivity * time step / spacing^2, at most 0.25

extern "C" __global__ void compute(TesseraChunk chunk) {
    const TesseraIndex at = tessera_index(chunk);
    if (!at.valid) return;
    const unsigned int right = chunk.width - 1, bottom = chunk.height - 1;
    const bool is_edge = at.x == 0 || at.y == 0 || at.x == right || at.y == bottom;
    const double here = tessera_load<double>(plate, at.index);
    double flow = 0.0;
    if (!is_edge) {
        const double sides = tessera_load<double>(plate, at.index - 1) +
                             tessera_load<double>(plate, at.index + 1);
        const double ends = tessera_load<double>(plate, at.index - chunk.width) +
                            tessera_load<double>(plate, at.index + chunk.width);
        flow = sides + ends - 4.0 * here;
    }
    tessera_store(chunk, at, 0, here + rate * flow);
}
