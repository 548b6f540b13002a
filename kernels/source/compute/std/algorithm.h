// The part of <algorithm> that kernels use with numbers, for NVRTC. Written for Tessera from the
// C++ standard, section [alg.min.max].
#pragma once

namespace std {

template <class T>
__host__ __device__ constexpr const T& min(const T& a, const T& b) {
    return b < a ? b : a;
}

template <class T>
__host__ __device__ constexpr const T& max(const T& a, const T& b) {
    return a < b ? b : a;
}

template <class T>
__host__ __device__ constexpr const T& clamp(const T& value, const T& low, const T& high) {
    return value < low ? low : high < value ? high : value;
}

}  // namespace std
