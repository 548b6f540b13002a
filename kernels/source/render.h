#pragma once
#include "film.h"
TESSERA_FN void render_unit(const SceneView& scene, const UnitParams& unit, i64* film, RayCounts& counts) {
    (void)scene; (void)unit; (void)film; (void)counts;
}
