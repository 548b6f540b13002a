// A fluid by the lattice Boltzmann method: an index is a cell, and its nine channels are the nine
// populations. A launch is one step.
#include "lattice.h"

extern "C" __constant__ TesseraArray cells;  // (height, width, 9)
extern "C" __constant__ double relaxation = 1.2;

extern "C" __global__ void compute(TesseraChunk chunk) {
    const TesseraIndex at = tessera_index(chunk);
    if (!at.valid) return;
    double next[9];
    lattice_step(cells, chunk, at, relaxation, next);
#pragma unroll
    for (int way = 0; way < 9; way++) tessera_store(chunk, at, way, next[way]);
}
