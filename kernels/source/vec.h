// Vectors of three floats. Every operation has one defined order and no implied fused operation.
#pragma once

#include "compiler.h"

struct Vec3 {
    float x, y, z;
};

TESSERA_FN Vec3 vec3(float x, float y, float z) {
    Vec3 result = {x, y, z};
    return result;
}
