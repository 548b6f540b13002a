// Many paths in arrays: the stages as a device runs them, each over all the paths that are alive.
// Owns the arrays' layout and the queues; what a stage does to one path stands in stages.h.
//
// All paths of a batch take the same stage at the same depth, so that the depth is a parameter and
// whole units are enqueued at once: generate; for each depth extend, shade, shadow; finish. How
// many paths are alive at a depth is known to the device alone. The order of a queue is free (it
// differs from run to run), because a path writes to its own slot only, and a path's additions to
// its radiance happen in the order of the stages, which is the order of trace_path: what the
// surface emits, then its light sample, then the next surface.
#pragma once

#include "bvh/compressed.h"
#include "integrator/shade_layered.h"

// Four floats that move as one.
struct alignas(16) Quad {
    float x, y, z, w;
};

struct alignas(16) StoredHit {
    float t;
    u32 triangle;  // NONE for a miss
    float u, v;
};

// What a path's sampler is made of.
struct alignas(8) PathKey {
    u32 key;
    u32 sample;
};

// Indexed by a path's slot, but for the queues and shadow rays.
struct PathArrays {
    // of the ray, and of the shadow ray; t_max of a camera ray, width of the cone of any other
    Quad* origin;
    Quad* direction;         // of the ray; pdf of the last scattering
    Quad* throughput;        // w: cosine of the last scattering
    Quad* radiance;          // w: the media around the ray
    Quad* vantage;           // w: the normal, packed
    StoredHit* hit;
    Quad* shadow_direction;  // in the order of the shadow queue; t_max
    Quad* shadow_radiance;   // as well; the path's slot
    // slots of the paths alive, at even and at odd depths; at depth 0 all are
    u32* queue[2];
    u32* passes;  // of scenes with panes
    PathKey* keys;
    // albedo and depth, normal and share missed, position: three arrays one after another; null
    // without AOVs
    Quad* first;
};

// How far the stages of one depth are.
struct StageCounts {
    u32 paths;     // alive
    u32 shadows;   // shadow rays
    u32 extended;  // paths that warps have fetched
    u32 shadowed;  // shadow rays that warps have fetched
};

// Paths of a batch that follow one another in one unit: path k of a unit is sample k / pixels of
// the pixel that pixel_at gives for k % pixels. Mirrored in kernels/src/cuda/params.rs.
struct alignas(16) PathRun {
    u32 first_slot;    // of its first path
    u32 first_sample;  // of its first path, in the frame
    u32 first_pixel;   // of its first path, in the tile
    u32 x, y;          // of the tile, in the frame
    u32 width, height; // of the tile
    u32 film;          // the unit's film, counted in sums from the first unit's
    u32 unit;
    u32 reserved[3];
};

static_assert(sizeof(PathRun) == 48, "mirrored in kernels/src/cuda/params.rs");

// Paths of one unit, or of several of one frame that differ in their tiles and samples alone.
// Mirrored in kernels/src/cuda/params.rs.
struct alignas(16) BatchParams {
    DeviceScene scene;
    UnitParams unit;      // what all units have in common; tile and samples are in the runs
    PathArrays paths;
    StageCounts* stages;  // one for each depth
    i64* film;            // of the first unit
    RayCounts* counts;    // rays of all units, then for each unit what its film left out
    const PathRun* runs;  // in the order of their slots
    u32 run_count;        // >= 1
    u32 unit_count;
    u32 path_count;
    u32 depth;            // of this launch
    u32 capacity;         // of the arrays, >= path_count
    u32 reserved;
};

static_assert(sizeof(BatchParams) == sizeof(DeviceScene) + 224,
              "mirrored in kernels/src/cuda/params.rs");

TESSERA_FN Quad quad(Vec3 xyz, float w) {
    Quad result;
    result.x = xyz.x;
    result.y = xyz.y;
    result.z = xyz.z;
    result.w = w;
    return result;
}

