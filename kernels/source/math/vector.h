// Vectors of three and of two numbers, and bases. Points, directions and linear RGB share one type.
#pragma once

#include "math/arithmetic.h"

template <class F>
struct Vector2 {
    F x, y;
};
typedef Vector2<float> Vec2;

template <class F>
struct Vector3 {
    F x, y, z;
};
typedef Vector3<float> Vec3;

template <class F>
TESSERA_SMALL_FN Vector2<F> vec2(F x, Same<F> y) {
    Vector2<F> result;
    result.x = x;
    result.y = y;
    return result;
}

template <class F>
TESSERA_SMALL_FN Vector3<F> vec3(F x, Same<F> y, Same<F> z) {
    Vector3<F> result;
    result.x = x;
    result.y = y;
    result.z = z;
    return result;
}

template <class F>
TESSERA_SMALL_FN Vector3<F> splat(F value) {
    return vec3(value, value, value);
}
template <class F = float>
TESSERA_SMALL_FN Vector3<F> vec3_from(const float* xyz) {
    return vec3<F>(xyz[0], xyz[1], xyz[2]);
}

template <class F>
TESSERA_SMALL_FN Vector3<F> operator+(Vector3<F> a, Vector3<F> b) {
    return vec3(a.x + b.x, a.y + b.y, a.z + b.z);
}
template <class F>
TESSERA_SMALL_FN Vector3<F> operator-(Vector3<F> a, Vector3<F> b) {
    return vec3(a.x - b.x, a.y - b.y, a.z - b.z);
}
template <class F>
TESSERA_SMALL_FN Vector3<F> operator-(Vector3<F> a) {
    return vec3(-a.x, -a.y, -a.z);
}
template <class F>
TESSERA_SMALL_FN Vector3<F> operator*(Vector3<F> a, Vector3<F> b) {
    return vec3(a.x * b.x, a.y * b.y, a.z * b.z);
}
template <class F>
TESSERA_SMALL_FN Vector3<F> operator*(Vector3<F> a, Same<F> b) {
    return vec3(a.x * b, a.y * b, a.z * b);
}

TESSERA_SMALL_FN Vec2 select(bool mask, Vec2 yes, Vec2 no) { return mask ? yes : no; }
TESSERA_SMALL_FN Vec3 select(bool mask, Vec3 yes, Vec3 no) { return mask ? yes : no; }

// Entry `index` of a table of threes.
TESSERA_SMALL_FN Vec3 look_up3(const float* table, u32 index) {
    return vec3_from(table + 3 * (u64)index);
}

// a * b + c, fused.
template <class F>
TESSERA_SMALL_FN Vector3<F> fma3(Vector3<F> a, Same<F> b, Vector3<F> c) {
    return vec3(fma_(a.x, b, c.x), fma_(a.y, b, c.y), fma_(a.z, b, c.z));
}
template <class F>
TESSERA_SMALL_FN Vector3<F> fma3(Vector3<F> a, Vector3<F> b, Vector3<F> c) {
    return vec3(fma_(a.x, b.x, c.x), fma_(a.y, b.y, c.y), fma_(a.z, b.z, c.z));
}
template <class F>
TESSERA_SMALL_FN Vector3<F> lerp3(Vector3<F> a, Vector3<F> b, Same<F> t) {
    return fma3(b - a, t, a);
}

template <class F>
TESSERA_SMALL_FN F dot(Vector3<F> a, Vector3<F> b) {
    return fma_(a.x, b.x, fma_(a.y, b.y, a.z * b.z));
}
template <class F>
TESSERA_SMALL_FN Vector3<F> cross(Vector3<F> a, Vector3<F> b) {
    return vec3(fma_(a.y, b.z, -(a.z * b.y)), fma_(a.z, b.x, -(a.x * b.z)),
                fma_(a.x, b.y, -(a.y * b.x)));
}

// Unit vector along `a`; `fallback` where `a` is (nearly) zero or not finite.
template <class F>
TESSERA_SMALL_FN Vector3<F> normalize_or(Vector3<F> a, Vector3<F> fallback) {
    const F squared = dot(a, a);
    return select(squared > 1e-30f && squared < 1e30f, a * (1.0f / sqrt_(squared)), fallback);
}

// Unit vector along `a`, which must be of ordinary length.
template <class F>
TESSERA_SMALL_FN Vector3<F> normalize(Vector3<F> a) {
    return a * (1.0f / sqrt_(dot(a, a)));
}

template <class F>
TESSERA_SMALL_FN F max_component(Vector3<F> a) {
    return max_(a.x, max_(a.y, a.z));
}
template <class F>
TESSERA_SMALL_FN F mean_component(Vector3<F> a) {
    return (a.x + a.y + a.z) * 0x1.555556p-2f;
}
template <class F>
TESSERA_SMALL_FN MaskOf<F> is_black(Vector3<F> a) {
    return max_component(a) <= 0.0f;
}
TESSERA_SMALL_FN bool is_finite3(Vec3 a) {
    return is_finite(a.x) && is_finite(a.y) && is_finite(a.z);
}

// Right-handed orthonormal basis with `normal` as its third axis.
template <class F>
struct BasisOf {
    Vector3<F> tangent;
    Vector3<F> bitangent;
    Vector3<F> normal;
};
typedef BasisOf<float> Basis;

// Without a branch or a square root: Duff et al. 2017, "Building an Orthonormal Basis, Revisited".
template <class F>
TESSERA_SMALL_FN BasisOf<F> basis_about(Vector3<F> normal) {
    const F sign = copysign_<F>(1.0f, normal.z);
    const F a = -1.0f / (sign + normal.z);
    const F b = normal.x * normal.y * a;
    BasisOf<F> basis;
    basis.tangent = vec3(fma_(sign * normal.x * normal.x, a, 1.0f), sign * b, -sign * normal.x);
    basis.bitangent = vec3(b, fma_(normal.y * normal.y, a, sign), -normal.y);
    basis.normal = normal;
    return basis;
}

template <class F>
TESSERA_SMALL_FN Vector3<F> world_from_local(const BasisOf<F>& basis, Vector3<F> local) {
    return fma3(basis.tangent, local.x, fma3(basis.bitangent, local.y, basis.normal * local.z));
}

template <class F>
TESSERA_SMALL_FN Vector3<F> local_from_world(const BasisOf<F>& basis, Vector3<F> world) {
    return vec3(dot(world, basis.tangent), dot(world, basis.bitangent), dot(world, basis.normal));
}
