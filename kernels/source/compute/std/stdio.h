// <cstdio> and <stdio.h> for kernels that NVRTC compiles: printf, which it knows by itself. Written
// for Tessera from the C++ standard, section [cstdio.syn].
#pragma once

namespace std {
using ::size_t;
using ::printf;
}  // namespace std
