// Many paths at a time, stage by stage, with eight of them in lanes where a stage is arithmetic:
// the CPU's way through a unit. Each path is given the operations that trace_path gives it, so that
// it brings the same bits.
#pragma once

#include "bvh/wide_instances.h"
#include "integrator/shade_layered.h"
#include "light/light_lanes.h"

// As many as leave groups of eight nearly full; 28 KiB, which a core's nearest cache holds.
const u32 STREAM_PATHS = 128;

// A path on its way, and what the last stage left for the next: what every depth reads and writes.
struct StreamPath {
    PathState state;
    Hit hit;
    SurfacePoint point;
    ShadowRay shadow;
};
static_assert(sizeof(StreamPath) <= 224, "128 of them have to stay in 28 KiB");

// What of a path is read where it ends.
struct StreamEnd {
    FirstHit first;  // set where the unit asks for it
    u32 pixel;       // of the unit
    u32 index;       // of the sample
};

// Some of a stream's paths by their places.
struct Places {
    u32 place[STREAM_PATHS];
    u32 count;
};

TESSERA_FN void put(Places& places, u32 place) { places.place[places.count++] = place; }

// The samples of a unit that have not begun: all of a pixel, one pixel after the other.
struct Unbegun {
    u32 row, column, sample;
};

struct Stream {
    StreamPath path[STREAM_PATHS];
    StreamEnd end[STREAM_PATHS];
    Places alive;
    Places free;
    Unbegun next;
};

// Up to eight paths that go through a stage together. Lanes beyond them repeat the last.
struct Group {
    StreamPath* path[8];
    u32 count;
};

TESSERA_SMALL_FN Group group_at(Stream& stream, const Places& places, u32 first) {
    Group group;
    group.count = min_u32(places.count - first, 8);
    for (u32 k = 0; k < 8; k++)
        group.path[k] = &stream.path[places.place[first + min_u32(k, group.count - 1)]];
    return group;
}

template <class Get>
TESSERA_SMALL_FN Lanes gather(const Group& group, Get get) {
    Float8 lanes;
    for (u32 k = 0; k < 8; k++) lanes[k] = get(*group.path[k]);
    return lanes;
}

template <class Get>
TESSERA_SMALL_FN LaneWords gather_words(const Group& group, Get get) {
    Word8 lanes;
    for (u32 k = 0; k < 8; k++) lanes[k] = get(*group.path[k]);
    return lanes;
}

template <class Get>
TESSERA_SMALL_FN Vector3<Lanes> gather3(const Group& group, Get get) {
    Vector3<Lanes> lanes;
    for (u32 k = 0; k < 8; k++) {
        const Vec3& value = get(*group.path[k]);
        lanes.x.value[k] = value.x;
        lanes.y.value[k] = value.y;
        lanes.z.value[k] = value.z;
    }
    return lanes;
}

// Says which part of a path to gather.
#define TESSERA_OF(member) [](const StreamPath& path) -> const auto& { return path.member; }

// The parts of a state that shading reads; the others are left alone.
TESSERA_SMALL_FN PathStateOf<Lanes> gather_state(const UnitParams& unit, const Group& group) {
    PathStateOf<Lanes> state;
    state.sampler.key = gather_words(group, TESSERA_OF(state.sampler.key));
    state.sampler.reversed_index = gather_words(group, TESSERA_OF(state.sampler.reversed_index));
    state.depth = gather_words(group, TESSERA_OF(state.depth));
    // Only a bound of light asks how often a path was scattered.
    state.passes = 0u;
    if (unit.clamp > 0.0f) state.passes = gather_words(group, TESSERA_OF(state.passes));
    state.ray.direction = gather3(group, TESSERA_OF(state.ray.direction));
    state.throughput = gather3(group, TESSERA_OF(state.throughput));
    state.radiance = gather3(group, TESSERA_OF(state.radiance));
    state.pdf = gather(group, TESSERA_OF(state.pdf));
    state.cosine = gather(group, TESSERA_OF(state.cosine));
    return state;
}

TESSERA_SMALL_FN SurfacePointOf<Lanes> gather_point(const Group& group) {
    SurfacePointOf<Lanes> point;
    point.position = gather3(group, TESSERA_OF(point.position));
    point.geometric = gather3(group, TESSERA_OF(point.geometric));
    point.shading = gather3(group, TESSERA_OF(point.shading));
    point.base_color = gather3(group, TESSERA_OF(point.base_color));
    point.metallic = gather(group, TESSERA_OF(point.metallic));
    point.roughness = gather(group, TESSERA_OF(point.roughness));
    point.dielectric_f0 = gather(group, TESSERA_OF(point.dielectric_f0));
    return point;
}

