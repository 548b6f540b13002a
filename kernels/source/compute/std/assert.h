// <cassert> and <assert.h> for kernels that NVRTC compiles, which knows assert by itself. Written
// for Tessera from the C++ standard, section [cassert.syn].
#pragma once
