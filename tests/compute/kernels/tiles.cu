// A product of matrices by tiles of 16 x 16 in shared memory: a block is a tile, and a chunk holds
// whole rows of tiles. The domain is as wide as `right`.
#include "tessera.cuh"

extern "C" __constant__ TesseraArray left;
extern "C" __constant__ TesseraArray right;
TESSERA_CHUNK_ROWS(16);

extern "C" __global__ void compute(TesseraChunk chunk) {
    __shared__ float a[16][16], b[16][17];
    const unsigned int width = chunk.width, inner = (unsigned int)left.shape[1];
    const unsigned int across = width / 16, x = threadIdx.x % 16, y = threadIdx.x / 16;
    const unsigned int row = (unsigned int)(chunk.first / width) + blockIdx.x / across * 16 + y;
    const unsigned int column = blockIdx.x % across * 16 + x;
    float sum = 0.0f;
    for (unsigned int k = 0; k < inner; k += 16) {
        a[y][x] = tessera_load<float>(left, (unsigned long long)row * inner + k + x);
        b[y][x] = tessera_load<float>(right, (unsigned long long)(k + y) * width + column);
        __syncthreads();
        for (unsigned int i = 0; i < 16; i++) sum += a[y][i] * b[i][x];
        __syncthreads();
    }
    TesseraIndex at = {};
    at.local = (unsigned int)((unsigned long long)row * width + column - chunk.first);
    at.valid = at.local < chunk.count;
    tessera_store(chunk, at, 0, sum);
}
