// A small kernel of the real functions: a point on a disk, normalised, and its sum. Built by NVRTC
// 13.5 with
//   --gpu-architecture=compute_75 --std=c++17 --include-path=kernels/source
// and, for each of the texts beside it:
//   strict.ptx          --fmad=false --prec-div=true --prec-sqrt=true --ftz=false
//   contracted.ptx      none: products and sums may be fused
//   fast-math.ptx       --use_fast_math
//   approximate-division.ptx   as strict, with --prec-div=false
#include "film.h"
#include "sampling/shapes.h"

TESSERA_KERNEL(64, 1) planted(const float* in, float* out, i64* film) {
    const u32 at = thread_index();
    const Vec2 disk = sample_disk(vec2(in[2 * at], in[2 * at + 1]));
    const Vec3 direction = normalize(vec3(disk.x, disk.y, 0.5f));
    out[at] = direction.x / (1.0f + disk.y * direction.z);
    add_to_sum(film, film_fixed(clamp_(out[at], -1.0f, 1.0f)));
}
