// The denoiser's host entries: one translation unit, built once per instruction set, as
// entry/host.cpp is.
#include "film/denoise_tile.h"

#define TESSERA_JOIN(name, isa) name##_##isa
#define TESSERA_ENTRY(name, isa) TESSERA_JOIN(name, isa)

// Denoises one tile. Pointers must be those of checked parameters, the scratch uninitialised memory
// of its size.
extern "C" void TESSERA_ENTRY(tessera_denoise, TESSERA_ISA)(const DenoiseParams* params,
                                                            DenoiseScratch* scratch, float* out) {
    denoise_tile(*params, *scratch, out);
}
