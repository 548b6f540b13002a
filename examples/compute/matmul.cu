// The product of two matrices in tiles: each block keeps a tile of both in shared memory. Needs
// --block 16x16; the domain is the result, columns x rows.
#include "tessera.cuh"

extern "C" __constant__ TesseraArray a;  // rows x inner
extern "C" __constant__ TesseraArray b;  // inner x columns

constexpr unsigned int TILE = 16;

extern "C" __global__ void __launch_bounds__(TILE* TILE) compute(TesseraChunk chunk) {
    __shared__ float left[TILE][TILE], right[TILE][TILE];
    const TesseraIndex at = tessera_index(chunk);
    const unsigned int column = threadIdx.x, row = threadIdx.y;
    const unsigned int inner = (unsigned int)a.shape[1];
    float sum = 0.0f;
    for (unsigned int first = 0; first < inner; first += TILE) {
        // Threads beyond the result's edge fill the tiles too.
        const unsigned int across = first + column, down = first + row;
        const bool in_a = across < inner && at.y < chunk.height;
        const bool in_b = down < inner && at.x < chunk.width;
        left[row][column] =
            in_a ? tessera_load<float>(a, (unsigned long long)at.y * inner + across) : 0.0f;
        right[row][column] =
            in_b ? tessera_load<float>(b, (unsigned long long)down * chunk.width + at.x) : 0.0f;
        __syncthreads();
        for (unsigned int k = 0; k < TILE; k++) sum += left[row][k] * right[k][column];
        __syncthreads();
    }
    tessera_store(chunk, at, 0, sum);
}
