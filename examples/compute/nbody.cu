// One step of n bodies that attract each other, a frame a step. The state has two rows of `width`
// bodies: (x, y, z, mass) and (vx, vy, vz, 0). A thread writes one of them; the velocity is brought
// forward first, then the place with it.
#include "tessera.cuh"

extern "C" __constant__ TesseraArray state;
extern "C" __constant__ float time_step = 0.01f;
extern "C" __constant__ float softening = 0.05f;

struct Vector {
    float x, y, z, w;
};

static __device__ Vector body(unsigned int row, unsigned int width, unsigned int index) {
    const unsigned long long first = 4ull * ((unsigned long long)row * width + index);
    return {tessera_load<float>(state, first), tessera_load<float>(state, first + 1),
            tessera_load<float>(state, first + 2), tessera_load<float>(state, first + 3)};
}

extern "C" __global__ void compute(TesseraChunk chunk) {
    const TesseraIndex at = tessera_index(chunk);
    if (!at.valid) return;
    const Vector place = body(0, chunk.width, at.x);
    Vector speed = body(1, chunk.width, at.x);
    // In the order of bodies: every GPU adds the same numbers in the same order.
    float ax = 0.0f, ay = 0.0f, az = 0.0f;
    for (unsigned int other = 0; other < chunk.width; other++) {
        const Vector there = body(0, chunk.width, other);
        const float dx = there.x - place.x, dy = there.y - place.y, dz = there.z - place.z;
        const float squared = dx * dx + dy * dy + dz * dz + softening * softening;
        const float pull = there.w / (squared * sqrtf(squared));
        ax += dx * pull;
        ay += dy * pull;
        az += dz * pull;
    }
    speed.x += ax * time_step;
    speed.y += ay * time_step;
    speed.z += az * time_step;
    const bool moves = at.y == 0;
    tessera_store(chunk, at, 0, moves ? place.x + speed.x * time_step : speed.x);
    tessera_store(chunk, at, 1, moves ? place.y + speed.y * time_step : speed.y);
    tessera_store(chunk, at, 2, moves ? place.z + speed.z * time_step : speed.z);
    tessera_store(chunk, at, 3, moves ? place.w : 0.0f);
}