TESSERA_FN Vec3 xyz(Quad value) { return vec3(value.x, value.y, value.z); }

// Which sample of which pixel a slot is.
struct PathPlace {
    u32 x, y;   // of the frame
    u32 pixel;  // of the tile
    u32 key;
    u32 sample;
};

// Pixel `index` of a tile: in blocks of 8 x 4 where they fit, so that a warp's camera rays stay
// together, else row by row.
TESSERA_FN void pixel_at(const PathRun& run, u32 index, PathPlace* place) {
    const bool blocks = ((run.width & 7u) | (run.height & 3u)) == 0;
    const u32 across = blocks ? run.width >> 3 : run.width;
    const u32 cell = blocks ? index >> 5 : index;
    const u32 down = cell / across;
    const u32 right = cell - down * across;
    const u32 column = blocks ? 8 * right + (index & 7u) : right;
    const u32 row = blocks ? 4 * down + (index >> 3 & 3u) : down;
    place->x = run.x + column;
    place->y = run.y + row;
    place->pixel = row * run.width + column;
}

// The run of a slot: the last that does not begin behind it.
TESSERA_FN const PathRun& run_of(const BatchParams& batch, u32 slot) {
    u32 first = 0;
    for (u32 count = batch.run_count; count > 1;) {
        const u32 half = count >> 1;
        const bool behind = batch.runs[first + half].first_slot <= slot;
        first = behind ? first + half : first;
        count = behind ? count - half : half;
    }
    return batch.runs[first];
}

TESSERA_FN PathPlace place_in(const BatchParams& batch, const PathRun& run, u32 slot) {
    const u32 pixels = run.width * run.height;
    const u32 at = run.first_pixel + (slot - run.first_slot);
    const u32 round = at / pixels;
    PathPlace place;
    place.sample = run.first_sample + round;
    pixel_at(run, at - round * pixels, &place);
    place.key = pixel_key(place.x, place.y, batch.unit.seed, batch.unit.frame);
    return place;
}

// Adds a sample to the film of its unit.
TESSERA_FN void add_to_film(const BatchParams& batch, const PathRun& run, u32 pixel, u32 channels,
                            const FilmSample& sample) {
    film_add(batch.film + run.film, channels, (u64)run.width * run.height, pixel, sample,
             batch.counts + 1 + run.unit);
}

TESSERA_FN u32 slot_at(const BatchParams& batch, u32 at) {
    return batch.depth == 0 ? at : batch.paths.queue[batch.depth & 1u][at];
}

TESSERA_FN void store_ray(const BatchParams& batch, u32 slot, const PathState& state) {
    batch.paths.origin[slot] =
        quad(state.ray.origin, state.depth == 0 ? state.ray.t_max : state.width);
    batch.paths.direction[slot] = quad(state.ray.direction, state.pdf);
    batch.paths.throughput[slot] = quad(state.throughput, state.cosine);
    batch.paths.vantage[slot] = quad(state.vantage.point, float_from_bits(state.vantage.normal));
    if (batch.scene.view.pane_count != 0) batch.paths.passes[slot] = state.passes;
}

TESSERA_FN Sampler sampler_of_slot(const BatchParams& batch, u32 slot) {
    const PathKey key = batch.paths.keys[slot];
    return make_sampler(key.key, key.sample);
}

TESSERA_FN PathState load_state(const BatchParams& batch, u32 slot) {
    const Quad origin = batch.paths.origin[slot];
    const Quad direction = batch.paths.direction[slot];
    const Quad throughput = batch.paths.throughput[slot];
    PathState state;
    state.sampler = sampler_of_slot(batch, slot);
    state.depth = batch.depth;
    state.passes = batch.scene.view.pane_count != 0 ? batch.paths.passes[slot] : 0;
    state.ray.origin = xyz(origin);
    state.ray.t_max = batch.depth == 0 ? origin.w : FAR_LIMIT;
    state.width = batch.depth == 0 ? 0.0f : origin.w;
    state.ray.direction = xyz(direction);
    state.pdf = direction.w;
    state.throughput = xyz(throughput);
    state.cosine = throughput.w;
    const Quad vantage = batch.paths.vantage[slot];
    state.vantage.point = xyz(vantage);
    state.vantage.normal = bits_from_float(vantage.w);
    const Quad radiance = batch.paths.radiance[slot];
    state.radiance = xyz(radiance);
    state.media = bits_from_float(radiance.w);
    return state;
}

