// A door for proofs: the stages over arrays of paths, on the host, so that what a device leaves
// between its launches can be compared. Not part of the product and not in the fingerprint.
#include "compiler.h"

// Warps of one lane.
TESSERA_FN u32 lane_index() { return 0; }
TESSERA_FN u32 ballot(bool vote) { return vote ? 1u : 0u; }
TESSERA_FN u32 broadcast(u32 value, u32) { return value; }
TESSERA_FN u32 take(u32* counter, u32 count) {
    const u32 before = *counter;
    *counter += count;
    return before;
}

#include "integrator/trace_queue.h"

static void shade_all(const BatchParams& batch, bool layered) {
    StageCounts* stage = batch.stages + batch.depth;
    for (u32 at = 0; at < stage->paths; ++at) {
        const u32 slot = slot_at(batch, at);
        if (is_shaded_layered(batch, slot) != layered) continue;
        const Shaded shaded = layered ? stage_shade_layered(batch, slot) : stage_shade(batch, slot);
        if (shaded.alive)
            batch.paths.queue[(batch.depth + 1) & 1u][append(&stage[1].paths, true)] = slot;
        if (shaded.shadow.wanted)
            store_shadow(batch, append(&stage->shadows, true), slot, shaded.shadow);
    }
}

// What the kernel of device_kernels.h does, by one thread: 1 generate, 2 extend, 3 shade, 4 shadow,
// 5 finish, 6 shade layered, 7 shadow with panes. Fetched counts stay 0.
extern "C" void tessera_test_stage(u32 kernel, const BatchParams* params) {
    const BatchParams& batch = *params;
    StageCounts* stage = batch.stages + batch.depth;
    if (kernel == 1) {
        stage->paths = batch.path_count;
        for (u32 slot = 0; slot < batch.path_count; ++slot) stage_generate(batch, slot);
    } else if (kernel == 2) {
        batch.counts->closest += stage->paths;
        u32 fetched = 0;
        trace_queue<Extending>(batch, stage->paths, &fetched);
    } else if (kernel == 3) {
        shade_all(batch, false);
    } else if (kernel == 6) {
        shade_all(batch, true);
    } else if (kernel == 4) {
        batch.counts->any += stage->shadows;
        u32 fetched = 0;
        trace_queue<Shadowing>(batch, stage->shadows, &fetched);
    } else if (kernel == 7) {
        batch.counts->any += stage->shadows;
        u32 fetched = 0;
        trace_queue<ShadowingPanes>(batch, stage->shadows, &fetched);
    } else if (kernel == 5) {
        for (u32 slot = 0; slot < batch.path_count; ++slot) stage_finish(batch, slot);
    }
}
