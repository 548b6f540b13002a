// <cstddef> and <stddef.h> for kernels that NVRTC compiles, which knows size_t and ptrdiff_t by
// itself. Written for Tessera from the C++ standard, section [cstddef.syn].
#pragma once

#define offsetof(type, member) __builtin_offsetof(type, member)

namespace std {
using ::size_t;
using ::ptrdiff_t;
using nullptr_t = decltype(nullptr);
}  // namespace std