TESSERA_FN void store_first(const BatchParams& batch, u32 slot, const FirstHit& first) {
    batch.paths.first[slot] = quad(first.albedo, first.depth);
    batch.paths.first[(u64)batch.capacity + slot] = quad(first.normal, first.missed);
    batch.paths.first[2 * (u64)batch.capacity + slot] = quad(first.position, 0.0f);
}

TESSERA_FN FirstHit load_first(const BatchParams& batch, u32 slot) {
    const Quad albedo = batch.paths.first[slot];
    FirstHit first;
    first.albedo = xyz(albedo);
    first.depth = albedo.w;
    const Quad normal = batch.paths.first[(u64)batch.capacity + slot];
    first.normal = xyz(normal);
    first.missed = normal.w;
    first.position = xyz(batch.paths.first[2 * (u64)batch.capacity + slot]);
    return first;
}

// The lanes below this one.
TESSERA_FN u32 lanes_below() { return (1u << lane_index()) - 1u; }

// An entry of a queue for each of some lanes: the first of them. All lanes of the warp call it
// together.
TESSERA_FN u32 fetch(u32* fetched, u32 lanes) {
    u32 first = 0;
    if (lane_index() == 0) first = take(fetched, count_ones(lanes));
    return broadcast(first, 0);
}

// A place at a queue's end for every lane that wants one. All lanes of the warp call it together.
TESSERA_FN u32 append(u32* length, bool wanted) {
    const u32 votes = ballot(wanted);
    u32 first = 0;
    if (lane_index() == 0 && votes != 0) first = take(length, count_ones(votes));
    first = broadcast(first, 0);
    return first + count_ones(votes & lanes_below());
}

TESSERA_FN void stage_generate(const BatchParams& batch, u32 slot) {
    const PathPlace place = place_in(batch, run_of(batch, slot), slot);
    PathKey key;
    key.key = place.key;
    key.sample = place.sample;
    batch.paths.keys[slot] = key;
    const PathState state =
        generate(batch.scene.view, batch.unit, place.x, place.y, place.key, place.sample);
    store_ray(batch, slot, state);
    batch.paths.radiance[slot] = quad(state.radiance, float_from_bits(state.media));
}

// What the alpha of a slot's ray is decided by. It is read where something asks for it: a walk
// needs its registers.
struct SlotCoverage {
    const BatchParams* batch;
    u32 slot;
};

TESSERA_FN Sampler sampler_of(const SlotCoverage& coverage) {
    return split_sampler(sampler_of_slot(*coverage.batch, coverage.slot), coverage.batch->depth);
}

TESSERA_FN Cone cone_of_ray(const SlotCoverage& coverage) {
    const BatchParams& batch = *coverage.batch;
    if (batch.depth == 0) return camera_cone(batch.scene.view.camera, batch.unit.frame_height);
    const float width = batch.paths.origin[coverage.slot].w;
    const float pdf = batch.paths.direction[coverage.slot].w;
    return later_cone(batch.scene.view, batch.unit, width, pdf);
}

// Extend: a path's ray of the queue, and its closest hit.
struct Extending {
    typedef ClosestQueryOf<SlotCoverage> Query;

    // Whether neighbours in the queue have much the same way: camera rays do.
    TESSERA_FN bool stays_together(const BatchParams& batch) { return batch.depth == 0; }

