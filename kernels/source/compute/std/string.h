// <cstring> and <string.h> for kernels that NVRTC compiles: what it knows by itself. Written for
// Tessera from the C++ standard, section [cstring.syn].
#pragma once

namespace std {
using ::size_t;
using ::memcpy;
using ::memset;
}  // namespace std
