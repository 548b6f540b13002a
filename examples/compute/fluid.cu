// A fluid by the lattice Boltzmann method, as in lattice.cu, that tells what people look at: beside
// the populations, which the next step reads, it writes the density and the speed of each cell in
// half the bits, and the mass of all as one sum. Each is an output with a type of its own.
#include "lattice.h"

extern "C" __constant__ TesseraArray cells;    // (height, width, 9)
extern "C" __constant__ TesseraOutput next;    // --output next=f64x9 --feed cells=next
extern "C" __constant__ TesseraOutput density; // --output density=f32
extern "C" __constant__ TesseraOutput speed;   // --output speed=f32x2
extern "C" __constant__ TesseraOutput mass;    // --output mass=f64:sum
extern "C" __constant__ double relaxation = 1.2;

extern "C" __global__ void compute(TesseraChunk chunk) {
    const TesseraIndex at = tessera_index(chunk);
    if (!at.valid) return;
    double after[9];
    const LatticeCell cell = lattice_step(cells, chunk, at, relaxation, after);
#pragma unroll
    for (int way = 0; way < 9; way++) tessera_store(next, at, way, after[way]);
    tessera_store(density, at, 0, (float)cell.density);
    tessera_store(speed, at, 0, (float)cell.speed_x);
    tessera_store(speed, at, 1, (float)cell.speed_y);
    tessera_store(mass, at, 0, cell.density);
}
