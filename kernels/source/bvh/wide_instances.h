// The host's walk through a scene with instances: what a mesh's own hierarchy is in the world,
// worked out node by node. Owns no order of visits: that is wide.h's.
//
// Why it finds the same hits as a walk through copies. A corner comes into the world by
// placed_coordinate, a chain of fused operations, each monotone in each operand after rounding too:
// rising where the map's element is not negative, falling where it is. So the chain over a box's
// lower bounds, with the upper one in the place of the lower wherever the element is negative, is
// not above the chain over any corner in the box: exactly, and not up to an error. Less the
// padding, it is not above the lower side of any triangle's own padded box, and likewise above.
// That is all that Rule C asks of a box (traverse.h), and a leaf's triangles are tested where they
// stand in the world.
#pragma once

#include "bvh/wide.h"
#include "geometry/instance.h"

// A mesh as an instance shows it.
struct MeshInWorld {
    const SceneView& scene;
    const WideRay& ray;
    const Instance& instance;
    u32 near_bounds[3][3];  // by axis of the world and of the mesh, in floats from a node's first
    u32 far_bounds[3][3];
    float near_padding[3];
    float far_padding[3];
};

TESSERA_FN MeshInWorld mesh_in_world(const SceneView& scene, const WideRay& ray,
                                     const Instance& instance) {
    MeshInWorld mesh = {scene, ray, instance, {}, {}, {}, {}};
    for (u32 axis = 0; axis < 3; axis++) {
        const bool near_is_upper = ray.near_bounds[axis] >= 24;
        for (u32 of = 0; of < 3; of++) {
            const bool turned = instance.world_from_mesh[4 * axis + of] < 0.0f;
            const u32 lower = 8 * of, upper = 24 + 8 * of;
            mesh.near_bounds[axis][of] = near_is_upper != turned ? upper : lower;
            mesh.far_bounds[axis][of] = near_is_upper != turned ? lower : upper;
        }
        mesh.near_padding[axis] = near_is_upper ? scene.bvh_padding : -scene.bvh_padding;
        mesh.far_padding[axis] = -mesh.near_padding[axis];
    }
    return mesh;
}

TESSERA_SMALL_FN const BvhNode8& node_at(const MeshInWorld& mesh, u32 index) {
    return mesh.scene.mesh_nodes[index];
}

TESSERA_SMALL_FN Float8 load8(const float* from) { return *(const Float8InMemory*)from; }
TESSERA_SMALL_FN void store8(float* to, Float8 values) { *(Float8InMemory*)to = values; }

// placed_coordinate of eight points, and of four.
TESSERA_SMALL_FN Float8 placed8(const float* row, Float8 x, Float8 y, Float8 z) {
    return fma8(row[0] - Float8{}, x,
                fma8(row[1] - Float8{}, y, fma8(row[2] - Float8{}, z, row[3] - Float8{})));
}
TESSERA_SMALL_FN Float4 placed4(const float* row, Float4 x, Float4 y, Float4 z) {
    return fma4(row[0] - Float4{}, x,
                fma4(row[1] - Float4{}, y, fma4(row[2] - Float4{}, z, row[3] - Float4{})));
}

// As of a node in the world. A child that is not there has infinite bounds, of which a map may make
// anything.
TESSERA_SMALL_FN NodeTest test_node(const MeshInWorld& mesh, const BvhNode8& node, float t_max) {
    const float* bounds = &node.bounds[0][0][0];
    Float8 near_plane[3], far_plane[3];
    for (u32 axis = 0; axis < 3; axis++) {
        const u32* near_at = mesh.near_bounds[axis];
        const u32* far_at = mesh.far_bounds[axis];
        const float* row = mesh.instance.world_from_mesh + 4 * axis;
        const Float8 near_bound = placed8(row, load8(bounds + near_at[0]),
                                          load8(bounds + near_at[1]), load8(bounds + near_at[2]));
        const Float8 far_bound = placed8(row, load8(bounds + far_at[0]), load8(bounds + far_at[1]),
                                         load8(bounds + far_at[2]));
        near_plane[axis] = ((near_bound + mesh.near_padding[axis]) - mesh.ray.origin[axis]) *
                           mesh.ray.reciprocal[axis];
        far_plane[axis] = ((far_bound + mesh.far_padding[axis]) - mesh.ray.origin[axis]) *
                          mesh.ray.reciprocal[axis];
    }
    const BoxIntervalOf<Float8> interval = interval_between(near_plane, far_plane);
    const Int8 empty = *(const Int8InMemory*)node.child == (i32)CHILD_EMPTY - Int8{};
    const Float8 nowhere = -1.0f - Float8{};
    NodeTest test;
    store8(test.entry, interval.entry);
    store8(test.exit, (Float8)((empty & (Int8)nowhere) |
                               (~empty & (Int8)lesser_(interval.exit, t_max - Float8{}))));
    return test;
}

