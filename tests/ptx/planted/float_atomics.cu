// kernel.cu with a sum of floats in the place of the film's integers: the order of the additions
// would be the pixel's value. float-atomics.ptx is built of it as strict.ptx is of kernel.cu.
#include "sampling/shapes.h"

TESSERA_KERNEL(64, 1) planted(const float* in, float* out, float* film) {
    const u32 at = thread_index();
    const Vec2 disk = sample_disk(vec2(in[2 * at], in[2 * at + 1]));
    const Vec3 direction = normalize(vec3(disk.x, disk.y, 0.5f));
    out[at] = direction.x / (1.0f + disk.y * direction.z);
    atomicAdd(film, out[at]);
}
