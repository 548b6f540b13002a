// The host entries: one translation unit, built once per instruction set. Everything it includes is
// static, so that no function of a wider instruction set can be picked by the linker for a narrower
// one.
#include "integrator/stream.h"

#define TESSERA_JOIN(name, isa) name##_##isa
#define TESSERA_ENTRY(name, isa) TESSERA_JOIN(name, isa)

// Adds the unit's samples to `film` and its rays to `counts`. Pointers must be those of a checked
// scene and unit.
extern "C" void TESSERA_ENTRY(tessera_render_unit, TESSERA_ISA)(const SceneView* scene,
                                                                const UnitParams* unit, i64* film,
                                                                RayCounts* counts) {
    render_unit(*scene, *unit, film, *counts);
}
