// Instances: meshes that a scene holds once and shows in several places. Owns where a triangle is
// found by its id, and the one formula that brings corners and directions into the world. How a
// walk goes through an instance: wide_instances.h on a host, placed_mesh.h on a device.
//
// Ids below `triangle_count` are of triangles that stand in the world already; the others are of
// instances, one after the other. What an instance shows has the same bits as if its triangles,
// brought into the world by this formula, stood among the first.
#pragma once

#include "layout.h"
#include "math/vector.h"

// A row of a map times (x, y, z), and an offset. A chain of fused operations, each of which is
// monotone in each of its operands after rounding too; the walks rest on that.
TESSERA_SMALL_FN float placed_coordinate(const float* row, float x, float y, float z,
                                         float offset) {
    return fma_(row[0], x, fma_(row[1], y, fma_(row[2], z, offset)));
}

TESSERA_FN void place_point(const Instance& instance, const float* point, float* placed) {
    for (u32 axis = 0; axis < 3; axis++) {
        const float* row = instance.world_from_mesh + 4 * axis;
        placed[axis] = placed_coordinate(row, point[0], point[1], point[2], row[3]);
    }
}

// By three rows of three; not normalised.
TESSERA_FN Vec3 placed_direction(const float* rows, const float* direction) {
    return vec3(placed_coordinate(rows, direction[0], direction[1], direction[2], 0.0f),
                placed_coordinate(rows + 3, direction[0], direction[1], direction[2], 0.0f),
                placed_coordinate(rows + 6, direction[0], direction[1], direction[2], 0.0f));
}

TESSERA_FN bool is_instanced(const SceneView& scene, u32 triangle) {
    return HAS_INSTANCES && triangle >= scene.triangle_count;
}

// The instance that a triangle is of, which is_instanced.
TESSERA_FN const Instance& instance_of(const SceneView& scene, u32 triangle) {
    u32 first = 0, end = scene.instance_count;
    while (end - first > 1) {
        const u32 middle = first + (end - first) / 2;
        if (scene.instances[middle].first_id <= triangle) {
            first = middle;
        } else {
            end = middle;
        }
    }
    return scene.instances[first];
}

// Its index among the triangles of meshes.
TESSERA_FN u64 mesh_triangle_of(const Instance& instance, u32 triangle) {
    return (u64)instance.first_triangle + (triangle - instance.first_id);
}

// A triangle in the world: made where it may be an instance's, and otherwise the one that stands
// there.
template <bool HAS>
struct WorldTriangles {
    typedef const Triangle& Given;
    TESSERA_FN Given at(const SceneView& scene, u32 id) { return scene.triangles[id]; }
};
template <>
struct WorldTriangles<true> {
    typedef Triangle Given;
    TESSERA_FN Given at(const SceneView& scene, u32 id) {
        if (!is_instanced(scene, id)) return scene.triangles[id];
        const Instance& instance = instance_of(scene, id);
        const Triangle& stored = scene.mesh_triangles[mesh_triangle_of(instance, id)];
        Triangle placed = stored;
        place_point(instance, stored.v0, placed.v0);
        place_point(instance, stored.v1, placed.v1);
        place_point(instance, stored.v2, placed.v2);
        return placed;
    }
};

TESSERA_FN WorldTriangles<HAS_INSTANCES>::Given triangle_at(const SceneView& scene, u32 id) {
    return WorldTriangles<HAS_INSTANCES>::at(scene, id);
}

TESSERA_FN const Material& material_at(const SceneView& scene, u32 triangle) {
    if (!is_instanced(scene, triangle)) return scene.materials[scene.triangles[triangle].material];
    return scene.materials
        [scene.mesh_triangles[mesh_triangle_of(instance_of(scene, triangle), triangle)].material];
}
