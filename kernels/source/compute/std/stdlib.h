// <cstdlib> and <stdlib.h> for kernels that NVRTC compiles: what it knows by itself. Written for
// Tessera from the C++ standard, section [cstdlib.syn].
#pragma once

namespace std {
using ::size_t;
using ::abs;
using ::labs;
using ::llabs;
using ::malloc;
using ::free;
}  // namespace std