    TESSERA_FN Ray begin(const BatchParams& batch, u32 at, Query& query) {
        SlotCoverage coverage;
        coverage.batch = &batch;
        coverage.slot = slot_at(batch, at);
        const Quad origin = batch.paths.origin[coverage.slot];
        Ray ray;
        ray.origin = xyz(origin);
        ray.t_max = batch.depth == 0 ? origin.w : FAR_LIMIT;
        ray.direction = xyz(batch.paths.direction[coverage.slot]);
        ask_closest(ray, coverage, query);
        return ray;
    }

    TESSERA_FN void end(const BatchParams& batch, u32, const Query& query) {
        const bool found = query.best.triangle != NONE;
        StoredHit stored;
        stored.t = query.best.t;
        stored.triangle = query.best.triangle;
        stored.u = found ? query.best.u : 0.0f;
        stored.v = found ? query.best.v : 0.0f;
        batch.paths.hit[query.coverage.slot] = stored;
    }
};

// Takes the first hit as soon as it is known, so that it need not be kept until the path is shaded.
struct FirstSlot {
    const BatchParams* batch;
    u32 slot;
};

TESSERA_FN void keep_first(const FirstSlot& first, const FirstHit& seen) {
    store_first(*first.batch, first.slot, seen);
}

TESSERA_FN void keep_missed(const FirstSlot& first, float share) {
    first.batch->paths.first[(u64)first.batch->capacity + first.slot].w = share;
}

// What shading leaves for the queues.
struct Shaded {
    bool alive;
    ShadowRay shadow;
};

TESSERA_FN Hit hit_of(const StoredHit& stored) {
    Hit hit;
    hit.t = stored.t;
    hit.triangle = stored.triangle;
    hit.u = stored.u;
    hit.v = stored.v;
    return hit;
}

// Whether a path is shaded by stage_shade_layered, not by stage_shade.
TESSERA_FN bool is_shaded_layered(const BatchParams& batch, u32 slot) {
    const StoredHit stored = batch.paths.hit[slot];
    if (stored.triangle == NONE) return false;
    return takes_layers(batch.scene.view, stored.triangle,
                        bits_from_float(batch.paths.radiance[slot].w));
}

// A path's next ray and its shadow ray leave from the same point, but where one of them goes
// through the surface: then the shadow ray's end is stored with a minus, and its origin is found
// from the hit.
TESSERA_FN void store_shaded(const BatchParams& batch, u32 slot, const PathState& state,
                             const Shaded& shaded) {
    batch.paths.radiance[slot] = quad(state.radiance, float_from_bits(state.media));
    if (shaded.alive) store_ray(batch, slot, state);
    else if (shaded.shadow.wanted)
        batch.paths.origin[slot] = quad(shaded.shadow.ray.origin, state.width);
}

TESSERA_FN Shaded stage_shade(const BatchParams& batch, u32 slot) {
    PathState state = load_state(batch, slot);
    const StoredHit stored = batch.paths.hit[slot];
    FirstSlot first;
    first.batch = &batch;
    first.slot = slot;
    Shaded shaded;
    shaded.alive = false;
    shaded.shadow.wanted = false;
    if (stored.triangle == NONE) {
        shade_miss(batch.scene.view, batch.unit, state);
        if (batch.depth == 0 && batch.unit.aovs != 0) keep_first(first, FirstHit());
        keep_miss(batch.unit, state, first);
    } else {
        shaded.alive =
            shade(batch.scene.view, batch.unit, hit_of(stored), state, shaded.shadow, first);
    }
    store_shaded(batch, slot, state, shaded);
    return shaded;
}