TESSERA_SMALL_FN Ray lane_of(const RayOf<Lanes>& rays, u32 k) {
    Ray ray;
    ray.origin = lane_of(rays.origin, k);
    ray.direction = lane_of(rays.direction, k);
    ray.t_max = rays.t_max.value[k];
    return ray;
}

// Stage: camera rays for as many samples as there are places, eight at a time.
TESSERA_SMALL_FN void generate_group(const SceneView& scene, const UnitParams& unit,
                                     Stream& stream) {
    Group group;
    Word8 x, y, sample;
    group.count = 0;
    Unbegun& next = stream.next;
    for (; group.count < 8 && stream.free.count > 0 && next.row < unit.height; group.count++) {
        const u32 place = stream.free.place[--stream.free.count];
        put(stream.alive, place);
        group.path[group.count] = &stream.path[place];
        StreamEnd& end = stream.end[place];
        end.pixel = next.row * unit.width + next.column;
        end.index = unit.first_sample + next.sample;
        if (unit.aovs != 0) end.first = FirstHit();
        x[group.count] = (u32)unit.x + next.column;
        y[group.count] = (u32)unit.y + next.row;
        sample[group.count] = end.index;
        if (++next.sample < unit.sample_count) continue;
        next.sample = 0;
        if (++next.column < unit.width) continue;
        next.column = 0;
        next.row++;
    }
    for (u32 k = group.count; k < 8; k++) x[k] = y[k] = sample[k] = 0;
    const LaneWords key = pixel_key<LaneWords>(x, y, unit.seed, unit.frame);
    const PathStateOf<Lanes> states =
        generate_at(scene, unit, float_from_int(int_from_word(LaneWords(x))),
                    float_from_int(int_from_word(LaneWords(y))), key, LaneWords(sample));
    for (u32 k = 0; k < group.count; k++) {
        PathState& state = group.path[k]->state;
        state = PathState();
        state.sampler.key = states.sampler.key.value[k];
        state.sampler.reversed_index = states.sampler.reversed_index.value[k];
        state.ray = lane_of(states.ray, k);
        state.throughput = splat(1.0f);
    }
}

// Stage: what comes from beyond the scene.
TESSERA_SMALL_FN void miss_group(const SceneView& scene, const UnitParams& unit,
                                 const Group& group) {
    PathStateOf<Lanes> states = gather_state(unit, group);
    shade_miss(scene, unit, states);
    for (u32 k = 0; k < group.count; k++)
        group.path[k]->state.radiance = lane_of(states.radiance, k);
}

// Stage: light samples and next rays. Returns which paths go on.
TESSERA_SMALL_FN LaneMask scatter_group(const SceneView& scene, const UnitParams& unit,
                                        const Group& group) {
    PathStateOf<Lanes> states = gather_state(unit, group);
    const SurfacePointOf<Lanes> points = gather_point(group);
    const ReflectionOf<Lanes> reflections = reflection_of(points, -states.ray.direction);
    const auto choice = draw_bits(states.sampler, scatter_dimension(states.depth, SCATTER_CHOICE));
    const ShadowRayOf<Lanes> shadows =
        shade_light(scene, unit, states, points, reflections, choice.x);
    const LaneMask alive = shade_scatter(states, points, reflections, unit_from_bits(choice.y));
    for (u32 k = 0; k < group.count; k++) {
        StreamPath& path = *group.path[k];
        path.shadow.wanted = shadows.wanted.bits[k] != 0;
        if (path.shadow.wanted) {
            path.shadow.ray = lane_of(shadows.ray, k);
            path.shadow.radiance = lane_of(shadows.radiance, k);
        }
        if (alive.bits[k] == 0) continue;
        path.state.depth = states.depth.value[k];
        path.state.ray = lane_of(states.ray, k);
        path.state.throughput = lane_of(states.throughput, k);
        path.state.pdf = states.pdf.value[k];
        path.state.cosine = states.cosine.value[k];
        path.state.vantage.point = lane_of(states.vantage.point, k);
        path.state.vantage.normal = states.vantage.normal.value[k];
    }
    return alive;
}

#undef TESSERA_OF

// Adds a path that has ended to the film, and frees its place.
TESSERA_FN void end_path(const UnitParams& unit, Stream& stream, u32 place, i64* film,
                         RayCounts& counts) {
    const StreamEnd& end = stream.end[place];
    FilmSample sample;
    const u32 channels =
        finish(unit, stream.path[place].state.radiance, end.first, end.index, sample);
    film_add(film, channels, (u64)unit.width * unit.height, end.pixel, sample, &counts);
    put(stream.free, place);
}

// What the stages of one depth hand on.
struct Sorted {
    Places hit;       // met a surface
    Places missed;    // left the scene
    Places scatters;  // hit a plain surface that scatters
    Places shadowed;  // have been shaded
    Places ended;
};

