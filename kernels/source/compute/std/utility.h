// The part of <utility> that kernels use, for NVRTC, which knows std::move and std::forward by
// itself. Written for Tessera from the C++ standard, section [utility].
#pragma once

#include "type_traits"

namespace std {

template <class T>
__host__ __device__ constexpr void swap(T& a, T& b) {
    T kept = static_cast<T&&>(a);
    a = static_cast<T&&>(b);
    b = static_cast<T&&>(kept);
}

template <class T>
__host__ __device__ add_rvalue_reference_t<T> declval() noexcept;

}  // namespace std
