// Alpha: whether a triangle with coverage below one is there for a given ray.
#pragma once

#include "layout.h"

TESSERA_FN bool alpha_accepts(const SceneView& scene, u32 ray_key, u32 triangle, float u, float v) {
    (void)scene, (void)ray_key, (void)triangle, (void)u, (void)v;
    return true;
}