// Of the triangles' corners as they stand in the world. A lane without a triangle keeps corners
// that are no numbers.
template <class Query>
TESSERA_SMALL_FN void visit(const MeshInWorld& mesh, u32 leaf, Stack&, Query& query) {
    const TriangleBlock& block = mesh.scene.mesh_blocks[leaf];
    TriangleBlock placed;
    for (u32 corner = 0; corner < 3; corner++) {
        const Float4 x = load4(block.corner[corner][0]), y = load4(block.corner[corner][1]),
                     z = load4(block.corner[corner][2]);
        for (u32 axis = 0; axis < 3; axis++)
            *(Float4InMemory*)placed.corner[corner][axis] =
                placed4(mesh.instance.world_from_mesh + 4 * axis, x, y, z);
    }
    for (u32 lane = 0; lane < 4; lane++) placed.triangle[lane] = block.triangle[lane];
    visit_leaf(mesh.ray, mesh.scene, placed, mesh.instance.first_id, query);
}

// A mesh that stands in the world as it is, its boxes padded by as much as the scene asks or more:
// it is walked as the world is.
struct StandingMesh {
    const SceneView& scene;
    const WideRay& ray;
    u32 first_id;
};

TESSERA_SMALL_FN const BvhNode8& node_at(const StandingMesh& mesh, u32 index) {
    return mesh.scene.mesh_nodes[index];
}
TESSERA_SMALL_FN NodeTest test_node(const StandingMesh& mesh, const BvhNode8& node, float t_max) {
    return test_node(mesh.ray, node, t_max);
}

template <class Query>
TESSERA_SMALL_FN void visit(const StandingMesh& mesh, u32 leaf, Stack&, Query& query) {
    visit_leaf(mesh.ray, mesh.scene, mesh.scene.mesh_blocks[leaf], mesh.first_id, query);
}

// A world in which leaves may be instances.
struct WorldWithInstances {
    World world;
};

TESSERA_SMALL_FN const BvhNode8& node_at(const WorldWithInstances& space, u32 index) {
    return node_at(space.world, index);
}
TESSERA_SMALL_FN NodeTest test_node(const WorldWithInstances& space, const BvhNode8& node,
                                    float t_max) {
    return test_node(space.world, node, t_max);
}

template <class Query>
TESSERA_RARE_FN void walk_instance(const World& world, const Instance& instance, Stack& stack,
                                   Query& query) {
    const bool stands = instance.standing_padding > 0.0f &&
                        instance.standing_padding >= world.scene.bvh_padding;
    if (stands) {
        walk(StandingMesh{world.scene, world.ray, instance.first_id}, instance.root, stack, query);
    } else {
        walk(mesh_in_world(world.scene, world.ray, instance), instance.root, stack, query);
    }
}

template <class Query>
TESSERA_SMALL_FN void visit(const WorldWithInstances& space, u32 leaf, Stack& stack, Query& query) {
    if (leaf & CHILD_INSTANCE_FLAG) {
        walk_instance(space.world, space.world.scene.instances[leaf & ~CHILD_INSTANCE_FLAG], stack,
                      query);
    } else {
        visit(space.world, leaf, stack, query);
    }
}

// The walk of traverse.h on a host. Most scenes have no instances, and a walk that may come to one
// is slower by a hundredth.
template <class Query>
TESSERA_FN void traverse(const SceneView& scene, const WideHierarchy&, const Ray& ray,
                         Query& query) {
    if (scene.bvh_node_count == 0) return;
    const WideRay prepared = prepare_wide_ray(ray);
    Stack stack;
    stack.size = 0;
    if (scene.instance_count == 0) {
        walk(World{scene, prepared}, 0, stack, query);
    } else {
        walk(WorldWithInstances{{scene, prepared}}, 0, stack, query);
    }
}
