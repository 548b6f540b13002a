// How a warp traces the rays of a queue: each lane has a ray, and fetches another when that has
// ended, while its neighbours go on (Aila and Laine, "Understanding the Efficiency of Ray Traversal
// on GPUs", HPG 2009, section 4). Nodes and triangles are steps of their own, so that lanes do the
// same at the same time; those that would have to wait for few others wait until there are more.
//
// In which turn a lane does what is decided by its neighbours. Nothing that it computes is, because
// a hit is a function of the ray and the set of triangles (traverse.h).
#pragma once

#include "integrator/wavefront.h"

// So many idle lanes fetch rays. A fetch is a pass of all lanes for those few.
const u32 FETCH_FROM = 6;
// So many lanes that have triangles begin to test them, and so many go on. The others have theirs
// tested when nodes have given more lanes some.
const u32 TEST_FROM = 12;
const u32 TEST_UNTIL = 8;

// A lane's ray. One that is idle has a walk that has ended.
template <class Stage>
struct TracedRay {
    typename Stage::Query query;
    Walk walk;
    u32 at;  // in the queue
    bool busy;
};

TESSERA_FN bool visits_next(const Walk& walk) {
    return walk.index != NONE && walk.triangles == 0;
}

TESSERA_FN void end_walk(Walk& walk) {
    walk.index = NONE;
    walk.triangles = 0;
}

// Gives idle lanes the next rays of the queue, as many as there are. False when there are no more.
template <class Stage>
TESSERA_FN bool fetch_rays(const BatchParams& batch, u32 idle, u32 count, u32* fetched,
                           TracedRay<Stage>& ray) {
    const u32 first = fetch(fetched, idle);
    const u32 next = first + count_ones(idle & lanes_below());
    if (!ray.busy && next < count) {
        ray.at = next;
        ray.busy = true;
        begin_walk(batch.scene.view, Stage::begin(batch, next, ray.query), ray.walk);
    }
    return first + count_ones(idle) < count;
}

// Tests the triangles that lanes have, as long as enough of them have some or no lane can do
// anything else. Where rays stay together each lane tests all of its own.
template <class Stage>
TESSERA_FN void test_triangles(const BatchParams& batch, bool together, TracedRay<Stage>& ray) {
    u32 testing = ballot(ray.walk.triangles != 0);
    const u32 enough = together ? 1u : TEST_FROM;
    if (count_ones(testing) < enough && ballot(visits_next(ray.walk)) != 0) return;
    while (testing != 0) {
        if (ray.walk.triangles != 0)
            test_next_triangle(batch.scene.view, batch.scene.hierarchy, ray.walk, ray.query);
        testing = together ? ray.walk.triangles : ballot(ray.walk.triangles != 0);
        const bool few = !together && count_ones(testing) < TEST_UNTIL;
        if (few && ballot(visits_next(ray.walk)) != 0) return;
    }
}

// Traces a queue of so many rays with all warps of the launch. All lanes of a warp call it
// together.
template <class Stage>
TESSERA_FN void trace_queue(const BatchParams& batch, u32 count, u32* fetched) {
    const bool together = Stage::stays_together(batch);
    NodeGroup stack[BVH_DEPTH_MAX];
    TracedRay<Stage> ray;
    ray.busy = false;
    end_walk(ray.walk);
    bool more = true;  // the same in all lanes
    do {
        const u32 idle = ballot(!ray.busy);
        const u32 enough = together ? 32u : FETCH_FROM;
        if (more && (count_ones(idle) >= enough || ballot(ray.busy) == 0))
            more = fetch_rays(batch, idle, count, fetched, ray);
        if (visits_next(ray.walk))
            visit_node(batch.scene.view, batch.scene.hierarchy, ray.walk, stack, ray.query);
        test_triangles(batch, together, ray);
        if (ray.busy && (has_ended(ray.walk) || is_answered(ray.query))) {
            Stage::end(batch, ray.at, ray.query);
            end_walk(ray.walk);
            ray.busy = false;
        }
    } while (more || ballot(ray.busy) != 0);
}
