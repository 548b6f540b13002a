// The device's side of functions.h: a kernel for every function, an input for every thread.
// Parameters are mirrored in kernels/src/unit_tests.rs.
#include "tests/functions.h"

struct alignas(16) UnitTestParams {
    DeviceScene scene;
    const u32* in;
    u32* out;
    u32 count;
    u32 reserved[3];
};

static_assert(sizeof(UnitTestParams) == sizeof(DeviceScene) + 32,
              "mirrored in kernels/src/unit_tests.rs");

#define TESSERA_UNIT_KERNEL(name, inputs, outputs)                                              \
    TESSERA_KERNEL(64, 1) tessera_unit_##name(const UnitTestParams params) {                    \
        const u32 index = thread_index();                                                       \
        if (index >= params.count) return;                                                      \
        Words words;                                                                            \
        words.in = params.in + (u64)index * (sizeof(inputs) - 1);                               \
        words.out = params.out + (u64)index * outputs;                                          \
        words.hierarchy = &params.scene.hierarchy;                                              \
        unit_##name(params.scene.view, words);                                                   \
    }

TESSERA_UNIT_FUNCTIONS(TESSERA_UNIT_KERNEL)
