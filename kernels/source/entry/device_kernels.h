// The device's kernels. Thin: each finds its paths and runs a stage of wavefront.h, or a path from
// its first stage to its last. Every kernel takes the same parameter, which the device keeps in its
// constant memory.
#pragma once

#include "integrator/trace_path.h"
#include "integrator/trace_queue.h"

// How many blocks shall fit beside one another: fewer where a triangle may be an instance's, which
// takes registers.
const int PATH_BLOCKS = HAS_INSTANCES ? 2 : 3;
const int EXTEND_BLOCKS = HAS_INSTANCES ? 4 : 7;
const int SHADE_BLOCKS = HAS_INSTANCES ? 3 : 4;
const int SHADOW_BLOCKS = HAS_INSTANCES ? 4 : 5;

template <bool Layered>
TESSERA_FN void render_path(const BatchParams& batch) {
    const u32 slot = thread_index();
    if (slot >= batch.path_count) return;
    const PathRun& run = run_of(batch, slot);
    const PathPlace place = place_in(batch, run, slot);
    FilmSample sample;
    RayCounts rays = {};
    const u32 channels =
        trace_path<Layered>(batch.scene.view, batch.scene.hierarchy, batch.unit, place.x, place.y,
                            place.key, place.sample, sample, rays);
    add_to_film(batch, run, place.pixel, channels, sample);
    add_to_count(&batch.counts->closest, rays.closest);
    add_to_count(&batch.counts->any, rays.any);
}

// A path to completion by every thread: for units that are too small to fill a device in stages.
TESSERA_KERNEL(128, PATH_BLOCKS) tessera_render_paths(const BatchParams batch) {
    render_path<false>(batch);
}

// The same in scenes that have layers.
TESSERA_KERNEL(128, 2) tessera_render_layered(const BatchParams batch) { render_path<true>(batch); }

TESSERA_KERNEL(128, 8) tessera_generate(const BatchParams batch) {
    const u32 slot = thread_index();
    if (slot == 0) batch.stages[0].paths = batch.path_count;
    if (slot < batch.path_count) stage_generate(batch, slot);
}

// Persistent, as the shadow kernels: as many warps as the device holds.
TESSERA_KERNEL(128, EXTEND_BLOCKS) tessera_extend(const BatchParams batch) {
    StageCounts* stage = batch.stages + batch.depth;
    if (thread_index() == 0) add_to_count(&batch.counts->closest, stage->paths);
    trace_queue<Extending>(batch, stage->paths, &stage->extended);
}

// Puts what shading left of a lane's path into the queues. All lanes of the warp call it together,
// since they share their places.
TESSERA_FN void enqueue_shaded(const BatchParams& batch, StageCounts* stage, u32 slot,
                               const Shaded& shaded) {
    const u32 next = append(&stage[1].paths, shaded.alive);
    if (shaded.alive) batch.paths.queue[(batch.depth + 1) & 1u][next] = slot;
    const u32 shadow = append(&stage->shadows, shaded.shadow.wanted);
    if (shaded.shadow.wanted) store_shadow(batch, shadow, slot, shaded.shadow);
}

TESSERA_KERNEL(128, SHADE_BLOCKS) tessera_shade(const BatchParams batch) {
    StageCounts* stage = batch.stages + batch.depth;
    const u32 count = stage->paths;
    for (u32 first = thread_index() - lane_index(); first < count; first += thread_count()) {
        const u32 at = first + lane_index();
        const u32 slot = at < count ? slot_at(batch, at) : 0;
        Shaded shaded;
        shaded.alive = false;
        shaded.shadow.wanted = false;
        if (at < count && !is_shaded_layered(batch, slot)) shaded = stage_shade(batch, slot);
        enqueue_shaded(batch, stage, slot, shaded);
    }
}

// The paths that tessera_shade leaves, in scenes that have layers.
TESSERA_KERNEL(128, 2) tessera_shade_layered(const BatchParams batch) {
    StageCounts* stage = batch.stages + batch.depth;
    const u32 count = stage->paths;
    for (u32 first = thread_index() - lane_index(); first < count; first += thread_count()) {
        const u32 at = first + lane_index();
        const u32 slot = at < count ? slot_at(batch, at) : 0;
        Shaded shaded;
        shaded.alive = false;
        shaded.shadow.wanted = false;
        if (at < count && is_shaded_layered(batch, slot)) shaded = stage_shade_layered(batch, slot);
        enqueue_shaded(batch, stage, slot, shaded);
    }
}

template <class Stage>
TESSERA_FN void shadow_paths(const BatchParams& batch) {
    StageCounts* stage = batch.stages + batch.depth;
    if (thread_index() == 0) add_to_count(&batch.counts->any, stage->shadows);
    trace_queue<Stage>(batch, stage->shadows, &stage->shadowed);
}

TESSERA_KERNEL(128, SHADOW_BLOCKS) tessera_shadow(const BatchParams batch) {
    shadow_paths<Shadowing>(batch);
}

// The same in scenes with panes, which asks materials on its way.
TESSERA_KERNEL(128, 3) tessera_shadow_panes(const BatchParams batch) {
    shadow_paths<ShadowingPanes>(batch);
}

TESSERA_KERNEL(128, 8) tessera_finish(const BatchParams batch) {
    const u32 slot = thread_index();
    if (slot < batch.path_count) stage_finish(batch, slot);
}
