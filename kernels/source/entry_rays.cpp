// The host entries for bare rays, one build per instruction set, like entry_host.cpp.
#include "traverse.h"

#define TESSERA_JOIN(name, isa) name##_##isa
#define TESSERA_ENTRY(name, isa) TESSERA_JOIN(name, isa)

// Traces each ray with its index as the key. A miss has the triangle NONE and zeros beside it.
extern "C" void TESSERA_ENTRY(tessera_trace_closest, TESSERA_ISA)(const SceneView* scene, const Ray* rays, u64 count,
                                                                  Hit* hits) {
    const Hit miss = {0.0f, NONE, 0.0f, 0.0f};
    for (u64 k = 0; k < count; k++) {
        if (!intersect_closest(*scene, WideHierarchy(), rays[k], (u32)k, &hits[k])) hits[k] = miss;
    }
}

// The same for any hit: 1 where something is in the way, else 0.
extern "C" void TESSERA_ENTRY(tessera_trace_any, TESSERA_ISA)(const SceneView* scene, const Ray* rays, u64 count,
                                                              u8* blocked) {
    for (u64 k = 0; k < count; k++) blocked[k] = intersect_any(*scene, WideHierarchy(), rays[k], (u32)k) ? 1 : 0;
}
