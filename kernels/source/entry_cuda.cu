// The device entries. Thin: each finds its path and calls what the host calls. Parameters are mirrored in
// kernels/src/cuda/params.rs.
#include "render.h"

// A range of a unit's paths. Path k of a unit is sample k / pixels of pixel k % pixels.
struct alignas(16) PathsParams {
    SceneView scene;
    UnitParams unit;
    i64* film;
    RayCounts* counts;
    u32 first_sample;  // of the range's first path, counted from the unit's first
    u32 first_pixel;   // of the range's first path
    u32 path_count;
    u32 reserved;
};

static_assert(sizeof(PathsParams) == 416, "mirrored in kernels/src/cuda/params.rs");

// A path to completion by every thread: for units that are too small to fill the device in stages.
TESSERA_KERNEL(128, 3) tessera_render_paths(const PathsParams params) {
    const u32 slot = thread_index();
    if (slot >= params.path_count) return;
    const UnitParams& unit = params.unit;
    const u32 pixels = unit.width * unit.height;
    const u32 at = params.first_pixel + slot;
    const u32 pixel = at % pixels;
    const u32 index = unit.first_sample + params.first_sample + at / pixels;
    const u32 x = unit.x + pixel % unit.width;
    const u32 y = unit.y + pixel / unit.width;
    FilmSample sample;
    RayCounts rays = {};
    const u32 channels = trace_path(params.scene, unit, x, y, pixel_key(x, y, unit.seed, unit.frame), index, sample, rays);
    film_add(params.film, channels, pixels, pixel, sample, params.counts);
    add_to_count(&params.counts->closest, rays.closest);
    add_to_count(&params.counts->any, rays.any);
}