// The same of a path that takes_layers. Its hit is no miss.
TESSERA_FN Shaded stage_shade_layered(const BatchParams& batch, u32 slot) {
    PathState state = load_state(batch, slot);
    FirstSlot first;
    first.batch = &batch;
    first.slot = slot;
    Shaded shaded;
    shaded.alive = shade_layered(batch.scene.view, batch.unit, hit_of(batch.paths.hit[slot]), state,
                                 shaded.shadow, first);
    store_shaded(batch, slot, state, shaded);
    if (shaded.alive && shaded.shadow.wanted) {
        const Vec3 apart = shaded.shadow.ray.origin - state.ray.origin;
        const bool same = apart.x == 0.0f && apart.y == 0.0f && apart.z == 0.0f;
        if (!same) shaded.shadow.ray.t_max = -shaded.shadow.ray.t_max;
    }
    return shaded;
}

TESSERA_FN void store_shadow(const BatchParams& batch, u32 at, u32 slot, const ShadowRay& shadow) {
    batch.paths.shadow_direction[at] = quad(shadow.ray.direction, shadow.ray.t_max);
    batch.paths.shadow_radiance[at] = quad(shadow.radiance, float_from_bits(slot));
}

// A shadow ray of the queue.
struct QueuedShadow {
    u32 slot;  // of its path
    Ray ray;
    float width;
};

TESSERA_FN QueuedShadow queued_shadow(const BatchParams& batch, u32 at) {
    const Quad direction = batch.paths.shadow_direction[at];
    QueuedShadow shadow;
    shadow.slot = bits_from_float(batch.paths.shadow_radiance[at].w);
    const Quad origin = batch.paths.origin[shadow.slot];
    shadow.width = origin.w;
    shadow.ray.origin = xyz(origin);
    shadow.ray.direction = xyz(direction);
    shadow.ray.t_max = abs_(direction.w);
    if (direction.w < 0.0f) {
        const StoredHit hit = batch.paths.hit[shadow.slot];
        shadow.ray.origin =
            shadow_origin(batch.scene.view, hit.triangle, hit.u, hit.v, shadow.ray.direction);
    }
    return shadow;
}

// Adds a light sample to its path, as much of it as gets here.
template <class Share>
TESSERA_FN void add_shadow(const BatchParams& batch, u32 at, Share share) {
    const Quad light = batch.paths.shadow_radiance[at];
    const u32 slot = bits_from_float(light.w);
    const Quad before = batch.paths.radiance[slot];
    batch.paths.radiance[slot] = quad(add_light(xyz(before), xyz(light), share), before.w);
}

TESSERA_FN void add_answered(const BatchParams& batch, u32 at, const ShadowQuery& query) {
    const float share = transmittance_of(query.optical_depth);
    if (share > 0.0f) add_shadow(batch, at, share);
}

TESSERA_FN void add_answered(const BatchParams& batch, u32 at, const PaneQuery& query) {
    const Vec3 share = transmittances_of(query.optical_depths);
    if (!is_black(share)) add_shadow(batch, at, share);
}

// Shadow: a shadow ray of the queue, and as much of its light as gets to its path.
template <class Q>
struct ShadowingOf {
    typedef Q Query;

    TESSERA_FN bool stays_together(const BatchParams&) { return false; }

    TESSERA_FN Ray begin(const BatchParams& batch, u32 at, Query& query) {
        const QueuedShadow shadow = queued_shadow(batch, at);
        ask_shadow(shadow.ray, shadow.width, query);
        return shadow.ray;
    }

    TESSERA_FN void end(const BatchParams& batch, u32 at, const Query& query) {
        add_answered(batch, at, query);
    }
};
typedef ShadowingOf<ShadowQuery> Shadowing;
// In a scene with panes.
typedef ShadowingOf<PaneQuery> ShadowingPanes;

TESSERA_FN void stage_finish(const BatchParams& batch, u32 slot) {
    FirstHit first = {};
    if (batch.unit.aovs != 0) first = load_first(batch, slot);
    FilmSample sample;
    const PathRun& run = run_of(batch, slot);
    const PathPlace place = place_in(batch, run, slot);
    const u32 channels =
        finish(batch.unit, xyz(batch.paths.radiance[slot]), first, place.sample, sample);
    add_to_film(batch, run, place.pixel, channels, sample);
}
