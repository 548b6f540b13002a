// The host entries for bare rays, one build per instruction set, like entry/host.cpp.
#include "bvh/wide_instances.h"

#define TESSERA_JOIN(name, isa) name##_##isa
#define TESSERA_ENTRY(name, isa) TESSERA_JOIN(name, isa)

// Traces each ray with its index as the key of its alpha decisions. A miss has the triangle NONE
// and zeros beside it.
extern "C" void TESSERA_ENTRY(tessera_trace_closest, TESSERA_ISA)(const SceneView* scene,
                                                                  const Ray* rays, u64 count,
                                                                  Hit* hits) {
    const Hit miss = {0.0f, NONE, 0.0f, 0.0f};
    for (u64 k = 0; k < count; k++) {
        if (!intersect_closest(*scene, WideHierarchy(), rays[k], coverage_of_ray((u32)k, 0),
                               &hits[k]))
            hits[k] = miss;
    }
}

// The optical depth of what stands in each ray's way, OPTICAL_DEPTH_OPAQUE where nothing goes
// through.
extern "C" void TESSERA_ENTRY(tessera_trace_shadow, TESSERA_ISA)(const SceneView* scene,
                                                                 const Ray* rays, u64 count,
                                                                 u32* optical_depths) {
    for (u64 k = 0; k < count; k++)
        optical_depths[k] = optical_depth_along(*scene, WideHierarchy(), rays[k], 0.0f);
}
