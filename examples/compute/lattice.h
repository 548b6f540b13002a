// A step of a fluid by the lattice Boltzmann method (D2Q9, one relaxation time) on a plane without
// edges: each cell has nine populations, which move and then relax.
#pragma once
#include "tessera.cuh"

// What people look at of a cell.
struct LatticeCell {
    double density, speed_x, speed_y;
};

// Writes the populations of a cell after a step into next. The index is the cell; cells has the
// populations before the step: (height, width, 9).
__device__ __forceinline__ LatticeCell lattice_step(
    const TesseraArray& cells, const TesseraChunk& chunk, const TesseraIndex& at, double relaxation,
    double (&next)[9]) {
    // Rest, then right, down, left, up, then the diagonals.
    const int along_x[9] = {0, 1, 0, -1, 0, 1, -1, -1, 1};
    const int along_y[9] = {0, 0, 1, 0, -1, 1, 1, -1, -1};
    const double weight[9] = {4.0 / 9, 1.0 / 9, 1.0 / 9, 1.0 / 9, 1.0 / 9,
                              1.0 / 36, 1.0 / 36, 1.0 / 36, 1.0 / 36};
    double arrived[9], density = 0.0, flow_x = 0.0, flow_y = 0.0;
#pragma unroll
    for (int way = 0; way < 9; way++) {
        // What moves this way comes from the cell behind.
        const unsigned int x = (at.x + chunk.width - along_x[way]) % chunk.width;
        const unsigned int y = (at.y + chunk.height - along_y[way]) % chunk.height;
        const unsigned long long cell = (unsigned long long)y * chunk.width + x;
        arrived[way] = tessera_load<double>(cells, cell * 9 + way);
        density += arrived[way];
        flow_x += along_x[way] * arrived[way];
        flow_y += along_y[way] * arrived[way];
    }
    const double speed_x = flow_x / density, speed_y = flow_y / density;
    const double squared = speed_x * speed_x + speed_y * speed_y;
#pragma unroll
    for (int way = 0; way < 9; way++) {
        const double along = along_x[way] * speed_x + along_y[way] * speed_y;
        const double rest = 1.0 + 3.0 * along + 4.5 * along * along - 1.5 * squared;
        const double balance = weight[way] * density * rest;
        next[way] = arrived[way] + relaxation * (balance - arrived[way]);
    }
    return {density, speed_x, speed_y};
}