// Stage: the closest hits.
TESSERA_FN void extend_all(const SceneView& scene, const UnitParams& unit, Stream& stream,
                           Sorted& sorted, RayCounts& counts) {
    counts.closest += stream.alive.count;
    for (u32 at = 0; at < stream.alive.count; at++) {
        const u32 place = stream.alive.place[at];
        StreamPath& path = stream.path[place];
        const bool hit = extend(scene, WideHierarchy(), unit, path.state, &path.hit);
        put(hit ? sorted.hit : sorted.missed, place);
    }
    stream.alive.count = 0;
}

// Stage: what of shading is done one path at a time.
TESSERA_FN void surface_all(const SceneView& scene, const UnitParams& unit, Stream& stream,
                            Sorted& sorted) {
    for (u32 at = 0; at < sorted.hit.count; at++) {
        const u32 place = sorted.hit.place[at];
        StreamPath& path = stream.path[place];
        FirstHit& first = stream.end[place].first;
        if (takes_layers(scene, path.hit.triangle, path.state.media)) {
            const bool alive = shade_layered(scene, unit, path.hit, path.state, path.shadow, first);
            put(sorted.shadowed, place);
            put(alive ? stream.alive : sorted.ended, place);
        } else if (shade_surface(scene, unit, path.hit, path.state, first, path.point)) {
            put(sorted.scatters, place);
        } else {
            put(sorted.ended, place);
        }
    }
}

TESSERA_FN void shade_all(const SceneView& scene, const UnitParams& unit, Stream& stream,
                          Sorted& sorted) {
    for (u32 at = 0; at < sorted.missed.count; at += 8)
        miss_group(scene, unit, group_at(stream, sorted.missed, at));
    for (u32 at = 0; at < sorted.missed.count; at++) {
        const u32 place = sorted.missed.place[at];
        if (unit.aovs != 0) keep_miss(unit, stream.path[place].state, stream.end[place].first);
        put(sorted.ended, place);
    }
    for (u32 at = 0; at < sorted.scatters.count; at += 8) {
        const Group group = group_at(stream, sorted.scatters, at);
        const LaneMask alive = scatter_group(scene, unit, group);
        for (u32 k = 0; k < group.count; k++) {
            const u32 place = sorted.scatters.place[at + k];
            put(sorted.shadowed, place);
            put(alive.bits[k] != 0 ? stream.alive : sorted.ended, place);
        }
    }
}

TESSERA_FN void shadow_all(const SceneView& scene, Stream& stream, const Sorted& sorted,
                           RayCounts& counts) {
    for (u32 at = 0; at < sorted.shadowed.count; at++) {
        StreamPath& path = stream.path[sorted.shadowed.place[at]];
        if (!path.shadow.wanted) continue;
        counts.any += 1;
        const float share = trace_shadow(scene, WideHierarchy(), path.shadow.ray, path.state.width);
        path.state.radiance = add_light(path.state.radiance, path.shadow.radiance, share);
    }
}

// The same in a scene with panes.
TESSERA_RARE_FN void shadow_all_panes(const SceneView& scene, Stream& stream, const Sorted& sorted,
                                      RayCounts& counts) {
    for (u32 at = 0; at < sorted.shadowed.count; at++) {
        StreamPath& path = stream.path[sorted.shadowed.place[at]];
        if (!path.shadow.wanted) continue;
        counts.any += 1;
        const Vec3 share =
            trace_shadow_panes(scene, WideHierarchy(), path.shadow.ray, path.state.width);
        path.state.radiance = add_light(path.state.radiance, path.shadow.radiance, share);
    }
}

// Adds all samples of a unit to its film.
TESSERA_FN void render_unit(const SceneView& scene, const UnitParams& unit, i64* film,
                            RayCounts& counts) {
    Stream stream;
    stream.next = Unbegun();
    stream.alive.count = stream.free.count = 0;
    for (u32 place = 0; place < STREAM_PATHS; place++) put(stream.free, place);
    for (;;) {
        while (stream.free.count > 0 && stream.next.row < unit.height)
            generate_group(scene, unit, stream);
        if (stream.alive.count == 0) return;
        Sorted sorted;
        sorted.hit.count = sorted.missed.count = sorted.scatters.count = 0;
        sorted.shadowed.count = sorted.ended.count = 0;
        extend_all(scene, unit, stream, sorted, counts);
        surface_all(scene, unit, stream, sorted);
        shade_all(scene, unit, stream, sorted);
        if (scene.pane_count == 0) shadow_all(scene, stream, sorted, counts);
        else shadow_all_panes(scene, stream, sorted, counts);
        for (u32 at = 0; at < sorted.ended.count; at++)
            end_path(unit, stream, sorted.ended.place[at], film, counts);
    }
}
