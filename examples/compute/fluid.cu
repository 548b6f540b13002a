// A fluid by the lattice Boltzmann method, as in lattice.cu, that tells what people look at: beside
// the populations, which the next step reads, it writes the density and the speed of each cell in
// half the bits, and the mass of all as one sum. Each is an output with a type of its own.
#include "tessera.cuh"

extern "C" __constant__ TesseraArray cells;    // (height, width, 9)
extern "C" __constant__ TesseraOutput next;    // --output next=f64x9 --feed cells=next
extern "C" __constant__ TesseraOutput density; // --output density=f32
extern "C" __constant__ TesseraOutput speed;   // --output speed=f32x2
extern "C" __constant__ TesseraOutput mass;    // --output mass=f64:sum
extern "C" __constant__ double relaxation = 1.2;

extern "C" __global__ void compute(TesseraChunk chunk) {
    const TesseraIndex at = tessera_index(chunk);
    if (!at.valid) return;
    // Rest, then right, down, left, up, then the diagonals.
    const int along_x[9] = {0, 1, 0, -1, 0, 1, -1, -1, 1};
    const int along_y[9] = {0, 0, 1, 0, -1, 1, 1, -1, -1};
    const double weight[9] = {4.0 / 9, 1.0 / 9, 1.0 / 9, 1.0 / 9, 1.0 / 9,
                              1.0 / 36, 1.0 / 36, 1.0 / 36, 1.0 / 36};
    double arrived[9], all = 0.0, flow_x = 0.0, flow_y = 0.0;
#pragma unroll
    for (int way = 0; way < 9; way++) {
        // What moves this way comes from the cell behind.
        const unsigned int x = (at.x + chunk.width - along_x[way]) % chunk.width;
        const unsigned int y = (at.y + chunk.height - along_y[way]) % chunk.height;
        const unsigned long long cell = (unsigned long long)y * chunk.width + x;
        arrived[way] = tessera_load<double>(cells, cell * 9 + way);
        all += arrived[way];
        flow_x += along_x[way] * arrived[way];
        flow_y += along_y[way] * arrived[way];
    }
    const double speed_x = flow_x / all, speed_y = flow_y / all;
    const double squared = speed_x * speed_x + speed_y * speed_y;
#pragma unroll
    for (int way = 0; way < 9; way++) {
        const double along = along_x[way] * speed_x + along_y[way] * speed_y;
        const double rest = 1.0 + 3.0 * along + 4.5 * along * along - 1.5 * squared;
        const double balance = weight[way] * all * rest;
        tessera_store(next, at, way, arrived[way] + relaxation * (balance - arrived[way]));
    }
    tessera_store(density, at, 0, (float)all);
    tessera_store(speed, at, 0, (float)speed_x);
    tessera_store(speed, at, 1, (float)speed_y);
    tessera_store(mass, at, 0, all);
}
