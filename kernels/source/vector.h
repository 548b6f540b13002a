// Vectors of three and of two floats, and bases. Points, directions and linear RGB share one type.
#pragma once

#include "arithmetic.h"

struct Vec2 {
    float x, y;
};

struct Vec3 {
    float x, y, z;
};

TESSERA_FN Vec2 vec2(float x, float y) {
    Vec2 result;
    result.x = x;
    result.y = y;
    return result;
}

TESSERA_FN Vec3 vec3(float x, float y, float z) {
    Vec3 result;
    result.x = x;
    result.y = y;
    result.z = z;
    return result;
}

TESSERA_FN Vec3 splat(float value) { return vec3(value, value, value); }
TESSERA_FN Vec3 vec3_from(const float* xyz) { return vec3(xyz[0], xyz[1], xyz[2]); }

TESSERA_FN Vec3 operator+(Vec3 a, Vec3 b) { return vec3(a.x + b.x, a.y + b.y, a.z + b.z); }
TESSERA_FN Vec3 operator-(Vec3 a, Vec3 b) { return vec3(a.x - b.x, a.y - b.y, a.z - b.z); }
TESSERA_FN Vec3 operator-(Vec3 a) { return vec3(-a.x, -a.y, -a.z); }
TESSERA_FN Vec3 operator*(Vec3 a, Vec3 b) { return vec3(a.x * b.x, a.y * b.y, a.z * b.z); }
TESSERA_FN Vec3 operator*(Vec3 a, float b) { return vec3(a.x * b, a.y * b, a.z * b); }

// a * b + c, fused.
TESSERA_FN Vec3 fma3(Vec3 a, float b, Vec3 c) { return vec3(fma_(a.x, b, c.x), fma_(a.y, b, c.y), fma_(a.z, b, c.z)); }
TESSERA_FN Vec3 fma3(Vec3 a, Vec3 b, Vec3 c) {
    return vec3(fma_(a.x, b.x, c.x), fma_(a.y, b.y, c.y), fma_(a.z, b.z, c.z));
}
TESSERA_FN Vec3 lerp3(Vec3 a, Vec3 b, float t) { return fma3(b - a, t, a); }

TESSERA_FN float dot(Vec3 a, Vec3 b) { return fma_(a.x, b.x, fma_(a.y, b.y, a.z * b.z)); }
TESSERA_FN Vec3 cross(Vec3 a, Vec3 b) {
    return vec3(fma_(a.y, b.z, -(a.z * b.y)), fma_(a.z, b.x, -(a.x * b.z)), fma_(a.x, b.y, -(a.y * b.x)));
}

// Unit vector along `a`; `fallback` where `a` is (nearly) zero or not finite.
TESSERA_FN Vec3 normalize_or(Vec3 a, Vec3 fallback) {
    const float squared = dot(a, a);
    const bool good = squared > 1e-30f && squared < 1e30f;
    return good ? a * (1.0f / sqrt_(squared)) : fallback;
}

// Unit vector along `a`, which must be of ordinary length.
TESSERA_FN Vec3 normalize(Vec3 a) { return a * (1.0f / sqrt_(dot(a, a))); }

TESSERA_FN float max_component(Vec3 a) { return max_(a.x, max_(a.y, a.z)); }
TESSERA_FN float mean_component(Vec3 a) { return (a.x + a.y + a.z) * 0x1.555556p-2f; }
TESSERA_FN bool is_black(Vec3 a) { return max_component(a) <= 0.0f; }
TESSERA_FN bool is_finite3(Vec3 a) { return is_finite(a.x) && is_finite(a.y) && is_finite(a.z); }

// Right-handed orthonormal basis with `normal` as its third axis.
struct Basis {
    Vec3 tangent;
    Vec3 bitangent;
    Vec3 normal;
};

// Without a branch or a square root: Duff et al. 2017, "Building an Orthonormal Basis, Revisited".
TESSERA_FN Basis basis_about(Vec3 normal) {
    const float sign = copysign_(1.0f, normal.z);
    const float a = -1.0f / (sign + normal.z);
    const float b = normal.x * normal.y * a;
    Basis basis;
    basis.tangent = vec3(fma_(sign * normal.x * normal.x, a, 1.0f), sign * b, -sign * normal.x);
    basis.bitangent = vec3(b, fma_(normal.y * normal.y, a, sign), -normal.y);
    basis.normal = normal;
    return basis;
}

TESSERA_FN Vec3 world_from_local(const Basis& basis, Vec3 local) {
    return fma3(basis.tangent, local.x, fma3(basis.bitangent, local.y, basis.normal * local.z));
}

TESSERA_FN Vec3 local_from_world(const Basis& basis, Vec3 world) {
    return vec3(dot(world, basis.tangent), dot(world, basis.bitangent), dot(world, basis.normal));
}
