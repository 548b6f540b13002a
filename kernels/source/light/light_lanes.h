// Lights for eight paths at once: trees and tables are walked one path at a time, what follows is
// done in lanes.
#pragma once

#include "light/light.h"
#include "math/lanes.h"

// Where templates find it by the types of its arguments (lanes.h). It hides functions of the same
// names outside.
namespace {

TESSERA_SMALL_FN Lanes probability_of_cell(const EnvironmentCell* cells, LaneWords index) {
    Float8 probability;
    for (u32 k = 0; k < 8; k++) probability[k] = cells[index.value[k]].probability;
    return probability;
}

TESSERA_SMALL_FN EnvironmentPlace<Lanes> environment_place(const SceneView& scene,
                                                           Bits2Of<LaneWords> random) {
    EnvironmentPlace<Lanes> places;
    for (u32 k = 0; k < 8; k++) {
        const EnvironmentPlace<float> place =
            environment_place(scene, bits2<u32>(random.x.value[k], random.y.value[k]));
        places.column.value[k] = place.column;
        places.row.value[k] = place.row;
        places.across.value[k] = place.across;
        places.down.value[k] = place.down;
    }
    return places;
}

TESSERA_SMALL_FN Vec3 lane_of(const Vector3<Lanes>& lanes, u32 k) {
    return vec3(lanes.x.value[k], lanes.y.value[k], lanes.z.value[k]);
}

TESSERA_SMALL_FN void set_lane(Vector3<Lanes>& lanes, u32 k, Vec3 value) {
    lanes.x.value[k] = value.x;
    lanes.y.value[k] = value.y;
    lanes.z.value[k] = value.z;
}

TESSERA_SMALL_FN void set_lane(LightSampleOf<Lanes>& lanes, u32 k, const LightSample& sample) {
    set_lane(lanes.direction, k, sample.direction);
    set_lane(lanes.radiance, k, sample.radiance);
    lanes.distance.value[k] = sample.distance;
    lanes.pdf.value[k] = sample.pdf;
    lanes.delta.bits[k] = sample.delta ? -1 : 0;
    lanes.valid.bits[k] = sample.valid ? -1 : 0;
}

TESSERA_SMALL_FN LightSampleOf<Lanes> select(LaneMask mask, const LightSampleOf<Lanes>& yes,
                                             const LightSampleOf<Lanes>& no) {
    LightSampleOf<Lanes> sample;
    sample.direction = select(mask, yes.direction, no.direction);
    sample.distance = select(mask, yes.distance, no.distance);
    sample.radiance = select(mask, yes.radiance, no.radiance);
    sample.pdf = select(mask, yes.pdf, no.pdf);
    sample.delta = (mask && yes.delta) || (!mask && no.delta);
    sample.valid = (mask && yes.valid) || (!mask && no.valid);
    return sample;
}

// As sample_light of light.h.
TESSERA_SMALL_FN LightSampleOf<Lanes> sample_light(const SceneView& scene,
                                                   const PackedVantageOf<Lanes>& vantages,
                                                   const Vector3<Lanes>& normals,
                                                   const LightRandomOf<LaneWords>& random) {
    const VantageOf<Lanes> vantage = vantage_of(vantages);
    LightSampleOf<Lanes> samples;
    LaneMask around = LaneMask();
    Lanes picked = 0.0f;
    for (u32 k = 0; k < 8; k++) {
        Vantage from;
        from.point = lane_of(vantage.point, k);
        from.normal = lane_of(vantage.normal, k);
        const LightPick pick = pick_light(scene, from, random.choice.value[k]);
        if (pick.light == scene.environment.light) {
            around.bits[k] = -1;
            picked.value[k] = pick.probability;
        } else {
            const Bits2 place = bits2<u32>(random.place.x.value[k], random.place.y.value[k]);
            set_lane(samples, k, sample_picked(scene, pick, from, lane_of(normals, k), place));
        }
    }
    if (!any(around)) return samples;
    return select(around, sample_environment(scene, picked, normals, random.place), samples);
}

}  // namespace
